/// Counts distinct numbers on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "samesum/format/value.hpp"

namespace samesum::gpu {

/// Number of distinct numbers in x, which is in device-accessible memory, counted as samesum::count_distinct
/// counts them. Allocates 16 bytes per element and waits for the stream. Throws Error if a CUDA call fails.
std::uint64_t count_distinct(Values x, cudaStream_t stream = nullptr);

}  // namespace samesum::gpu
