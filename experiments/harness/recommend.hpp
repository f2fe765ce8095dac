/// Which of the measured methods to use.
#pragma once

#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "samesum/catalogue/choose.hpp"

namespace samesum::harness {

/// The wish about these data: their length, format, condition and magnitudes.
Wish wish_for(const Truth& truth, const FormatInfo& input, Wish wish);

struct Recommendation {
  const Method* method;
  std::string reason;
};

/// The method that samesum::choose takes for these data and what was measured: the fastest that is sure to be
/// within one ulp of the input's format and keeps its bits everywhere; an exact one if it is nearly as fast,
/// or if no bound is relative to the sum (it is 0 or not finite). Where none is sure, the one with the
/// smallest error. `measurements` is sorted by merit and not empty.
Recommendation recommend(const std::vector<Measurement>& measurements, const FormatInfo& input,
                         const Truth& truth);

}  // namespace samesum::harness
