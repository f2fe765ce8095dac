/// Speeds as rows of results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/bars.hpp"
#include "harness/results.hpp"
#include "harness/speed.hpp"

namespace samesum::harness {

/// Arrays of so many bytes lie in L2, and in DRAM.
inline constexpr std::size_t l2_bytes = two_to(20), dram_bytes = two_to(28);

/// Where n elements lie that take so many bytes, on a CPU.
std::string place_of(std::size_t bytes, std::size_t n);

/// The fields that tell rows apart.
Json speed_key(const Cell& cell, const std::string& method, std::uint64_t seed);

/// What was measured of a run that moves so many bytes: in every row that tells a speed.
Json timing(std::size_t bytes, const Speed& speed);

/// The verdicts of a row.
Json bars_json(const std::vector<Verdict>& verdicts);

/// The fields that are measured.
Json speed_values(const Cell& cell, const Speed& speed, const std::vector<Verdict>& verdicts);

}  // namespace samesum::harness
