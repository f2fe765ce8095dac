/// A call on a GPU: its data, workspace, stream and launch shape.
#pragma once

#include "samesum/backend/cuda/device/exact_state.hpp"
#include "samesum/backend/cuda/device/key_status.hpp"
#include "samesum/backend/cuda/device/launch.hpp"
#include "samesum/backend/cuda/device/workspace.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum::gpu {

/// Kernels for the rows of a softmax. The choice changes no bit. Three names stand for the four kernels of
/// softmax.cuh and softmax/wide.cuh: `held` selects softmax_ahead for rows of 16-bit elements with more than
/// 4096 columns, otherwise softmax_held.
enum class SoftmaxSchedule {
  automatic,  ///< the first of the following that supports the number of columns and the denominator
  narrow,     ///< a warp per row, or less; up to 1024 columns
  held,  ///< a block or a cluster of blocks (Hopper and later) per row, held on chip; up to 131072 columns,
         ///< without clusters 32768 of fp32 and 16384 of 16 bits
  wide,  ///< a block per row, which reads it several times; any width; the only one for online, and for exact
         ///< beyond 1024 columns
};

/// What a reduction by key adds to. The choice changes no bit.
enum class KeySchedule {
  automatic,
  shared,       ///< cells in the shared memory of each block, for one range of keys after another
  partitioned,  ///< cells in shared memory, after the elements of each tile were sorted by partition of
                ///< results
  global,       ///< cells in global memory
  sorted,       ///< registers, after the rows were sorted by key; sums only
};

/// Forms of the kernel of scans. The choice changes no bit.
enum class ScanSchedule {
  automatic,  ///< columns for wide layouts, few_rows for few tiles and for short rows, otherwise many_rows
  few_rows,   ///< a warp holds 4 rows of a tile, so that up to 8 warps share one
  many_rows,  ///< a warp holds as many rows as fit in its registers
  columns,    ///< a thread scans a row of a tile of a column
};

/// A call on a GPU: valid, normalised, and on data that the device can access; and its launch parameters.
struct Launch {
  Call call;
  bool as_state = false;      ///< whether it writes a state, as HostRun::as_state
  void* workspace = nullptr;  ///< null for a size query, which only sets `bytes`
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
  // The defaults select what was measured to be fast; tests force other values, which changes no bit.
  int blocks = 0, threads = 0;
  SoftmaxSchedule schedule = SoftmaxSchedule::automatic;
  KeySchedule key_schedule = KeySchedule::automatic;
  ScanSchedule scan = ScanSchedule::automatic;
  KeyStatus* status = nullptr;      ///< status in device memory; may be null
  std::size_t longest_segment = 0;  ///< upper bound on the length of a segment; 0: not known
  bool uses_header = false;         ///< whether the header of the workspace must be prepared
  cudaError_t error = cudaSuccess;  ///< the result of the call
};

/// Enqueues a call.
inline cudaError_t enqueue(Launch& work) {
  Code::of(*work.call.method).device.run(work.call, work);
  return work.error;
}

/// Adapts a function enqueue(Launch&) to the type of functions of methods.
template <cudaError_t (*enqueue)(Launch&)> void run_launch(Launch& work) { work.error = enqueue(work); }

/// Largest block that the kernels for sums are compiled for.
inline constexpr int most_threads = 256;

/// Destination of an exact sum: a number, the quotient by a divisor rounded to the format with that format
/// index, or a state that the sum is added to.
struct ExactDestination {
  void* out;
  std::size_t format;
  ExactState* state;          ///< null if the sum goes to `out`
  std::uint64_t divisor = 1;  ///< below 2^39
};

}  // namespace samesum::gpu
