/// Calls on elements in host memory of which only some take part: these are packed, portion by portion, or
/// something that changes no result stands in for the others.
#pragma once

#include "samesum/catalogue/backend.hpp"

namespace samesum::cpu {

/// Runs such a call by its method, as Backend::run_selected. Memory: portions of 2^15 elements; all elements
/// of a vector for scans, for long segments and for long results of fixed_point without a grid; all elements
/// by key.
void run_selected(HostRun& run);

/// Packs the elements of one or two vectors that take part.
PackedInputs packed(const Values& x, const Values& y, const Options& options);

}  // namespace samesum::cpu
