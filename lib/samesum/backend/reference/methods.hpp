#pragma once

#include <vector>

#include "samesum/backend/backend.hpp"

namespace samesum::reference {

/// Methods in the format at place `shard` of the list: all but softmax.
template <std::size_t shard> std::vector<Entry> methods();
std::vector<Entry> softmaxes();

}  // namespace samesum::reference
