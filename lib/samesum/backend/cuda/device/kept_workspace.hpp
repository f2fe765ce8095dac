/// A workspace that is kept between calls.
#pragma once

#include <utility>

#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/backend/cuda/device/methods.hpp"

namespace samesum::gpu {

/// A workspace that serves one call after another, in stream order. A call that fails midway may leave the
/// header in any state, so the next call prepares the workspace again.
class KeptWorkspace {
 public:
  std::size_t bytes() const { return bytes_; }

  /// Replaces the memory.
  void replace(Memory memory, std::size_t bytes) {
    memory_ = std::move(memory);
    bytes_ = bytes;
    is_prepared_ = false;
  }

  /// Prepares the workspace, if it is not prepared.
  cudaError_t prepare(cudaStream_t stream) {
    if (!is_prepared_ && bytes_ >= header_bytes)
      if (const cudaError_t error = prepare_workspace(memory_.get(), stream)) return error;
    is_prepared_ = true;
    return cudaSuccess;
  }

  /// Enqueues a call: enqueue(memory, bytes) returns its error.
  template <class Enqueue> cudaError_t run(cudaStream_t stream, Enqueue enqueue) {
    if (const cudaError_t error = prepare(stream)) return error;
    is_prepared_ = false;  // until all of the call is enqueued, which may also throw
    const cudaError_t error = enqueue(memory_.get(), bytes_);
    is_prepared_ = error == cudaSuccess;
    return error;
  }

 private:
  Memory memory_;
  std::size_t bytes_ = 0;
  bool is_prepared_ = false;
};

}  // namespace samesum::gpu
