/// One call on a GPU.
#pragma once

#include "samesum/backend/cuda/exact_state.hpp"
#include "samesum/backend/cuda/launch.hpp"
#include "samesum/backend/cuda/workspace.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum::gpu {

/// Which kernels share out the rows of a softmax. None of it changes a bit.
enum class SoftmaxSchedule {
  automatic,  ///< by width, the first below that fits
  narrow,     ///< a warp a row, or less; up to 1024 columns
  held,  ///< a block a row, or a cluster of blocks (Hopper and later), on the chip; up to 131072 columns,
         ///< without clusters 32768 of fp32 and 16384 of 16 bits
  wide,  ///< a block a row, which reads it again; any width, the exact and the online form
};

/// A call whose pointers are all to memory that the device can reach, and what enqueues it.
struct Launch : Call {
  void* workspace = nullptr;  ///< null: only `bytes` is set
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
  // As measured to be fast; the tests force others, which changes no bit.
  int blocks = 0, threads = 0;
  SoftmaxSchedule schedule = SoftmaxSchedule::automatic;
  bool uses_header = false;         ///< whether the start of the workspace must have been prepared
  cudaError_t error = cudaSuccess;  ///< what became of it
};

/// Enqueues a call of a method of this backend.
inline cudaError_t enqueue(const Method& method, Launch& launch) {
  Code::of(method).backend->enqueue(method, launch);
  return launch.error;
}

/// As an entry of the catalogue.
template <cudaError_t (*enqueue)(Launch&)> void run_launch(Call& call) {
  auto& launch = static_cast<Launch&>(call);
  launch.error = enqueue(launch);
}

/// The largest blocks that the kernels are compiled for.
inline constexpr int most_threads = 256;

/// Where an exact sum goes: rounded to one number of the format at that place of the list, or into a state.
struct ExactResult {
  void* out;
  std::size_t format;
  ExactState* state;  ///< null: `out` it is
};

}  // namespace samesum::gpu
