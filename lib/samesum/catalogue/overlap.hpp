/// Whether the results of a call share memory with its inputs.
#pragma once

#include "samesum/catalogue/method.hpp"

namespace samesum {

/// Returns a message that names the input of which `out` overlaps any element; empty if there is none. All
/// three are valid otherwise; `y` is null for one input.
std::string overlap_error(const Values& x, const Values* y, const Results& out);

}  // namespace samesum
