#include <stdexcept>

#include "harness/downstream/downstream.hpp"

namespace samesum::harness {

bool has_linear_algebra() { return false; }
Solver conjugate_gradients(const System&, const Column&, double) { throw std::logic_error{"without Eigen"}; }
Trained train(std::span<const float>, const Lesson&, const Summation&) {
  throw std::logic_error{"without Eigen"};
}

}  // namespace samesum::harness
