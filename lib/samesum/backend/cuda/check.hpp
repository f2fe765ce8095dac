/// Errors of CUDA as exceptions, and memory that frees itself.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "samesum/backend/cuda/error.hpp"
#include "samesum/backend/cuda/workspace.hpp"

namespace samesum::gpu {

inline void check(cudaError_t code, const std::string& call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // clears the error, so that the next call does not report it again
  throw Error{call, code};
}

inline std::string of_bytes(const char* call, std::size_t bytes) {
  return std::string{call} + " of " + std::to_string(bytes) + " bytes";
}

using Memory = std::shared_ptr<void>;

inline Memory device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), of_bytes("cudaMalloc", bytes));
  return {memory, [](void* p) { static_cast<void>(cudaFree(p)); }};
}

/// Enqueues a call with a workspace from `pool` (nullptr: the device's current one), taken and given back in
/// the order of the call's stream. enqueue(call) only sets call.bytes while call.workspace is null.
template <class AnyCall, class Enqueue>
void with_pool(const std::string& name, AnyCall& call, cudaMemPool_t pool, Enqueue enqueue) {
  check(enqueue(call), name);
  alignas(16) static std::byte not_used[no_bytes];
  if (call.bytes == no_bytes) {
    call.workspace = not_used;
    return check(enqueue(call), name);
  }
  check(pool ? cudaMallocFromPoolAsync(&call.workspace, call.bytes, pool, call.stream)
             : cudaMallocAsync(&call.workspace, call.bytes, call.stream),
        of_bytes("cudaMallocAsync", call.bytes));
  const cudaError_t error = enqueue(call), freed = cudaFreeAsync(call.workspace, call.stream);
  check(error, name);
  check(freed, "cudaFreeAsync");
}

}  // namespace samesum::gpu
