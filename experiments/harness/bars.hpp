/// Bars: the speeds that methods are compared with, and whether they reach them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/bench.hpp"
#include "harness/median.hpp"

namespace samesum::harness {

struct SpeedRow {
  Cell cell;
  std::string method;
  double seconds;                ///< median
  Processes rounds = {};         ///< rows of one cell were measured in turns
  std::optional<int> grid = {};  ///< exponent of the grid that the method was given
};

/// Result of comparing a row with one bar.
struct Verdict {
  std::string against;     ///< the other method, or "us" for microseconds
  double factor, reached;  ///< ratios of speeds, or microseconds
  bool holds() const { return against == "us" ? reached <= factor : reached >= factor; }
};

/// Compares the row with every bar whose other method was measured; a row in a CUDA graph with none. If both
/// took turns, the ratio is that of their rounds.
std::vector<Verdict> verdicts(const SpeedRow& row, const std::vector<SpeedRow>& measured);

}  // namespace samesum::harness
