/// Numbers of 128 bits, on host and device.
#pragma once

#include "samesum/format/format.hpp"

namespace samesum {

#if !defined(__CUDACC_RTC__)
__extension__
#endif
    using Wide = unsigned __int128;  ///< a number modulo 2^128

/// Number of leading zeros of a number of 128 bits.
SAMESUM_HD constexpr int leading_zeros(Wide x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? leading_zeros(high) : 64 + leading_zeros(static_cast<std::uint64_t>(x));
}

}  // namespace samesum
