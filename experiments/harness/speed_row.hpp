/// Speeds as rows of results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/bars.hpp"
#include "harness/timed_row.hpp"

namespace samesum::harness {

/// The fields that identify a row.
Json speed_key(const Cell& cell, const std::string& method, std::uint64_t seed);

/// The row of a cell as it is compared with others.
SpeedRow speed_row_of(const Cell& cell, const Json& row);

/// Computes `gb_per_s` of a run that moves `bytes` from the seconds of the row.
void derive_speed(Json& row, std::size_t bytes);

/// Computes `bars`, the verdicts on the targets of the rows of a cell. `others` are the rows of other cells.
/// Nothing is compared with a row whose bits or results are wrong.
void derive_bars(std::vector<Json>& rows, const Cell& cell, std::vector<SpeedRow> others);

/// Counts targets (bars) that are reached and missed.
struct BarCount {
  int held = 0, missed = 0;
  void add(const Json& row);
  std::string text() const {
    return std::to_string(held) + " targets reached, " + std::to_string(missed) + " missed";
  }
};

}  // namespace samesum::harness
