/// What a reduction on a GPU reports.
#pragma once

#include <cstdint>

namespace samesum::gpu {

/// What a reduction by key reports, in device memory. Valid once the call has completed. Other reductions on
/// a given grid only set `overflowed` if that happens.
struct KeyStatus {
  std::uint64_t first_bad_key;  ///< place of the first key that is out of range; all ones if there is none
  std::uint32_t overflowed;     ///< 1 if a sum overflows Options::grid; that result is NaN
};

}  // namespace samesum::gpu
