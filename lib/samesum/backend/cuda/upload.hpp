/// Host data on a GPU: what `Variant::bind` does on this backend.
#pragma once

#include "samesum/variant.hpp"

namespace samesum::gpu {

/// x on the current device: x itself where the device can read it already, else a copy.
Placed place(Values x);

/// A job on placed values, with a stream and a workspace of its own.
Job start(const Variant& variant, Placed x);

}  // namespace samesum::gpu
