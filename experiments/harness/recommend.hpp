/// Recommends one of the measured methods.
#pragma once

#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "samesum/catalogue/choose.hpp"

namespace samesum::harness {

/// Sets length, format, condition and magnitudes of the requirements to those of the data.
Requirements requirements_for(const Truth& truth, const FormatInfo& input, Requirements required);

struct Recommendation {
  const Method* method;
  std::string reason;
};

/// Recommends the method that samesum::choose takes for these data with the measured times: the fastest
/// method whose bound is within one ulp of the input's format and whose bits are the same everywhere; or an
/// exact method if it is nearly as fast, or if bounds relative to the sum do not exist (it is 0 or not
/// finite). If no bound is within one ulp, recommends the method with the smallest error. `measurements` must
/// be sorted by merit and not empty.
Recommendation recommend(const std::vector<Measurement>& measurements, const FormatInfo& input,
                         const Truth& truth);

}  // namespace samesum::harness
