/// Errors of CUDA as exceptions, and memory that frees itself.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "samesum/gpu.hpp"

namespace samesum::gpu {

inline void check(cudaError_t code, const std::string& call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // it has been told: the next call shall not find it
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

}  // namespace samesum::gpu
