/// Counts distinct numbers on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "samesum/call/values.hpp"

namespace samesum::gpu {

/// Returns the number of different values in x, an array in memory that the device can access, as
/// samesum::count_distinct does.
///
/// Allocates two arrays of 8 bytes per element and the temporary storage of CUB's radix sort with cudaMalloc,
/// and waits for the stream. Cannot be captured in a CUDA graph.
/// @throws Error, which names the CUDA call that failed.
/// @throws std::invalid_argument as samesum::count_distinct does.
std::uint64_t count_distinct(Values x, cudaStream_t stream = nullptr);

}  // namespace samesum::gpu
