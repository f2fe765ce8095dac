/// Peers of the GPU: CUB (of the toolkit, or of newer headers if the build has them), Thrust and cuBLAS.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda/functional>
#include <iterator>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "harness/peers.hpp"
#include "samesum/backend/cuda/device/methods.hpp"
#if CCCL_VERSION >= 3001000
#include <cuda/iterator>
#endif

namespace samesum::harness {

#if CCCL_VERSION >= 3001000
/// A memory resource that returns the workspace of a launch, so that CUB allocates nothing in timed runs.
/// Without a workspace it records the size that CUB requests, and returns null: CUB then queries the size
/// once more and launches nothing.
struct Workspace {
  gpu::Launch* launch;
  void* allocate_sync(std::size_t bytes, std::size_t = 256) {
    if (launch->workspace == nullptr) launch->bytes = bytes;
    if (launch->bytes < bytes) throw std::bad_alloc{};
    return launch->workspace;
  }
  void deallocate_sync(void*, std::size_t, std::size_t = 256) noexcept {}
  void* allocate(::cuda::stream_ref, std::size_t bytes, std::size_t = 256) { return allocate_sync(bytes); }
  void deallocate(::cuda::stream_ref, void*, std::size_t, std::size_t = 256) noexcept {}
  bool operator==(const Workspace&) const = default;
  friend void get_property(const Workspace&, ::cuda::mr::device_accessible) noexcept {}
};
#endif

namespace {

using gpu::Launch;

template <class F> struct NativeOf { using type = F; };
template <> struct NativeOf<fp16> { using type = __half; };
template <> struct NativeOf<bf16> { using type = __nv_bfloat16; };
template <class F> using Native = typename NativeOf<F>::type;
template <class F> const Native<F>* elements(const Launch& l) {
  return static_cast<const Native<F>*>(l.call.x.data);
}

template <class F> struct Widen {
  template <class T> __host__ __device__ F operator()(T x) const { return static_cast<F>(x); }
};

/// Runs an algorithm of CUB in its two phases, which are also those of a launch: the query of the size, which
/// is not timed, or the run with a workspace of that size.
template <class Algorithm> cudaError_t in_two_phases(Launch& launch, Algorithm algorithm) {
  if (!refusal(*launch.call.method, launch.call.layout).empty()) return cudaErrorInvalidValue;
  if (launch.workspace != nullptr) return algorithm(launch.workspace, launch.bytes);
  const cudaError_t error = algorithm(nullptr, launch.bytes);
  launch.bytes = std::max(launch.bytes, gpu::size_if_none_needed);
  return error;
}

/// The type of the result is that of the accumulator. Elements of a narrower input are widened first.
template <class F, class T> struct RunToRun {
  static constexpr bool exists = std::is_same_v<F, T> || (std::is_same_v<F, fp32> && sizeof(T) == 2);
  static cudaError_t enqueue(Launch& launch) {
    auto* out = static_cast<Native<F>*>(launch.call.out.data);
    return in_two_phases(launch, [&](void* workspace, std::size_t& bytes) {
      if constexpr (std::is_same_v<F, T>)
        return cub::DeviceReduce::Sum(workspace, bytes, elements<T>(launch), out, launch.call.x.size,
                                      launch.stream);
      else
        return cub::DeviceReduce::TransformReduce(workspace, bytes, elements<T>(launch), out,
                                                  launch.call.x.size, ::cuda::std::plus<float>{},
                                                  Widen<float>{}, 0.0f, launch.stream);
    });
  }
};

template <class F, class T> struct ThrustReduce {
  static constexpr bool exists = std::is_same_v<F, T> && sizeof(F) >= 4;
  /// Thrust returns the sum to the host: it allocates, and waits for the stream, as in its users' programs.
  static cudaError_t enqueue(Launch& launch) {
    cudaError_t error;
    if (!gpu::accept_workspace(launch, gpu::size_if_none_needed, error)) return error;
    const F* x = elements<F>(launch);
    const F sum = thrust::reduce(thrust::cuda::par.on(launch.stream), x, x + launch.call.x.size, F{});
    error = cudaMemcpyAsync(launch.call.out.data, &sum, sizeof sum, cudaMemcpyDefault, launch.stream);
    return error == cudaSuccess ? cudaStreamSynchronize(launch.stream) : error;
  }
};

#if CCCL_VERSION >= 3001000
template <class Determinism> struct With {
  template <class F, class T> struct Sum {
    static constexpr bool exists = std::is_same_v<F, T> && sizeof(F) >= 4;
    /// CUB queries the size in each call with an environment; a CUDA graph records only what it launches.
    static cudaError_t enqueue(Launch& launch) {
      const auto environment = ::cuda::std::execution::env{
          ::cuda::stream_ref{launch.stream},
          ::cuda::std::execution::prop{::cuda::mr::__get_memory_resource, Workspace{&launch}},
          ::cuda::execution::require(Determinism{})};
      const cudaError_t error = cub::DeviceReduce::Sum(
          elements<F>(launch), static_cast<F*>(launch.call.out.data), launch.call.x.size, environment);
      launch.bytes = std::max(launch.bytes, gpu::size_if_none_needed);
      return error;
    }
  };
};
#endif

struct Begin {
  std::size_t apart;
  __host__ __device__ std::size_t operator()(std::size_t row) const { return row * apart; }
};
struct End {
  std::size_t n;
  __host__ __device__ std::size_t operator()(std::size_t begin) const { return begin + n; }
};

/// The offsets of the rows of a layout.
inline auto row_offsets(const Layout& layout) {
  return thrust::make_transform_iterator(thrust::counting_iterator<std::size_t>{0},
                                         Begin{layout.outer_stride});
}

/// Sums of rows, in fp32 or wider.
template <class F, class T> struct RowSums {
  static constexpr bool exists = RunToRun<F, T>::exists && sizeof(F) >= 4;
  static cudaError_t enqueue(Launch& launch) {
    const Layout& rows = launch.call.layout;
    const auto values = thrust::make_transform_iterator(elements<T>(launch), Widen<F>{});
    const auto begin = row_offsets(rows);
    const auto end = thrust::make_transform_iterator(begin, End{rows.n});
    return in_two_phases(launch, [&](void* workspace, std::size_t& bytes) {
      auto* out = static_cast<F*>(launch.call.out.data);
      if (rows.outer == 1)
        return cub::DeviceReduce::Sum(workspace, bytes, values, out, rows.n, launch.stream);
      return cub::DeviceSegmentedReduce::Sum(
          workspace, bytes, values, out, static_cast<std::int64_t>(rows.outer), begin, end, launch.stream);
    });
  }
};

/// Maxima of rows. CUB's Max begins with the lowest finite number, which is wrong for rows without elements.
template <class F> cudaError_t enqueue_max(Launch& launch) {
  const Layout& rows = launch.call.layout;
  const auto begin = row_offsets(rows);
  const auto end = thrust::make_transform_iterator(begin, End{rows.n});
  const F least = -std::numeric_limits<F>::infinity();
  return in_two_phases(launch, [&](void* workspace, std::size_t& bytes) {
    auto* out = static_cast<F*>(launch.call.out.data);
    if (rows.outer == 1)
      return cub::DeviceReduce::Reduce(workspace, bytes, elements<F>(launch), out, rows.n,
                                       ::cuda::maximum<>{}, least, launch.stream);
    return cub::DeviceSegmentedReduce::Reduce(workspace, bytes, elements<F>(launch), out,
                                              static_cast<std::int64_t>(rows.outer), begin, end,
                                              ::cuda::maximum<>{}, least, launch.stream);
  });
}
template <class F> void append_max(std::vector<Entry>& all) {
  all.push_back(describe_batch_peer<Max, F>("cub/max", gpu::run_launch<enqueue_max<F>>));
}

template <class F> cudaError_t enqueue_scan(Launch& launch) {
  return in_two_phases(launch, [&](void* workspace, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(workspace, bytes, elements<F>(launch),
                                         static_cast<F*>(launch.call.out.data), launch.call.x.size,
                                         launch.stream);
  });
}

/// Writes the sums of runs of equal keys to the results of these keys.
template <class F>
__global__ void scatter_runs(const std::uint32_t* keys, const F* sums, const int* runs, F* out) {
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < *runs; i += stride)
    out[keys[i]] = sums[i];
}

/// Sums by key as CUB's users compute them: a radix sort by key, a sum of each run of equal keys, and a copy
/// to the results. For elements, not rows.
template <class F> cudaError_t enqueue_by_key(Launch& launch) {
  if (launch.call.keys.format != KeyFormat::uint32 || launch.call.x.size >> 31 != 0)
    return cudaErrorInvalidValue;
  const auto n = static_cast<int>(launch.call.x.size);
  const int bits = std::max(static_cast<int>(std::bit_width(bins(launch.call) - 1)), 1);
  const auto* keys = static_cast<const std::uint32_t*>(launch.call.keys.data);
  const auto sort = [&](void* workspace, std::size_t& bytes, std::uint32_t* sorted, F* values) {
    return cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, sorted, elements<F>(launch), values, n, 0,
                                           bits, launch.stream);
  };
  const auto sum = [&](void* workspace, std::size_t& bytes, const std::uint32_t* sorted, const F* values,
                       std::uint32_t* unique, F* sums, int* runs) {
    return cub::DeviceReduce::ReduceByKey(workspace, bytes, sorted, unique, values, sums, runs,
                                          ::cuda::std::plus<F>{}, n, launch.stream);
  };
  const auto aligned = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
  const std::size_t of_keys = aligned(launch.call.x.size * sizeof(std::uint32_t)),
                    of_values = aligned(launch.call.x.size * sizeof(F)),
                    arrays = 2 * (of_keys + of_values) + aligned(sizeof(int));
  cudaError_t error = cudaSuccess;
  if (launch.workspace == nullptr) {
    std::size_t to_sort = 0, to_sum = 0;
    error = sort(nullptr, to_sort, nullptr, nullptr);
    if (error == cudaSuccess) error = sum(nullptr, to_sum, nullptr, nullptr, nullptr, nullptr, nullptr);
    launch.bytes = arrays + std::max({to_sort, to_sum, std::size_t{1}});
    return error;
  }
  if (launch.bytes <= arrays) return cudaErrorInvalidValue;
  auto* at = static_cast<std::byte*>(launch.workspace);
  const auto part = [&](std::size_t bytes) { return std::exchange(at, at + bytes); };
  auto *sorted = reinterpret_cast<std::uint32_t*>(part(of_keys)),
       *unique = reinterpret_cast<std::uint32_t*>(part(of_keys));
  auto *values = reinterpret_cast<F*>(part(of_values)), *sums = reinterpret_cast<F*>(part(of_values));
  auto* runs = reinterpret_cast<int*>(part(aligned(sizeof(int))));
  std::size_t temporary = launch.bytes - arrays;  // both algorithms check that it is enough
  auto* out = static_cast<F*>(launch.call.out.data);
  if (n > 0 && (error = sort(at, temporary, sorted, values))) return error;
  if (n > 0 && (error = sum(at, temporary, sorted, values, unique, sums, runs))) return error;
  if ((error = cudaMemsetAsync(out, 0, bins(launch.call) * sizeof(F), launch.stream))) return error;
  if (gpu::KeyStatus* const status = launch.status) {  // as if no key were bad
    error = cudaMemsetAsync(&status->first_bad_key, 0xff, sizeof status->first_bad_key, launch.stream);
    if (error == cudaSuccess)
      error = cudaMemsetAsync(&status->overflowed, 0, sizeof status->overflowed, launch.stream);
    if (error != cudaSuccess) return error;
  }
  if (n == 0) return cudaSuccess;
  const std::size_t most = std::min(launch.call.x.size, bins(launch.call));
  return gpu::launch(scatter_runs<F>, std::clamp<std::size_t>((most + 255) / 256, 1, 4096), 256,
                     launch.stream, unique, sums, runs, out);
}

template <class F> void append_scan_and_by_key(std::vector<Entry>& all) {
  all.push_back(describe_vector_peer<CumSum, F>("cub/inclusive_sum", gpu::run_launch<enqueue_scan<F>>));
  all.push_back(
      describe_vector_peer<ScatterAdd, F>("cub/sort_reduce_by_key", gpu::run_launch<enqueue_by_key<F>>));
}

using Device = Functions<Launch>;
using Runs = decltype(&Device::any);

/// Appends an entry for each format of results.
template <template <class, class> class Peer>
void append(std::vector<Entry>& all, Runs runs, std::string_view name, Promise promise) {
  Formats::for_each([&]<class F>() {
    Entry e = describe_peer<F>(name, promise);
    Formats::for_each([&]<class T>() {
      if constexpr (Peer<F, T>::exists)
        (e.code.device.*runs)[Formats::index_of<T>()] = gpu::run_launch<Peer<F, T>::enqueue>;
    });
    if ((e.code.device.*runs)[e.facts.format->index]) all.push_back(e);
  });
}

}  // namespace

PeerEntries gpu_peers() {
  PeerEntries all;
  if (!gpu::absence().empty()) return all;
  const auto vectors = &Device::vector;
  append<RunToRun>(all.sums, vectors, "cub/run_to_run", Promise::run_to_run);
#if CCCL_VERSION >= 3001000
  append<With<::cuda::execution::determinism::not_guaranteed_t>::Sum>(all.sums, vectors, "cub/not_guaranteed",
                                                                      Promise::none);
  append<With<::cuda::execution::determinism::gpu_to_gpu_t>::Sum>(all.sums, vectors, "cub/gpu_to_gpu",
                                                                  Promise::run_to_run);
#endif
  append<ThrustReduce>(all.sums, vectors, "thrust/reduce", Promise::run_to_run);
  append<RowSums>(all.batches, &Device::any, "cub/segmented", Promise::run_to_run);
  append_max<fp32>(all.batches);
  append_max<fp64>(all.batches);
  append_scan_and_by_key<fp32>(all.batches);
  append_scan_and_by_key<fp64>(all.batches);
#ifdef SAMESUM_CUBLAS
  std::ranges::copy(cublas_peers(), std::back_inserter(all.batches));
#endif
  return all;
}

}  // namespace samesum::harness
