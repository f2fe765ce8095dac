/// The list of orders: a new one is a file beside this and a word here.
#pragma once

#include "samesum/format/formats.hpp"
#include "samesum/order/atomic.hpp"
#include "samesum/order/canonical.hpp"
#include "samesum/order/tree.hpp"

namespace samesum {

using Orders = TypeList<Serial, CoarsenedTree, Pairwise, Canonical16, Canonical128, Atomic, AtomicElement>;

}  // namespace samesum
