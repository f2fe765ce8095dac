/// Speeds as rows of results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/bars.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// The fields that tell rows apart.
Json speed_key(const Cell& cell, const std::string& method, std::uint64_t seed);

/// What was measured of a run that moves so many bytes: in every row that tells a speed.
Json timing(std::size_t bytes, const Speed& speed);

/// The fields that are measured, and how the method did against its bars.
Json speed_values(const Cell& cell, const Speed& speed, const std::vector<Verdict>& verdicts);

/// How many bars hold.
struct BarCount {
  int held = 0, missed = 0;
  void add(const Json& row);
  std::string text() const {
    return std::to_string(held) + " bars hold, " + std::to_string(missed) + " are missed";
  }
};

}  // namespace samesum::harness
