/// Calls on a GPU in which only some elements take part: these are packed on the device.
#pragma once

#include "samesum/catalogue/backend.hpp"

namespace samesum::gpu {

/// Runs such a call, as Backend::run_selected. Memory on the device: 3 bits for each element, and the packed
/// elements.
void run_selected(HostRun& work);

/// Packs the elements of one or two vectors that take part, on the device that holds x.
PackedInputs packed(const Values& x, const Values& y, const Options& options);

}  // namespace samesum::gpu
