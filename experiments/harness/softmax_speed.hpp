/// How long softmax over rows takes on a GPU, and how long copying as much.
#pragma once

#include <string>
#include <vector>

#include "samesum/operation/softmax.hpp"

namespace samesum::harness {

struct SoftmaxShape {
  std::size_t rows, columns;
};

struct SoftmaxSpeed {
  std::string
      schedule;  ///< "automatic", "narrow", "held", "wide", "online"; "copy" reads and writes all once
  SoftmaxShape shape;
  const FormatInfo* format;
  double seconds, low, high;  ///< median, and the 10th and 90th percentile
};

/// Each method in turn, so many times, by the GPU's clock. Small matrices rotate through memory that is
/// several times the L2 cache. Throws std::runtime_error where there is no GPU or not enough memory.
std::vector<SoftmaxSpeed> softmax_speeds(const FormatInfo& format, SoftmaxShape shape, int repeats);

}  // namespace samesum::harness
