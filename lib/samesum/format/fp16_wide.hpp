/// fp16 with a wider exponent range, for intermediate results.
#pragma once

#include "samesum/format/format.hpp"

namespace samesum {

/// Format with the precision of fp16 and the exponent range of fp32. Sums and squares of fp16 numbers neither
/// overflow nor underflow in it. A sum of fp16 numbers that does not overflow in fp16 has the same bits in
/// both formats, since it is a multiple of 2^-24.
struct fp16_wide;
template <> struct FormatParameters<fp16_wide> {
  static constexpr int precision = Format<fp16>::precision, max_exponent = Format<float>::max_exponent;
  using Bits = std::uint32_t;
  using Carrier = float;
};

}  // namespace samesum
