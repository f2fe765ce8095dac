#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "samesum/format/value.hpp"

namespace samesum::gpu {

/// How many different numbers x has, as samesum::count_distinct counts them; x is in memory that the device
/// can reach. Allocates 16 bytes an element, and waits for the stream. Throws Error.
std::uint64_t count_distinct(Values x, cudaStream_t stream = nullptr);

}  // namespace samesum::gpu
