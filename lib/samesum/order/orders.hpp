/// The list of orders. A new one is a file in this folder and an entry here.
#pragma once

#include "samesum/format/formats.hpp"
#include "samesum/order/atomic.hpp"
#include "samesum/order/canonical.hpp"
#include "samesum/order/prefix.hpp"
#include "samesum/order/tree.hpp"

namespace samesum {

/// All orders of the catalogue.
using Orders =
    TypeList<Serial, CoarsenedTree, Pairwise, Canonical16, Canonical128, Atomic, AtomicElement, Prefix>;

}  // namespace samesum
