/// CUDA errors as exceptions, and device memory that frees itself.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "samesum/backend/cuda/device/error.hpp"
#include "samesum/backend/cuda/device/workspace.hpp"

namespace samesum::gpu {

inline void check(cudaError_t code, const std::string& call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // clears the error, so that the next call does not report it again
  throw Error{call, code};
}

inline std::string with_size(const char* call, std::size_t bytes) {
  return std::string{call} + " of " + std::to_string(bytes) + " bytes";
}

using Memory = std::shared_ptr<void>;

inline Memory device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), with_size("cudaMalloc", bytes));
  return {memory, [](void* p) { static_cast<void>(cudaFree(p)); }};
}

/// Allocates memory in stream order from `pool` (nullptr: the device's current pool).
inline void* pool_memory(std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  void* memory = nullptr;
  check(
      pool ? cudaMallocFromPoolAsync(&memory, bytes, pool, stream) : cudaMallocAsync(&memory, bytes, stream),
      with_size("cudaMallocAsync", bytes));
  return memory;
}

/// Enqueues a call with a workspace that is allocated from `pool` (nullptr: the device's current pool) and
/// freed in stream order. enqueue(call) only sets call.bytes while call.workspace is null. Throws Error.
template <class AnyCall, class Enqueue>
void with_pool(const std::string& name, AnyCall& call, cudaMemPool_t pool, Enqueue enqueue) {
  check(enqueue(call), name);
  alignas(16) static std::byte not_used[size_if_none_needed];
  if (call.bytes == size_if_none_needed) {
    call.workspace = not_used;
    return check(enqueue(call), name);
  }
  call.workspace = pool_memory(call.bytes, pool, call.stream);
  const cudaError_t error = enqueue(call), freed = cudaFreeAsync(call.workspace, call.stream);
  check(error, name);
  check(freed, "cudaFreeAsync");
}

}  // namespace samesum::gpu
