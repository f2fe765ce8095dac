/// Exact sums of products as wide integers, and the exact moments.
#include "samesum/operation/exact_terms.hpp"

#include <algorithm>

#include "samesum/accumulator/canonical_digits.hpp"

namespace samesum {
namespace {

/// The integer of digits whose carries are propagated.
ExactTerms::Integer integer_of(const ExactTerms::Digits& digits) {
  ExactTerms::Integer all;
  for (std::size_t i = 0; i < digits.size() / 2; ++i) all.word[i] = word_of_digits(digits, i);
  return all;
}

}  // namespace

void ExactTerms::add_integers(bool negative, std::uint64_t a, std::uint64_t b, int exponent) {
  if (wide_.empty()) wide_.resize(digit_count);
  if (++pending_ == std::uint64_t{1} << 29) {  // each call adds at most two numbers below 2^32 to a digit
    propagate_carries(wide_.data(), digit_count);
    pending_ = 1;
  }
  const Wide product = Wide{a} * b;  // at most 106 bits
  const int offset = exponent - lowest_exponent;
  const std::uint64_t half[2] = {static_cast<std::uint64_t>(product),
                                 static_cast<std::uint64_t>(product >> 64)};
  for (int h = 0; h < 2; ++h) {
    const ThreeDigits three{negative, half[h], offset % 32};
    for (std::size_t i = 0; i < 3; ++i)
      wide_[static_cast<std::size_t>(offset / 32 + 2 * h) + i] += three.digit[i];
  }
}

ExactTerms::ExactTerms(const Digits& digits, std::uint32_t flags)
    : sum{std::array<std::int64_t, Exact::digit_count>{}, flags} {
  if (std::ranges::any_of(digits, [](std::int64_t digit) { return digit != 0; })) {
    wide_.assign(digits.begin(), digits.end());
    propagate_carries(wide_.data(), digit_count);
  }
}

ExactTerms::Digits ExactTerms::digits() const {
  constexpr std::size_t first = (Exact::lowest_exponent - lowest_exponent) / 32;
  Digits all{};
  std::ranges::copy(wide_, all.begin());
  if (!wide_.empty()) propagate_carries(all.data(), digit_count);
  for (std::size_t i = 0; i < Exact::digit_count; ++i) all[first + i] += sum.digits()[i];
  const std::size_t lowest = wide_.empty() ? first : 0;
  propagate_carries(all.data() + lowest, digit_count - static_cast<int>(lowest));
  return all;
}

void ExactTerms::merge(const ExactTerms& other) {
  sum.merge(other.sum);
  if (other.wide_.empty()) return;
  if (wide_.empty()) wide_.resize(digit_count);
  std::vector<std::int64_t> others = other.wide_;
  propagate_carries(wide_.data(), digit_count);
  propagate_carries(others.data(), digit_count);
  for (std::size_t i = 0; i < digit_count; ++i) wide_[i] += others[i];
  pending_ = 2;
}

Dyadic ExactTerms::value() const {
  const Dyadic of_sum{sum.digits(), Exact::lowest_exponent};
  if (wide_.empty()) return of_sum;
  return of_sum + Dyadic{wide_, lowest_exponent};
}

Number ExactTerms::quotient(const FormatInfo& format, std::uint64_t divisor) const {
  if (sum.is_special() || (wide_.empty() && (divisor == 1 || sum.empty() || sum.only_minus_zero())))
    return sum.result(format);
  if (!wide_.empty() || divisor >> 39 != 0) return value().rounded_quotient(format, Dyadic{divisor});
  std::array<std::int64_t, Exact::digit_count> digits;
  std::ranges::copy(sum.digits(), digits.begin());
  const LeadingBits quotient =
      leading_of_digits(digits.data(), Exact::digit_count, Exact::lowest_exponent).over(divisor);
  return with_format(format, [&]<class F>() { return Number{&format, quotient.rounded<F>()}; });
}

std::array<Number, 2> exact_moments(const ExactTerms& terms, const ExactTerms& squares, std::uint64_t n,
                                    std::uint64_t ddof, const FormatInfo& format) {
  const Number nan{&format, format.canonical_nan};
  const Number mean = n == 0 ? nan : terms.quotient(format, n);
  if (terms.sum.is_special() || n <= ddof) return {mean, nan};
  auto numerator = integer_of(squares.digits());
  const LeadingBits variance = ExactTerms::variance_quotient(integer_of(terms.digits()), numerator, n, ddof);
  return {mean, with_format(format, [&]<class F>() { return Number{&format, variance.rounded<F>()}; })};
}

}  // namespace samesum
