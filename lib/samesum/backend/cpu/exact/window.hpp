/// Exact sums in integers of 128 bits, for elements whose exponents allow it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "samesum/accumulator/fixed_point.hpp"

namespace samesum::cpu {

/// Whether the bits of all magnitudes are among the `count` numbers from `lowest` on, without branches.
template <class T> bool magnitudes_are_in(const T* x, std::size_t n, BitsOf<T> lowest, BitsOf<T> count) {
  const auto last = BitsOf<T>(lowest + count - 1);
  BitsOf<T> signs = 0;  // of differences that are negative if a magnitude is outside
  for (std::size_t i = 0; i < n; ++i) {
    const auto magnitude = BitsOf<T>(to_bits(x[i]) & ~Format<T>::sign_bit);
    signs = BitsOf<T>(signs | BitsOf<T>(magnitude - lowest) | BitsOf<T>(last - magnitude));
  }
  return (signs & Format<T>::sign_bit) == 0;
}

/// A number as ±significand·2^up units of a grid.
struct WholeUnits {
  bool negative;
  std::uint64_t significand;
  int up;  ///< at least 0
};
/// Returns x in units of 2^grid; nothing if it is not finite or no multiple of the unit.
template <class T> std::optional<WholeUnits> whole_units(T x, int grid) {
  if (special_flags_of(x) != 0) return {};
  const Decomposed d = decompose<T>(to_bits(x));
  if (d.significand == 0) return WholeUnits{};
  const int shift = d.exponent - grid;
  if (shift >= 0) return WholeUnits{d.negative, d.significand, shift};
  if (shift <= -64 || d.significand >> -shift << -shift != d.significand) return {};
  return WholeUnits{d.negative, d.significand >> -shift, 0};
}

/// The elements of which sums are whole numbers of units of 2^grid: multiples of the unit that are smaller
/// than 2^(grid + term_bits), with term_bits < 128.
template <class T> class ExactWindow {
 public:
  ExactWindow() = default;
  ExactWindow(int grid, int term_bits)
      : grid_{grid}, term_bits_{term_bits}, lowest_field_{grid - Format<T>::min_quantum + 1} {
    constexpr int end = Format<T>::infinity >> fraction_bits;
    const int first = std::clamp(lowest_field_, 1, end),
              last = std::clamp(lowest_field_ + term_bits - Format<T>::precision + 1, first, end);
    lowest_ = BitsOf<T>(BitsOf<T>(first) << fraction_bits);
    count_ = BitsOf<T>((BitsOf<T>(last) << fraction_bits) - lowest_);
  }

  int grid() const { return grid_; }
  int term_bits() const { return term_bits_; }
  /// Whether an element is known to fit by a comparison: a normal number whose last bit is not below the
  /// unit.
  bool is_common(T x) const {
    return BitsOf<T>(BitsOf<T>(to_bits(x) & ~Format<T>::sign_bit) - lowest_) < count_;
  }
  bool are_common(const T* x, std::size_t n) const { return magnitudes_are_in(x, n, lowest_, count_); }
  /// The units of a common element, modulo 2^128. Signs are random: a branch would be mispredicted half of
  /// the time.
  Wide units_of_common(T x) const {
    constexpr BitsOf<T> hidden = BitsOf<T>(1) << fraction_bits;
    const auto bits = to_bits(x), magnitude = BitsOf<T>(bits & ~Format<T>::sign_bit);
    const Wide term = Wide{BitsOf<T>((magnitude & (hidden - 1)) | hidden)}
                      << (int(magnitude / hidden) - lowest_field_),
               sign = Wide{0} - Wide{bits != magnitude};
    return (term ^ sign) - sign;
  }
  /// Adds an element to `sum`. Returns false if it is not finite, too large, or no multiple of the unit.
  bool add(Wide& sum, T x) const {
    if (is_common(x)) [[likely]] {
      sum += units_of_common(x);
      return true;
    }
    return add_uncommon(sum, x);
  }

 private:
  static constexpr int fraction_bits = Format<T>::precision - 1;

  bool add_uncommon(Wide& sum, T x) const {
    const std::optional<WholeUnits> units = whole_units(x, grid_);
    if (!units || units->up > term_bits_ - Format<T>::precision) return false;
    const Wide term = Wide{units->significand} << units->up;
    sum += units->negative ? Wide{0} - term : term;
    return true;
  }

  int grid_ = 0, term_bits_ = 0;
  int lowest_field_ = 0;  ///< exponent field of a number whose last bit is one unit; it may not exist
  BitsOf<T> lowest_ = 0, count_ = 0;  ///< magnitudes of common elements: `count_` from `lowest_` on
};

/// Writes units·unit as the unevaluated sum of two doubles. Returns false if that takes more of them. `unit`
/// is a power of two.
__extension__ inline bool in_two_words(__int128 units, double unit, double (&sum)[2]) {
  for (double& word : sum) {
    word = static_cast<double>(units);
    units -= static_cast<__int128>(word);
    word *= unit;
  }
  return units == 0;
}

/// The sum, a number of units of 2^grid, over a divisor, correctly rounded to F.
template <class F> F rounded_sum(Wide sum, int grid, std::uint64_t divisor = 1) {
  const Int128 units = Int128::of(sum);
  return from_bits<F>(divisor == 1 ? round_units<F, true>(units, grid)
                                   : round_units<F, true>(units, grid, divisor));
}

}  // namespace samesum::cpu
