/// Which of the measured methods to use.
#pragma once

#include <string>
#include <vector>

#include "harness/measure.hpp"

namespace samesum::harness {

struct Recommendation {
  const Variant* variant;
  std::string reason;
};

/// The fastest method that is sure to be within one ulp of the input's format on these data (its rigorous
/// bound says so), keeps its bits everywhere and holds the input's values; an exact one if it is nearly as
/// fast. Where none is sure, the one with the smallest error. `measurements` is sorted by merit and not
/// empty.
Recommendation recommend(const std::vector<Measurement>& measurements, const FormatInfo& input,
                         const Truth& truth);

}  // namespace samesum::harness
