/// Dot products and norms of cuBLAS, which is loaded only where there is a GPU: it is large, and a program
/// that was linked to it would not start without it.
#include <cublas_v2.h>
#include <dlfcn.h>

#include <string>

#include "harness/peers.hpp"
#include "samesum/backend/cuda/device/call.hpp"

namespace samesum::harness {
namespace {

using gpu::Launch;

/// The functions of the library. Results lie in device memory.
struct Cublas {
  void* library = dlopen(("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR)).c_str(), RTLD_NOW | RTLD_LOCAL);

  template <class Function> Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
  decltype(cublasSetStream_v2)* set_stream = function<decltype(cublasSetStream_v2)>("cublasSetStream_v2");
  decltype(cublasSdot_v2_64)* dot_fp32 = function<decltype(cublasSdot_v2_64)>("cublasSdot_v2_64");
  decltype(cublasDdot_v2_64)* dot_fp64 = function<decltype(cublasDdot_v2_64)>("cublasDdot_v2_64");
  decltype(cublasSnrm2_v2_64)* norm_fp32 = function<decltype(cublasSnrm2_v2_64)>("cublasSnrm2_v2_64");
  decltype(cublasDnrm2_v2_64)* norm_fp64 = function<decltype(cublasDnrm2_v2_64)>("cublasDnrm2_v2_64");
  cublasHandle_t handle = create();

  cublasHandle_t create() const {
    const auto create = function<decltype(cublasCreate_v2)>("cublasCreate_v2");
    const auto set_mode = function<decltype(cublasSetPointerMode_v2)>("cublasSetPointerMode_v2");
    cublasHandle_t made = nullptr;
    const bool done = library && create && set_mode && set_stream && dot_fp32 && dot_fp64 && norm_fp32 &&
                      norm_fp64 && create(&made) == CUBLAS_STATUS_SUCCESS &&
                      set_mode(made, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS;
    return done ? made : nullptr;
  }
};

const Cublas& cublas() {
  static const Cublas only;
  return only;
}

/// Runs a function of cuBLAS on one vector. It needs no workspace of the caller.
template <class Run> cudaError_t enqueue(Launch& l, Run run) {
  cudaError_t error;
  if (!gpu::accept_workspace(l, gpu::size_if_none_needed, error)) return error;
  const bool done = cublas().set_stream(cublas().handle, l.stream) == CUBLAS_STATUS_SUCCESS &&
                    run(static_cast<std::int64_t>(l.call.layout.n)) == CUBLAS_STATUS_SUCCESS;
  return done ? cudaGetLastError() : cudaErrorUnknown;
}

template <class F> cudaError_t enqueue_dot(Launch& l) {
  const auto dot = [] {
    if constexpr (std::is_same_v<F, fp32>)
      return cublas().dot_fp32;
    else
      return cublas().dot_fp64;
  }();
  return enqueue(l, [&](std::int64_t n) {
    return dot(cublas().handle, n, static_cast<const F*>(l.call.x.data), 1,
               static_cast<const F*>(l.call.y.data), 1, static_cast<F*>(l.call.out.data));
  });
}

template <class F> cudaError_t enqueue_norm(Launch& l) {
  const auto norm = [] {
    if constexpr (std::is_same_v<F, fp32>)
      return cublas().norm_fp32;
    else
      return cublas().norm_fp64;
  }();
  return enqueue(l, [&](std::int64_t n) {
    return norm(cublas().handle, n, static_cast<const F*>(l.call.x.data), 1,
                static_cast<F*>(l.call.out.data));
  });
}

}  // namespace

std::vector<Entry> cublas_peers() {
  if (!cublas().handle) return {};
  std::vector<Entry> all;
  all.push_back(describe_vector_peer<Dot, fp32>("cublas/dot", gpu::run_launch<enqueue_dot<fp32>>));
  all.push_back(describe_vector_peer<Dot, fp64>("cublas/dot", gpu::run_launch<enqueue_dot<fp64>>));
  all.push_back(describe_vector_peer<Norm, fp32>("cublas/norm", gpu::run_launch<enqueue_norm<fp32>>));
  all.push_back(describe_vector_peer<Norm, fp64>("cublas/norm", gpu::run_launch<enqueue_norm<fp64>>));
  return all;
}

std::string cublas_version() {
  const auto get = cublas().function<decltype(cublasGetProperty)>("cublasGetProperty");
  std::string text;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    if (!cublas().handle || !get || get(part, &value) != CUBLAS_STATUS_SUCCESS) return {};
    text += (text.empty() ? "" : ".") + std::to_string(value);
  }
  return text;
}

}  // namespace samesum::harness
