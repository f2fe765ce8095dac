/// A search for runs of equal keys on a GPU: its arguments, workspace and stream.
#pragma once

#include "samesum/backend/cuda/key_segments.hpp"
#include "samesum/backend/cuda/workspace.hpp"
#include "samesum/call/keys.hpp"

namespace samesum::gpu {

struct SegmentsLaunch {
  Keys keys;
  DeviceSegments out;
  cudaStream_t stream;
  void* workspace = nullptr;  ///< null for a size query, which only sets `bytes`
  std::size_t bytes = 0;
};

/// Enqueues the search.
cudaError_t find_segments(SegmentsLaunch& call);

}  // namespace samesum::gpu
