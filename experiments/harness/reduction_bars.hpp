/// What the speeds of reductions are held to.
#pragma once

#include <string>
#include <vector>

#include "harness/bars.hpp"
#include "harness/reduction_speed.hpp"

namespace samesum::harness {

/// The verdicts on that method, of what was measured in turns in one cell.
std::vector<Verdict> reduction_verdicts(const ReductionCell& cell, const Speed& method,
                                        const std::vector<Speed>& measured);

}  // namespace samesum::harness
