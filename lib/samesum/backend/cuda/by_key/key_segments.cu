/// Runs of equal keys on a GPU: CUB selects the places where runs begin, and a kernel fetches their keys.
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_select.cuh>

#include "samesum/backend/cuda/device/methods.hpp"

namespace samesum::gpu {
namespace {

/// Whether a run begins at a place.
struct BeginsRun {
  KeyFormat format;
  const void* keys;

  __device__ bool operator()(std::uint64_t i) const {
    return i == 0 || key_at(format, keys, i) != key_at(format, keys, i - 1);
  }
};

/// Fetches the key of each run. The offsets behind them become n, so that segments from there on are empty.
__global__ void finish_runs(KeyFormat format, const void* keys, std::uint64_t n, DeviceSegments out) {
  const std::uint64_t count = *out.count, step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i <= n; i += step)
    if (i < count)
      out.keys[i] = static_cast<std::int64_t>(key_at(format, keys, out.offsets[i]));
    else
      out.offsets[i] = n;
}

}  // namespace

cudaError_t find_segments(SegmentsLaunch& call) {
  const std::uint64_t n = call.keys.size;
  std::size_t bytes = 0;
  const auto select = [&](void* memory) {
    return cub::DeviceSelect::If(memory, bytes, thrust::make_counting_iterator(std::uint64_t{0}),
                                 call.out.offsets, call.out.count, static_cast<std::int64_t>(n),
                                 BeginsRun{call.keys.format, call.keys.data}, call.stream);
  };
  if (const cudaError_t error = select(nullptr)) return error;
  cudaError_t error;
  if (!accept_workspace(call, header_bytes + bytes, error)) return error;
  if ((error = n > 0 ? select(states(call.workspace))
                     : cudaMemsetAsync(call.out.count, 0, sizeof *call.out.count, call.stream)))
    return error;
  constexpr std::uint64_t threads = 256, most_blocks = 1 << 16;
  return launch(finish_runs, std::min(n / threads + 1, most_blocks), static_cast<int>(threads), call.stream,
                call.keys.format, call.keys.data, n, call.out);
}

}  // namespace samesum::gpu
