#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace samesum::gpu {

/// A call of CUDA that failed: what() names it and says why.
class Error : public std::runtime_error {
 public:
  Error(const std::string& call, cudaError_t code)
      : std::runtime_error{"samesum: " + call + " failed: " + cudaGetErrorString(code)}, code_{code} {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

}  // namespace samesum::gpu
