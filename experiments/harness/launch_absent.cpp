#include <stdexcept>

#include "harness/launch.hpp"
#include "samesum/registry.hpp"

namespace samesum::harness {

Number sum_in_shape(const Variant&, Values, LaunchShape) { throw std::runtime_error{absent()[0].reason}; }

}  // namespace samesum::harness
