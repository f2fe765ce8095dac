#include "harness/truth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace samesum::harness {
namespace {

using boost::multiprecision::msb;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// log2 of the number of elements after which the buckets are emptied, so that no bucket overflows.
constexpr int log2_chunk = 32;

/// x · 2^places. Not inlined, because g++ 12 then warns that Boost writes out of bounds.
[[gnu::noinline]] BigInteger shifted(const BigInteger& x, int places) { return x << places; }

/// One bucket for each sign and exponent, which holds the sum of its significands. Adding an element costs
/// about as much as counting it in a histogram; wide integers are used once, at the end.
template <class F> class Buckets {
 public:
  using Bits = BitsOf<F>;
  static constexpr int fraction_bits = Format<F>::precision - 1;
  using Bucket =
      std::conditional_t<Format<F>::precision + log2_chunk <= 64, std::uint64_t, unsigned __int128>;
  static_assert(Format<F>::precision + log2_chunk <= 8 * int{sizeof(Bucket)});

  /// Adds a finite element.
  void add(Bits bits) {
    constexpr Bits fraction = Bits((Bits{1} << fraction_bits) - 1);
    const Bits hidden = Bits(Bits((bits & Format<F>::infinity) != 0) << fraction_bits);
    bucket_[bits >> fraction_bits] += Bits((bits & fraction) | hidden);
  }

  void fold_into(BigInteger& sum, BigInteger& magnitudes) const {
    for (std::size_t i = 0; i < bucket_.size(); ++i) {
      if (bucket_[i] == 0) continue;
      const auto place = decompose<F>(static_cast<Bits>(i << fraction_bits));
      const BigInteger part = shifted(wide(bucket_[i]), place.exponent - exact_unit);
      magnitudes += part;
      place.negative ? sum -= part : sum += part;
    }
  }

 private:
  static BigInteger wide(Bucket x) {
    if constexpr (sizeof(Bucket) == 8)
      return x;
    else
      return (BigInteger{static_cast<std::uint64_t>(x >> 64)} << 64) + static_cast<std::uint64_t>(x);
  }

  std::vector<Bucket> bucket_ = std::vector<Bucket>(std::size_t{1} << (8 * sizeof(F) - fraction_bits));
};

enum class Rounding { to_nearest_even, up };

/// The bits of magnitude · 2^exponent, magnitude > 0, rounded to a format.
std::uint64_t round_magnitude(const BigInteger& magnitude, long exponent, const FormatInfo& format,
                              Rounding rounding) {
  const long precision = format.precision;
  long quantum = std::max<long>(long(msb(magnitude)) + exponent - precision + 1, format.min_quantum);
  BigInteger kept = magnitude;
  if (const long dropped = quantum - exponent; dropped <= 0) {
    kept <<= -dropped;
  } else {
    kept >>= dropped;
    const BigInteger rest = magnitude - (kept << dropped), half = BigInteger{1} << (dropped - 1);
    const bool away =
        rounding == Rounding::up ? rest > 0 : rest > half || (rest == half && bit_test(kept, 0));
    if (away) ++kept;
  }
  auto significand = static_cast<std::uint64_t>(kept);
  if (significand >> precision) {  // rounded to the next power of two
    significand >>= 1;
    ++quantum;
  }
  const std::uint64_t hidden = std::uint64_t{1} << (precision - 1);
  if (significand < hidden) return significand;  // subnormal
  const long field = quantum - format.min_quantum + 1;
  if (field > 2 * format.max_exponent) return format.infinity;
  return (static_cast<std::uint64_t>(field) << (precision - 1)) + (significand - hidden);
}

double rounded_up(const BigInteger& magnitude, int unit) {
  if (magnitude == 0) return 0;
  return std::bit_cast<double>(round_magnitude(magnitude, unit, format_info<fp64>(), Rounding::up));
}

Decomposed decompose(Number x) {
  return with_format(*x.format,
                     [&]<class F>() { return samesum::decompose<F>(static_cast<BitsOf<F>>(x.bits)); });
}

}  // namespace

bool is_finite(Number x) { return (x.bits & x.format->infinity) != x.format->infinity; }

BigInteger exact_value(Number finite) {
  const Decomposed d = decompose(finite);
  const BigInteger magnitude = shifted(d.significand, d.exponent - exact_unit);
  return d.negative ? -magnitude : magnitude;
}

double quotient(const BigInteger& numerator, const BigInteger& denominator) {
  if (numerator == 0) return 0;
  // At least 65 bits of the quotient, and one more for whether there is a remainder: enough to round once.
  const long shift = 66 + long(msb(denominator)) - long(msb(numerator));
  BigInteger q, remainder;
  divide_qr(shift > 0 ? numerator << shift : numerator, shift < 0 ? denominator << -shift : denominator, q,
            remainder);
  q = (q << 1) + (remainder != 0 ? 1 : 0);
  return std::bit_cast<double>(
      round_magnitude(q, -shift - 1, format_info<fp64>(), Rounding::to_nearest_even));
}

template <class F> void Truth::add_chunk(std::span<const F> x) {
  Buckets<F> buckets;
  for (const F element : x) {
    const BitsOf<F> bits = to_bits(element);
    only_minus_zero_ &= bits == Format<F>::sign_bit;
    if ((bits & Format<F>::infinity) != Format<F>::infinity) [[likely]]
      buckets.add(bits);
    else if (is_nan_bits<F>(bits))
      ++nans_;
    else
      ++(bits == Format<F>::infinity ? plus_infinities_ : minus_infinities_);
  }
  buckets.fold_into(value_, magnitudes_);
}

void Truth::add(Values x) {
  size_ += x.size;
  constexpr std::size_t chunk = std::size_t{1} << log2_chunk;
  with_format(*x.format, [&]<class F>() {
    const auto all = x.as<F>();
    for (std::size_t i = 0; i < all.size(); i += chunk)
      add_chunk(all.subspan(i, std::min(chunk, all.size() - i)));
  });
}

/// A finite number in multiples of 2^unit().
BigInteger Truth::scaled(Number finite) const { return shifted(exact_value(finite), exact_unit - unit_); }

Number Truth::rounded(const FormatInfo& format) const {
  if (nans_ > 0 || (plus_infinities_ > 0 && minus_infinities_ > 0)) return {&format, format.canonical_nan};
  if (plus_infinities_ > 0) return {&format, format.infinity};
  if (minus_infinities_ > 0) return {&format, format.sign_bit | format.infinity};
  if (value_ == 0) return {&format, size_ > 0 && only_minus_zero_ ? format.sign_bit : 0};
  const std::uint64_t magnitude = round_magnitude(abs(value_), unit_, format, Rounding::to_nearest_even);
  return {&format, (value_ < 0 ? format.sign_bit : 0) | magnitude};
}

double Truth::ulp(const FormatInfo& format) const {
  const Number x = rounded(format);
  return is_finite(x) ? power_of_two(decompose(x).exponent) : infinity;
}

double Truth::magnitudes_rounded_up() const { return finite() ? rounded_up(magnitudes_, unit_) : infinity; }

double Truth::condition() const {
  if (condition_) return *condition_;
  if (!finite() || magnitudes_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return value_ == 0 ? infinity : quotient(magnitudes_, abs(value_));
}

Error Truth::error_of(Number result) const {
  const Number truth = rounded(*result.format);
  if (!finite()) return result == truth ? Error{0, 0, 0} : Error{infinity, infinity, infinity};
  if (!is_finite(result)) return {result == truth ? 0 : infinity, infinity, infinity};
  const BigInteger error = abs(scaled(result) - value_);
  const double unit = ulp(*result.format);
  return {.ulps = unit < infinity ? quotient(error, scaled(Number::of(unit))) : infinity,
          .relative = error == 0    ? 0
                      : value_ == 0 ? infinity
                                    : quotient(error, abs(value_)),
          .absolute = rounded_up(error, unit_)};
}

bool Truth::within(double bound, Number result) const {
  if (bound == infinity) return true;
  if (!finite()) return result == rounded(*result.format);
  if (!is_finite(result) || !(bound >= 0)) return false;
  return abs(scaled(result) - value_) <= scaled(Number::of(bound));
}

}  // namespace samesum::harness
