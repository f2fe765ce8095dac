/// The exception for CUDA errors.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace samesum::gpu {

/// Thrown if a CUDA call fails; what() names the call and the reason.
class Error : public std::runtime_error {
 public:
  Error(const std::string& call, cudaError_t code)
      : std::runtime_error{"samesum: " + call + " failed: " + cudaGetErrorString(code)}, code_{code} {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

}  // namespace samesum::gpu
