#pragma once

#include "samesum/format/format.hpp"

namespace samesum {

/// fp16 with the exponents of fp32: sums and squares of fp16 numbers neither overflow nor vanish. A sum of
/// fp16 numbers that does not overflow in fp16 has the same bits in both, since it is a multiple of 2^-24.
struct fp16_wide;
template <> struct Declaration<fp16_wide> {
  static constexpr int precision = Format<fp16>::precision, max_exponent = Format<float>::max_exponent;
  using Bits = std::uint32_t;
  using Carrier = float;
};

}  // namespace samesum
