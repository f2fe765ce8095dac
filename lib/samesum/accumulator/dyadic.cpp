/// Arithmetic and rounding of Dyadic, word by word.
#include "samesum/accumulator/dyadic.hpp"

#include <algorithm>
#include <cmath>

#include "samesum/accumulator/digits.hpp"

namespace samesum {
namespace {

constexpr std::uint64_t high_word(Wide x) { return static_cast<std::uint64_t>(x >> 64); }
constexpr std::uint64_t low_word(Wide x) { return static_cast<std::uint64_t>(x); }

/// Returns the next word of a sum of two words and a carry, which it replaces.
std::uint64_t add_words(std::uint64_t a, std::uint64_t b, std::uint64_t& carry) {
  const Wide sum = Wide{a} + b + carry;
  carry = high_word(sum);
  return low_word(sum);
}

/// Subtracts factor · b from a, words of the same number, and returns what is borrowed from the word above.
std::uint64_t subtract_product(Words& a, const Words& b, std::uint64_t factor) {
  std::uint64_t borrowed = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Wide part = Wide{b[i]} * factor + borrowed;
    borrowed = high_word(part) + (a[i] < low_word(part));
    a[i] -= low_word(part);
  }
  return borrowed;
}

/// Divides rest · 2^64 by a divisor of as many words, whose highest bit is 1, where rest < divisor (Knuth
/// 1997, section 4.3.1, algorithm D). Returns the quotient, a word, and leaves the remainder.
std::uint64_t next_word(Words& rest, const Words& divisor) {
  std::uint64_t top = rest.back();
  const std::uint64_t leading = divisor.back();
  rest.shift_up();
  // At most 2 too large.
  std::uint64_t word =
      top < leading ? low_word((Wide{top} << 64 | rest.back()) / leading) : ~std::uint64_t{0};
  top -= subtract_product(rest, divisor, word);
  while (top != 0) {  // negative
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = add_words(rest[i], divisor[i], carry);
    top += carry;
    --word;
  }
  return word;
}

/// Returns the root, rounded down, of a number of at least 2^125.
std::uint64_t root_of(Wide square) {
  constexpr std::uint64_t most = ~std::uint64_t{0};
  // The estimate lacks less than 2^12 in either direction, one step of Newton's method less than 2.
  const double estimate = std::sqrt(static_cast<double>(square));
  std::uint64_t root = estimate < 0x1p64 ? static_cast<std::uint64_t>(estimate) : most;
  const Wide mean = (Wide{root} + square / root) / 2;
  root = mean > most ? most : low_word(mean);
  while (Wide{root} * root > square) --root;
  while (root != most && Wide{root + 1} * (root + 1) <= square) ++root;
  return root;
}

}  // namespace

Dyadic::Dyadic(bool negative, std::span<const std::uint64_t> words, std::int64_t place)
    : negative_{negative}, words_(words.begin(), words.end()), place_{place} {
  trim();
}

Dyadic::Dyadic(double number) {
  const Decomposed d = decompose<double>(to_bits(number));
  const std::int64_t place = d.exponent >> 6;
  const Wide shifted = Wide{d.significand} << (d.exponent & 63);
  *this = {d.negative, std::array{low_word(shifted), high_word(shifted)}, place};
}

Dyadic::Dyadic(std::span<const std::int64_t> digits, std::int64_t exponent) : place_{exponent >> 6} {
  std::vector<std::int64_t> normalised(digits.begin(), digits.end());
  normalised.insert(normalised.end(), 2, 0);  // room for carries
  const int count = static_cast<int>(normalised.size());
  propagate_carries(normalised.data(), count);
  negative_ = normalised.back() < 0;
  if (negative_) {
    for (std::int64_t& digit : normalised) digit = -digit;
    propagate_carries(normalised.data(), count);
  }
  words_.resize(normalised.size() / 2 + 2);
  std::int64_t bit = exponent & 63;
  for (std::size_t i = 0; i < normalised.size(); ++i, bit += 32) {
    const Wide shifted = Wide{static_cast<std::uint64_t>(normalised[i])} << bit % 64;
    const auto word = static_cast<std::size_t>(bit / 64);
    words_[word] |= low_word(shifted);
    words_[word + 1] |= high_word(shifted);
  }
  trim();
}

/// Drops words that are 0 at both ends.
void Dyadic::trim() {
  const auto is_not_zero = [](std::uint64_t word) { return word != 0; };
  std::size_t size = words_.size();
  while (size > 0 && words_[size - 1] == 0) --size;
  words_.resize(size);
  const auto zeros = std::ranges::find_if(words_, is_not_zero) - words_.begin();
  place_ += zeros;
  words_.drop_first(static_cast<std::size_t>(zeros));
}

Dyadic operator*(const Dyadic& a, const Dyadic& b) {
  Dyadic product;
  product.negative_ = a.negative_ != b.negative_;
  product.place_ = a.place_ + b.place_;
  product.words_.resize(a.words_.size() + b.words_.size());
  for (std::size_t i = 0; i < a.words_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t k = 0; k < b.words_.size(); ++k) {
      const Wide part = Wide{a.words_[i]} * b.words_[k] + product.words_[i + k] + carry;
      product.words_[i + k] = low_word(part);
      carry = high_word(part);
    }
    product.words_[i + b.words_.size()] = carry;
  }
  product.trim();
  return product;
}

Dyadic Dyadic::sum(const Dyadic& a, const Dyadic& b, bool negative) {
  if (b.is_zero()) return a;
  Dyadic sum;
  sum.place_ = a.is_zero() ? b.place_ : std::min(a.place_, b.place_);
  const std::int64_t end = std::max(a.is_zero() ? b.end() : a.end(), b.end()) + 1;  // a word for carries
  sum.words_.resize(static_cast<std::size_t>(end - sum.place_));
  const auto add = [&](const Dyadic& part, bool is_negative) {
    const std::uint64_t mask = is_negative ? ~std::uint64_t{0} : 0;
    std::uint64_t carry = is_negative;
    for (std::size_t i = static_cast<std::size_t>(part.place_ - sum.place_), k = 0; i < sum.words_.size();
         ++i, ++k)
      sum.words_[i] = add_words(sum.words_[i], (k < part.words_.size() ? part.words_[k] : 0) ^ mask, carry);
  };
  if (!a.is_zero()) add(a, a.negative_);
  add(b, negative);
  sum.negative_ = sum.words_.back() >> 63 != 0;
  if (sum.negative_) {
    std::uint64_t carry = 1;
    for (std::uint64_t& word : sum.words_) word = add_words(~word, 0, carry);
  }
  sum.trim();
  return sum;
}

/// Returns the magnitude as `size` words, shifted so that the highest bit is 1.
Words Dyadic::normalised(std::size_t size) const {
  Words shifted(size);
  const int zeros = leading_zeros(words_.back());
  const std::size_t below = size - words_.size();  // at least 1
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const Wide word = Wide{words_[i]} << zeros;
    shifted[below + i] |= low_word(word);
    if (zeros > 0 && i + 1 < words_.size()) shifted[below + i + 1] = high_word(word);
  }
  return shifted;
}

/// Returns the leading bits of a/b, at least 2^126. Neither a nor b is 0.
LeadingBits Dyadic::quotient(const Dyadic& a, const Dyadic& b) {
  const std::size_t size = std::max(a.words_.size(), b.words_.size()) + 1;
  const Words divisor = b.normalised(size);
  Words rest = a.normalised(size);
  for (std::size_t i = 0; i < size; ++i)  // halved, so that it is below the divisor
    rest[i] = rest[i] >> 1 | (i + 1 < size ? rest[i + 1] << 63 : 0);
  const std::uint64_t first = next_word(rest, divisor), second = next_word(rest, divisor);
  const bool more = std::ranges::any_of(rest, [](std::uint64_t word) { return word != 0; });
  const auto leading_exponent = [](const Dyadic& x) { return 64 * x.end() - leading_zeros(x.words_.back()); };
  return {a.negative_ != b.negative_, more, Wide{first} << 64 | second,
          leading_exponent(a) - leading_exponent(b) - 127};
}

Number Dyadic::rounded_quotient(const FormatInfo& format, const Dyadic& divisor) const {
  if (is_zero()) return {&format, 0};
  const LeadingBits q = quotient(*this, divisor);
  return with_format(format, [&]<class F>() { return Number{&format, q.rounded<F>()}; });
}

Number Dyadic::rounded_ratio_to_root(const FormatInfo& format, const Dyadic& square) const {
  if (is_zero()) return {&format, 0};
  LeadingBits q = quotient(*this * *this, square);
  if (q.exponent % 2 != 0) {
    q.more = q.more || (q.bits & 1) != 0;
    q.bits >>= 1;
    ++q.exponent;
  }
  const Wide root = root_of(q.bits);
  const LeadingBits ratio{negative_, q.more || root * root != q.bits, root, q.exponent / 2};
  return with_format(format, [&]<class F>() { return Number{&format, ratio.rounded<F>()}; });
}

}  // namespace samesum
