/// Other libraries' sums, to compare with: rows of a table like the variants, but none of our promises.
#pragma once

#include <span>

#include "samesum/variant.hpp"

namespace samesum::harness {

/// "cub/run_to_run/fp32@peer" and its like: as many as were compiled and can run here. Their promise is what
/// their documentation says; their bound is that of a sum in any order.
std::span<const Variant> peers();

inline bool is_peer(const Variant& v) { return v.backend == "peer"; }

}  // namespace samesum::harness
