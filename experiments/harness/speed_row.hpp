/// Speeds as rows of results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/bars.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// The fields that identify a row.
Json speed_key(const Cell& cell, const std::string& method, std::uint64_t seed);

/// The measured fields of a run that moves `bytes`, for every row with a speed.
Json timing(std::size_t bytes, const Speed& speed);

/// The measured fields, and the verdicts on the targets (bars) of the method.
Json speed_values(const Cell& cell, const Speed& speed, const std::vector<Verdict>& verdicts);

/// What the verification of a method, or of a peer, has found wrong.
std::string what_is_wrong(const std::string& method);

/// Counts targets (bars) that are reached and missed.
struct BarCount {
  int held = 0, missed = 0;
  void add(const Json& row);
  std::string text() const {
    return std::to_string(held) + " targets reached, " + std::to_string(missed) + " missed";
  }
};

}  // namespace samesum::harness
