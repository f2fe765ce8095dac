/// What stands in for the kernels of matrix units in builds without them.
#include <stdexcept>

#include "tensor_cores/hardware.hpp"
#include "tensor_cores/sums_study.hpp"

namespace samesum::tensor_cores {

const std::vector<Unit>& units() {
  throw std::runtime_error{
      "this build has no kernels for the matrix units of Hopper: it needs CUDA and the architecture 90"};
}
std::size_t rows_of_sums(bool) { return 0; }
void study_sums(harness::Study&) {}

}  // namespace samesum::tensor_cores
