/// Arithmetic and rounding of Dyadic, digit by digit.
#include "samesum/accumulator/dyadic.hpp"

#include <algorithm>

namespace samesum {

Dyadic::Dyadic(std::span<const std::int64_t> digits, std::int64_t exponent) : exponent_{exponent} {
  std::vector<std::int64_t> normalised(digits.begin(), digits.end());
  normalised.insert(normalised.end(), 2, 0);  // room for carries
  const int count = static_cast<int>(normalised.size());
  propagate_carries(normalised.data(), count);
  negative_ = normalised.back() < 0;
  if (negative_) {
    for (std::int64_t& digit : normalised) digit = -digit;
    propagate_carries(normalised.data(), count);
  }
  for (const std::int64_t digit : normalised) digits_.push_back(static_cast<std::uint32_t>(digit));
}

Dyadic operator*(const Dyadic& a, const Dyadic& b) {
  Dyadic product;
  product.negative_ = a.negative_ != b.negative_;
  product.exponent_ = a.exponent_ + b.exponent_;
  product.digits_.assign(a.digits_.size() + b.digits_.size(), 0);
  for (std::size_t i = 0; i < a.digits_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.digits_.size(); ++j) {
      carry += std::uint64_t{a.digits_[i]} * b.digits_[j] + product.digits_[i + j];  // never above 2^64 - 1
      product.digits_[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    product.digits_[i + b.digits_.size()] = static_cast<std::uint32_t>(carry);
  }
  return product;
}

Dyadic operator*(const Dyadic& a, std::uint64_t b) {
  Dyadic factor;
  factor.digits_ = {static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32)};
  return a * factor;
}

Dyadic operator-(Dyadic a, Dyadic b) {
  const std::int64_t exponent = std::min(a.exponent_, b.exponent_);
  a.lower_to(exponent);
  b.lower_to(exponent);
  std::vector<std::int64_t> digits(std::max(a.digits_.size(), b.digits_.size()));
  for (std::size_t i = 0; i < a.digits_.size(); ++i)
    digits[i] += (a.negative_ ? -1 : 1) * std::int64_t{a.digits_[i]};
  for (std::size_t i = 0; i < b.digits_.size(); ++i)
    digits[i] -= (b.negative_ ? -1 : 1) * std::int64_t{b.digits_[i]};
  return {digits, exponent};
}

bool Dyadic::is_zero() const {
  return std::ranges::all_of(digits_, [](std::uint32_t digit) { return digit == 0; });
}

/// Lowers the exponent without changing the value.
void Dyadic::lower_to(std::int64_t exponent) {
  const std::int64_t by = exponent_ - exponent, bits = by % 32;
  exponent_ = exponent;
  std::uint32_t carry = 0;
  for (std::uint32_t& digit : digits_) {
    const std::uint64_t shifted = std::uint64_t{digit} << bits | carry;
    digit = static_cast<std::uint32_t>(shifted);
    carry = static_cast<std::uint32_t>(shifted >> 32);
  }
  digits_.push_back(carry);
  digits_.insert(digits_.begin(), static_cast<std::size_t>(by / 32), 0);
}

/// Divides the magnitude and drops the remainder; returns true if that was not 0.
bool Dyadic::divide(std::uint64_t divisor) {
  __extension__ using Wide = unsigned __int128;
  std::uint64_t rest = 0;
  for (std::size_t i = digits_.size(); i-- > 0;) {
    const Wide part = Wide{rest} << 32 | digits_[i];
    digits_[i] = static_cast<std::uint32_t>(part / divisor);
    rest = static_cast<std::uint64_t>(part % divisor);
  }
  return rest != 0;
}

Number Dyadic::rounded_quotient(const FormatInfo& format, std::uint64_t a, std::uint64_t b) const {
  if (is_zero()) return {&format, 0};
  Dyadic quotient = *this;
  quotient.lower_to(exponent_ - 256);  // 128 bits for the divisors, and more than the 64 that are rounded
  const bool rest_of_a = quotient.divide(a), rest_of_b = quotient.divide(b);
  std::size_t top = quotient.digits_.size();
  while (quotient.digits_[--top] == 0) {
  }
  bool more = rest_of_a || rest_of_b;
  for (std::size_t i = 0; i + 2 < top; ++i) more = more || quotient.digits_[i] != 0;
  const auto at = [&](std::size_t below) {
    return top < below ? 0 : std::uint64_t{quotient.digits_[top - below]};
  };
  const int exponent = static_cast<int>(quotient.exponent_ + 32 * static_cast<std::int64_t>(top));
  return with_format(format, [&]<class F>() {
    return Number{&format, round_leading<F>(negative_, at(0), at(1), at(2), more, exponent)};
  });
}

}  // namespace samesum
