#include <stdexcept>

#include "tensor_cores/hardware.hpp"

namespace samesum::tensor_cores {

const std::vector<Unit>& units() {
  throw std::runtime_error{
      "this build has no kernels for the matrix units of Hopper: it needs CUDA and the architecture 90"};
}

}  // namespace samesum::tensor_cores
