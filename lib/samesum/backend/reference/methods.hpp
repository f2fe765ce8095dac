#pragma once

#include <vector>

#include "samesum/catalogue/backend.hpp"

namespace samesum::reference {

/// Methods in the format at place `index` of the list: all but softmax.
template <std::size_t index> std::vector<Entry> methods();
std::vector<Entry> softmaxes();

}  // namespace samesum::reference
