/// The largest element and the sum of e^(x - largest) in one pass over the data.
#pragma once

#include "samesum/format/elementary.hpp"

namespace samesum {

/// Milakov and Gimelshein (2018, Online normalizer calculation for softmax): where a larger element comes,
/// the sum so far is scaled down. V is a pack of fp32. An element is merged as the state {x, 1}; one
/// exponential does for both cases, and the fused multiply-add rounds once.
///
/// A fresh state is the identity of `merge`, and so to the last bit is any state whose largest element is
/// -inf, unless both are: what it holds is multiplied by e^-inf = 0. Elements of -inf alone count 1 each, and
/// so do those of +inf. A NaN makes the sum NaN, for good.
template <class V> struct OnlineSoftmax {
  V largest = V::all(-std::numeric_limits<float>::infinity()), sum = V::zero();

  SAMESUM_HD void add(V x) { merge({x, V::all(1)}); }

  SAMESUM_HD void merge(const OnlineSoftmax& other) {
    const auto rises = other.largest.v > largest.v;
    // Equal ones may be infinite, and inf - inf is NaN.
    const V apart = select(rises, largest - other.largest, other.largest - largest);
    const V factor = exp_of_nonpositive(select(other.largest == largest, V::zero(), apart));
    sum = fma(select(rises, sum, other.sum), factor, select(rises, other.sum, sum));
    largest = select(rises, other.largest, largest);
  }

  /// What log-sum-exp is the log of, but for the factor e^largest: NaN where the largest is infinite, as
  /// e^(x - largest) then is of the elements that equal it.
  SAMESUM_HD V denominator() const {
    return select(is_finite(largest), sum, V::all(std::numeric_limits<float>::quiet_NaN()));
  }
};

}  // namespace samesum
