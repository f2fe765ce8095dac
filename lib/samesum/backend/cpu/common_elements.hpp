/// Conversion of most elements to integers, without branches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "samesum/accumulator/digits.hpp"
#include "samesum/format/formats.hpp"

namespace samesum::cpu {

/// Normal numbers that are whole numbers of units of 2^grid and smaller than 2^(grid + term_bits), with
/// term_bits < 128. A number below 2^grid times its precision is left out, even if it is a whole number of
/// units.
template <class T> class CommonElements {
 public:
  CommonElements() = default;
  CommonElements(int grid, int term_bits) : lowest_field_{grid - Format<T>::min_quantum + 1} {
    constexpr int end = Format<T>::infinity >> fraction_bits;
    const int first = std::clamp(lowest_field_, 1, end),
              last = std::clamp(lowest_field_ + term_bits - Format<T>::precision + 1, first, end);
    lowest_ = BitsOf<T>(BitsOf<T>(first) << fraction_bits);
    count_ = BitsOf<T>((BitsOf<T>(last) << fraction_bits) - lowest_);
  }
  bool contain(BitsOf<T> x) const {
    return BitsOf<T>(BitsOf<T>(x & ~Format<T>::sign_bit) - lowest_) < count_;
  }
  /// The units of an element that is contained, modulo 2^128. Signs are random: a branch would be
  /// mispredicted half of the time.
  Wide units(BitsOf<T> x) const {
    constexpr BitsOf<T> hidden = BitsOf<T>(1) << fraction_bits;
    const auto magnitude = BitsOf<T>(x & ~Format<T>::sign_bit);
    const Wide term = Wide{BitsOf<T>((magnitude & (hidden - 1)) | hidden)}
                      << (int(magnitude / hidden) - lowest_field_),
               sign = Wide{0} - Wide{x != magnitude};
    return (term ^ sign) - sign;
  }

 private:
  static constexpr int fraction_bits = Format<T>::precision - 1;
  int lowest_field_ = 0;  ///< exponent field of a number whose last bit is one unit; it may not exist
  BitsOf<T> lowest_ = 0, count_ = 0;  ///< the magnitudes: `count_` from `lowest_` on
};

}  // namespace samesum::cpu
