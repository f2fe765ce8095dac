/// Counts distinct numbers on a GPU: CUB sorts their keys, and a kernel counts neighbours that differ.
#include <cub/device/device_radix_sort.cuh>

#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/backend/cuda/device/kernel_formats.hpp"
#include "samesum/backend/cuda/device/launch.hpp"
#include "samesum/backend/cuda/selection/distinct.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/call/validation.hpp"
#include "samesum/operation/extremum.hpp"

namespace samesum::gpu {
namespace {

constexpr int threads = 256;

template <class F> __global__ void write_keys(const F* x, std::size_t n, std::uint64_t* keys) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n) keys[i] = KeyOf<F>::of_number(convert<CarrierOf<F>>(x[i]), false);
}

__global__ void count_changes(const std::uint64_t* keys, std::size_t n, unsigned long long* count) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  const int changes = __syncthreads_count(i < n && (i == 0 || keys[i] != keys[i - 1]));
  if (threadIdx.x == 0 && changes > 0) atomicAdd(count, static_cast<unsigned long long>(changes));
}

}  // namespace

std::uint64_t count_distinct(Values x, cudaStream_t stream) {
  const FloatingPointEnvironment environment;
  samesum::check("x", x);
  if (x.size == 0) return 0;
  const std::size_t blocks = (x.size - 1) / threads + 1;
  std::size_t bytes = 0;
  std::uint64_t* none = nullptr;
  // Keys of formats narrower than fp64 have 32 bits, as their carrier.
  const int bits = x.format->bytes == 8 ? 64 : 32;
  check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, none, none, x.size, 0, bits, stream),
        "cub::DeviceRadixSort");
  const Memory keys = device_memory(x.size * sizeof(std::uint64_t)),
               sorted = device_memory(x.size * sizeof(std::uint64_t));
  const Memory workspace = device_memory(bytes), count = device_memory(sizeof(std::uint64_t));
  auto* from = static_cast<std::uint64_t*>(keys.get());
  auto* to = static_cast<std::uint64_t*>(sorted.get());
  with_kernel_format(*x.format, [&]<class F>() {
    check(launch(write_keys<F>, blocks, threads, stream, static_cast<const F*>(x.data), x.size, from),
          "write_keys");
  });
  check(cub::DeviceRadixSort::SortKeys(workspace.get(), bytes, from, to, x.size, 0, bits, stream),
        "cub::DeviceRadixSort");
  check(cudaMemsetAsync(count.get(), 0, sizeof(std::uint64_t), stream), "cudaMemsetAsync");
  check(launch(count_changes, blocks, threads, stream, to, x.size,
               static_cast<unsigned long long*>(count.get())),
        "count_changes");
  std::uint64_t result = 0;
  check(cudaMemcpyAsync(&result, count.get(), sizeof result, cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return result;
}

}  // namespace samesum::gpu
