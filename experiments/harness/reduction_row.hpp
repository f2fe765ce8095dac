/// Speeds of reductions as rows of results, and what they are held to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/bars.hpp"
#include "harness/reduction_speed.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// The verdicts on that method, of what was measured in turns in one cell.
std::vector<Verdict> reduction_verdicts(const ReductionCell& cell, const Speed& method,
                                        const std::vector<Speed>& measured);

/// The fields that tell rows apart.
Json reduction_key(const ReductionCell& cell, const std::string& method, std::uint64_t seed);

/// The fields that are measured.
Json reduction_values(const ReductionCell& cell, const Speed& method, const std::vector<Speed>& measured);

/// "65536 x 1024", "2^28", "1 x 4096 x 131072".
std::string shape_in_words(const ReductionCell& cell);

}  // namespace samesum::harness
