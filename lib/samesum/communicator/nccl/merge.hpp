/// Merges of the states of all ranks on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "samesum/call/call.hpp"

namespace samesum::nccl {

/// States in device memory, and where their result is written.
struct Merge {
  const void* states;
  const std::int32_t* place;    ///< see Schedule; in device memory
  const std::uint64_t* begins;  ///< of the block of each rank; in device memory
  int count;                    ///< of places
  std::uint64_t n;              ///< elements of the vector
  double ddof;
  int grid;
  void* out;
  cudaStream_t stream;
};

/// Enqueues a kernel that merges the states and writes the result.
using MergeStates = cudaError_t (*)(const Merge& merge);

/// The function for the states of a method of the backend "cuda"; null if it has none.
MergeStates merge_states_of(const Method& method);

}  // namespace samesum::nccl
