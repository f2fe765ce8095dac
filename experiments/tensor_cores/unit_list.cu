/// The list of instructions that parts of hardware.cu fill, and whether this machine has them.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "tensor_cores/gpu.cuh"
#include "tensor_cores/hardware.hpp"

namespace samesum::tensor_cores {

std::vector<Unit>& registered_units() {
  static std::vector<Unit> all;
  return all;
}

const std::vector<Unit>& units() {
  static const std::vector<Unit>& found = []() -> const std::vector<Unit>& {
    cudaDeviceProp properties{};
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess)
      throw std::runtime_error{"no GPU was found"};
    if (properties.major != 9)
      throw std::runtime_error{std::string{properties.name} +
                               " is no Hopper GPU: its compute capability is " +
                               std::to_string(properties.major) + "." + std::to_string(properties.minor)};
    std::ranges::sort(registered_units(), {}, &Unit::instruction);
    return registered_units();
  }();
  return found;
}

}  // namespace samesum::tensor_cores
