/// What each method's speed is held to, beside what was measured with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/bench.hpp"

namespace samesum::harness {

struct SpeedRow {
  Cell cell;
  std::string method;
  double seconds;                   ///< median
  std::vector<double> rounds = {};  ///< seconds of each round; those of one cell were measured in turns
};

/// How a row did against one bar.
struct Verdict {
  std::string against;     ///< whose speed, or "us"
  double factor, reached;  ///< a ratio of speeds, or microseconds
  bool holds() const { return against == "us" ? reached <= factor : reached >= factor; }
};

/// The median of the rounds' ratios, of what took turns: what disturbs a round disturbs both.
double ratio_of_rounds(const std::vector<double>& slow, const std::vector<double>& fast);

/// Against every bar for which the other method was measured. Where both took turns, the ratio is that of
/// their rounds.
std::vector<Verdict> verdicts(const SpeedRow& row, const std::vector<SpeedRow>& measured);

}  // namespace samesum::harness
