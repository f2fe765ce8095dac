/// Entry points of the translation units of the reference backend.
#pragma once

#include <vector>

#include "samesum/catalogue/backend.hpp"

namespace samesum::reference {

/// Methods of the format with that format index, except softmax, rolling methods and methods by key.
template <std::size_t index> std::vector<Entry> methods();
std::vector<Entry> methods_by_key();
std::vector<Entry> rolling_methods();
std::vector<Entry> softmaxes();

}  // namespace samesum::reference
