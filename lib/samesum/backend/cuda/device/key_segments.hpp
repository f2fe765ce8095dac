/// Runs of equal keys in the memory of a GPU.
#pragma once

#include <cstdint>

namespace samesum::gpu {

/// Where segments_of writes the runs of n keys: memory that the device can access, aligned to 8 bytes.
struct DeviceSegments {
  std::int64_t* keys;      ///< room for n: the key of each run
  std::uint64_t* offsets;  ///< room for n + 1: where each run begins; from number *count on, n
  std::uint64_t* count;    ///< room for 1: the number of runs
};

}  // namespace samesum::gpu
