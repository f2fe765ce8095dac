/// One reduction on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {

/// All pointers are to memory that the device can reach.
struct ReduceLaunch {
  ReduceCall call;
  std::size_t elements;  ///< of an input
  void* workspace;       ///< null: only `bytes` is set
  std::size_t bytes;
  cudaStream_t stream;
};

/// Copies the inputs to the current device, and the results back; data that are there already stay.
void reduce_from_host(const Reduction& reduction, const FormatInfo& input, std::size_t elements,
                      const ReduceCall& call);

// In exact_reduce.cu:
cudaError_t reduce_exactly(ExactKind kind, const FormatInfo& input, const FormatInfo& format,
                           ReduceLaunch& launch);

}  // namespace samesum::gpu
