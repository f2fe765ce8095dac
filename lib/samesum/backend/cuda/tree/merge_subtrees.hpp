/// Merges the states of the subtrees of one vector on a GPU, and writes the result.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "samesum/catalogue/backend.hpp"

namespace samesum::gpu {

/// Most subtrees that are merged.
inline constexpr std::uint64_t most_subtrees = 1024;

/// States in device memory, and where their result is written.
struct SubtreeMerge {
  const void* states;
  /// For each subtree the place of its state; -1 if it is part of a larger one before it. In device memory.
  const std::int32_t* place;
  /// Where each subtree begins, for states with an index; otherwise null. In device memory.
  const std::uint64_t* begins;
  int count;        ///< number of subtrees
  std::uint64_t n;  ///< elements of the vector
  double ddof;
  int grid;
  void* out;
  cudaStream_t stream;
  cudaError_t error = cudaSuccess;  ///< the result of the call
};

/// The parts Code::merge_subtrees of the methods whose states have such a kernel.
std::vector<Entry> subtree_merges();

}  // namespace samesum::gpu
