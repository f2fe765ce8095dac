/// Definitions of product_sums.hpp: short rows are added one by one, longer ones by the loops of rows or by
/// partials.
#include "product_sums.hpp"

#include <cmath>
#include <limits>

#include "samesum/backend/cpu/schedule/methods.hpp"

namespace samesum::python {
namespace {

Values values_of(const std::vector<double>& x) { return {format_info<fp64>(), x.data(), x.size()}; }

/// Reads the serial form of a partial, which ends with the flags, an integer in units of 2^-2162, and a
/// checksum.
SumOfProducts sum_of(const Partial& partial) {
  constexpr std::size_t digits = 136, bytes_after_flags = 4 * digits + 4;
  const std::vector<std::byte> bytes = partial.serialise();
  const std::byte* at = bytes.data() + bytes.size() - bytes_after_flags;
  const auto flags = static_cast<std::uint32_t>(at[-1]);
  std::int64_t digit[digits];
  for (std::int64_t& d : digit) {
    d = 0;
    for (int i = 0; i < 32; i += 8) d |= static_cast<std::int64_t>(*at++) << i;
  }
  digit[digits - 1] = static_cast<std::int32_t>(digit[digits - 1]);
  return {Dyadic{digit, -2162}, flags};
}

}  // namespace

template <std::size_t factors> void ProductSum::add(const std::array<double, factors>& x) {
  bool negative = false, is_finite = true, is_zero = false;
  for (const double factor : x) {
    negative = negative != std::signbit(factor);
    is_finite = is_finite && std::abs(factor) <= std::numeric_limits<double>::max();
    is_zero = is_zero || factor == 0;
  }
  if (!is_finite) {
    double product = 1;
    for (const double factor : x) product *= factor;
    flags_ |= seen_flags(product);
  } else if (is_zero) {
    flags_ |= seen_flags(negative ? -0.0 : 0.0);
  } else {
    flags_ |= SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
    std::uint64_t product[factors] = {1};
    int exponent = 0;
    for (const double factor : x) {
      const Decomposed d = decompose<double>(to_bits(factor));
      exponent += d.exponent;
      std::uint64_t carry = 0;
      for (std::uint64_t& word : product) {
        const Wide part = Wide{word} * d.significand + carry;
        word = word_of(part, 0);
        carry = word_of(part, 1);
      }
    }
    add_to(magnitude_[negative], product, exponent - 64 * place);
  }
}
template <std::size_t factors>
void ProductSum::add_to(std::uint64_t* words, const std::uint64_t (&product)[factors], int shift) {
  std::size_t at = static_cast<std::size_t>(shift / 64);
  std::uint64_t carry = 0;
  const auto add = [&](Wide shifted) {
    const Wide sum = Wide{words[at]} + word_of(shifted, 0) + carry;
    words[at++] = word_of(sum, 0);
    carry = word_of(sum, 1) + word_of(shifted, 1);
  };
  first_ = std::min(first_, at);
  for (const std::uint64_t word : product) add(Wide{word} << shift % 64);
  while (carry != 0) add(0);
  end_ = std::max(end_, at);
}

template <class T, std::size_t factors> SumOfProducts Summation::sum(const std::array<Values, 3>& x) {
  if (n_ < few) {
    add_one_by_one<T, factors>(x);
    return sum_.take();
  }
  std::optional<Partial> partial;
  if (n_ > many) partial.emplace(factors == 1 ? "sum/exact/fp64" : "dot/exact/fp64");
  const std::size_t step = factors == 3 ? block : chunk;
  for (std::size_t i = 0; i < n_; i += step) {
    if (i % chunk == 0 && i > 0) check_signals();
    std::array<Values, 3> part;
    for (std::size_t k = 0; k < factors; ++k) part[k] = part_of(x[k], i, std::min(step, n_ - i));
    if constexpr (factors == 3)
      add_triples<T>(partial, part);
    else
      add<T, factors>(partial, part);
  }
  const SumOfProducts rest = sum_.take();
  if (!partial) return rest;
  const SumOfProducts all = sum_of(*partial);
  return {all.value + rest.value, all.flags | rest.flags};
}
template <class T, std::size_t factors>
void Summation::add(std::optional<Partial>& partial, const std::array<Values, 3>& x) {
  if (partial) return partial->add(x[0], x[1], {.threads = threads_});
  const std::optional<std::array<double, 3>> words = cpu::sum_in_words(x[0], x[1]);
  if (!words) return add_one_by_one<T, factors>(x);
  for (const double& word : *words)  // the first one tells of -0
    if (word != 0 || &word == words->data()) sum_.add<1>({word});
}
template <class T, std::size_t factors> void Summation::add_one_by_one(const std::array<Values, 3>& x) {
  for (std::size_t i = 0; i < x[0].size; ++i) {
    std::array<double, factors> element;
    for (std::size_t k = 0; k < factors; ++k)
      element[k] = convert<double>(static_cast<const T*>(x[k].data)[i]);
    sum_.add(element);
  }
}
template <class T>
void Summation::add_triples(std::optional<Partial>& partial, const std::array<Values, 3>& x) {
  const std::size_t n = x[0].size;
  const T *const a = static_cast<const T*>(x[0].data), *const b = static_cast<const T*>(x[1].data),
                 *const c = static_cast<const T*>(x[2].data);
  for (std::vector<double>* words : {&high_, &low_, &third_}) words->resize(n);
  cpu::multiply(x[0], x[1], high_.data(), low_.data());
  bool exact = true;
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::abs(high_[i]);
    const bool fits = size >= 0x1p-900 && size <= std::numeric_limits<double>::max(),
               is_zero = size == 0 && (convert<double>(a[i]) == 0 || convert<double>(b[i]) == 0);
    exact = exact && (fits || is_zero);
    third_[i] = convert<double>(c[i]);
  }
  if (!exact) return add_one_by_one<T, 3>(x);
  add<fp64, 2>(partial, {values_of(high_), values_of(third_)});
  // The products of other formats fit into one word.
  if (std::is_same_v<T, fp64>) add<fp64, 2>(partial, {values_of(low_), values_of(third_)});
}

SumOfProducts Summation::sum(const Factors& factors, std::size_t row) {
  std::array<Values, 3> x;
  for (std::size_t k = 0; k < factors.size(); ++k)
    x[k] = values_at(format_, factors[k].first + row * factors[k].second * format_.bytes, n_);
  since_signals_ += n_;
  if (since_signals_ >= chunk) check_signals(), since_signals_ = 0;
  return with_format(format_, [&]<class T>() {
    return factors.size() == 1 ? sum<T, 1>(x) : factors.size() == 2 ? sum<T, 2>(x) : sum<T, 3>(x);
  });
}

}  // namespace samesum::python
