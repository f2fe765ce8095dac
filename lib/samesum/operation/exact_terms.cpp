#include "samesum/operation/exact_terms.hpp"

namespace samesum {

void ExactTerms::add_integers(bool negative, std::uint64_t a, std::uint64_t b, int exponent) {
  if (wide_.empty()) wide_.resize(digit_count);
  if (++pending_ == std::uint64_t{1} << 29) {  // digits are below 2^32 each time
    propagate_carries(wide_.data(), digit_count);
    pending_ = 1;
  }
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;  // 106 bits
  const int offset = exponent - lowest_exponent;
  const std::uint64_t half[2] = {static_cast<std::uint64_t>(product),
                                 static_cast<std::uint64_t>(product >> 64)};
  for (int h = 0; h < 2; ++h) {
    const ThreeDigits three{negative, half[h], offset % 32};
    for (std::size_t i = 0; i < 3; ++i)
      wide_[static_cast<std::size_t>(offset / 32 + 2 * h) + i] += three.digit[i];
  }
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
  std::vector<std::int64_t> negated = wide_;
  for (std::int64_t& digit : negated) digit = -digit;
  return of_sum - Dyadic{negated, lowest_exponent};
}

template <class F> F ExactTerms::quotient(std::uint64_t divisor) const {
  const F special = sum.result<F>();
  if (wide_.empty() && (sum.empty() || sum.only_minus_zero())) return special;
  if (sum.is_special()) return special;
  return from_bits<F>(value().rounded_quotient<F>(divisor));
}

template <class F>
void exact_moments(const Exact& sum, const ExactTerms& squares, std::uint64_t n, std::uint64_t ddof, F* two) {
  const F nan = from_bits<F>(Format<F>::canonical_nan);
  const Dyadic total{sum.digits(), Exact::lowest_exponent};
  const bool special = sum.is_special();
  two[0] = n == 0                             ? nan
           : special || sum.only_minus_zero() ? sum.result<F>()
                                              : from_bits<F>(total.rounded_quotient<F>(n));
  two[1] =
      special || n <= ddof
          ? nan
          : from_bits<F>((squares.value() * n - total * total).template rounded_quotient<F>(n, n - ddof));
}

#define SAMESUM_INSTANTIATE(F)                             \
  template F ExactTerms::quotient<F>(std::uint64_t) const; \
  template void exact_moments<F>(const Exact&, const ExactTerms&, std::uint64_t, std::uint64_t, F*);
SAMESUM_INSTANTIATE(fp16)
SAMESUM_INSTANTIATE(bf16)
SAMESUM_INSTANTIATE(fp32)
SAMESUM_INSTANTIATE(fp64)
#undef SAMESUM_INSTANTIATE

}  // namespace samesum
