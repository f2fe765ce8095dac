/// CUB (of the toolkit, or newer where the build was given its headers) and Thrust.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>

#include <cub/device/device_reduce.cuh>
#include <vector>

#include "harness/peers.hpp"
#include "samesum/backend/cuda/call.hpp"
#include "samesum/backend/cuda/upload.hpp"
#if CCCL_VERSION >= 3001000
#include <cuda/iterator>
#endif

namespace samesum::harness {

#if CCCL_VERSION >= 3001000
/// A memory resource that gives out the workspace, so that CUB allocates nothing while it is timed.
struct Workspace {
  void* memory;
  void* allocate(::cuda::stream_ref, std::size_t, std::size_t = 256) { return memory; }
  void deallocate(::cuda::stream_ref, void*, std::size_t, std::size_t = 256) noexcept {}
  void* allocate_sync(std::size_t, std::size_t = 256) { return memory; }
  void deallocate_sync(void*, std::size_t, std::size_t = 256) noexcept {}
  bool operator==(const Workspace&) const = default;
  friend void get_property(const Workspace&, ::cuda::mr::device_accessible) noexcept {}
};
#endif

namespace {

template <class F> struct NativeOf { using type = F; };
template <> struct NativeOf<fp16> { using type = __half; };
template <> struct NativeOf<bf16> { using type = __nv_bfloat16; };
template <class F> using Native = typename NativeOf<F>::type;

struct Widen {
  template <class T> __host__ __device__ float operator()(T x) const { return static_cast<float>(x); }
};

/// CUB's two phases are ours, but for a state that is not null beside a size that is too small.
template <class Sum> int in_two_phases(gpu::Call& call, Sum sum) {
  std::size_t needed = 0;
  cudaError_t error = sum(nullptr, needed);
  if (error == cudaSuccess && gpu::has_workspace(call, std::max(needed, gpu::no_bytes), error))
    error = sum(call.workspace, call.bytes);
  return error;
}

/// The accumulator is the type of the result: a narrower input is widened first.
template <class F, class T> struct RunToRun {
  static constexpr bool exists = std::is_same_v<F, T> || (std::is_same_v<F, fp32> && sizeof(T) == 2);
  static int launch(gpu::Call& call) {
    const auto* x = static_cast<const Native<T>*>(call.x);
    auto* out = static_cast<Native<F>*>(call.out);
    return in_two_phases(call, [&](void* workspace, std::size_t& bytes) {
      if constexpr (std::is_same_v<F, T>)
        return cub::DeviceReduce::Sum(workspace, bytes, x, out, call.n, call.stream);
      else
        return cub::DeviceReduce::TransformReduce(workspace, bytes, x, out, call.n,
                                                  ::cuda::std::plus<float>{}, Widen{}, 0.0f, call.stream);
    });
  }
};

template <class F, class T> struct ThrustReduce {
  static constexpr bool exists = std::is_same_v<F, T> && sizeof(F) >= 4;
  /// Thrust returns the sum to the host, so that it waits for the stream and allocates, as its users do.
  static int launch(gpu::Call& call) {
    cudaError_t error;
    if (!gpu::has_workspace(call, gpu::no_bytes, error)) return error;
    const auto* x = static_cast<const F*>(call.x);
    const F sum = thrust::reduce(thrust::cuda::par.on(call.stream), x, x + call.n, F{});
    error = cudaMemcpyAsync(call.out, &sum, sizeof sum, cudaMemcpyDefault, call.stream);
    return error == cudaSuccess ? cudaStreamSynchronize(call.stream) : error;
  }
};

#if CCCL_VERSION >= 3001000
template <class Determinism> struct With {
  template <class F, class T> struct Sum {
    static constexpr bool exists = std::is_same_v<F, T> && sizeof(F) >= 4;
    static int launch(gpu::Call& call) {
      cudaError_t error;
      if (!gpu::has_workspace(call, std::size_t{64} << 20, error)) return error;
      const auto environment = ::cuda::std::execution::env{
          ::cuda::stream_ref{call.stream},
          ::cuda::std::execution::prop{::cuda::mr::__get_memory_resource, Workspace{call.workspace}},
          ::cuda::execution::require(Determinism{})};
      return cub::DeviceReduce::Sum(static_cast<const F*>(call.x), static_cast<F*>(call.out), call.n,
                                    environment);
    }
  };
};
#endif

template <template <class, class> class Peer>
void append(std::vector<Variant>& all, const std::string& name, Promise promise) {
  Formats::for_each([&]<class F>() {
    Variant v = describe_peer<F>(name, promise);
    Formats::for_each([&]<class T>() {
      if constexpr (Peer<F, T>::exists) v.launch[Formats::index_of<T>()] = Peer<F, T>::launch;
    });
    v.move = gpu::place;
    v.start = gpu::start;
    if (v.launch[v.format->index]) all.push_back(v);
  });
}

}  // namespace

std::vector<Variant> gpu_peers() {
  std::vector<Variant> all;
  if (!gpu::absence().empty()) return all;
  append<RunToRun>(all, "cub/run_to_run", Promise::run_to_run);
#if CCCL_VERSION >= 3001000
  append<With<::cuda::execution::determinism::not_guaranteed_t>::Sum>(all, "cub/not_guaranteed",
                                                                      Promise::none);
  append<With<::cuda::execution::determinism::gpu_to_gpu_t>::Sum>(all, "cub/gpu_to_gpu", Promise::run_to_run);
#endif
  append<ThrustReduce>(all, "thrust/reduce", Promise::run_to_run);
  return all;
}

}  // namespace samesum::harness
