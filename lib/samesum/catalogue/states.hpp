/// What every method states about its states, whichever backend computes them: how partials merge, finish and
/// become bytes, and what a sum records for `estimate`.
#pragma once

#include <vector>

#include "samesum/catalogue/backend.hpp"

namespace samesum {

/// The parts `partial_form` and `watch` of the methods of the format with that index, for every backend: the
/// names of these entries have none.
template <std::size_t index> std::vector<Entry> states();

}  // namespace samesum
