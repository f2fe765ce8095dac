/// The largest element and the sum of e^(x - largest), in one pass over the data.
#pragma once

#include "samesum/format/elementary.hpp"

namespace samesum {

/// State of the online softmax (Milakov and Gimelshein 2018, Online normalizer calculation for softmax): when
/// a larger element arrives, the sum so far is scaled down. V is a pack of fp32 or fp64. An element is merged
/// as the state {x, 1}. One exponential serves both cases, and the fused multiply-add rounds once.
///
/// A fresh state is the identity of `merge`. So is, to the last bit, any state whose largest element is -inf,
/// unless both states are of this kind: its sum is multiplied by e^-inf = 0. If all elements are -inf, each
/// counts 1; an element +inf also counts 1. A NaN makes the sum NaN permanently.
template <class V> struct OnlineSoftmax {
  using Number = typename V::Carrier;
  V largest = V::broadcast(-std::numeric_limits<Number>::infinity()), sum = V::zero();

  SAMESUM_HD void add(V x) { merge({x, V::broadcast(1)}); }

  SAMESUM_HD void merge(const OnlineSoftmax& other) {
    const auto rises = other.largest.v > largest.v;
    // Equal values may be infinite, and inf - inf is NaN.
    const V apart = select(rises, largest - other.largest, other.largest - largest);
    const V factor = exp_of_nonpositive(select(other.largest == largest, V::zero(), apart));
    sum = fma(select(rises, sum, other.sum), factor, select(rises, other.sum, sum));
    largest = select(rises, other.largest, largest);
  }

  /// Returns Σe^(x - largest). It is NaN if the largest element is infinite, because e^(x - largest) is then
  /// NaN for the elements that equal it.
  SAMESUM_HD V denominator() const {
    return select(is_finite(largest), sum, V::broadcast(std::numeric_limits<Number>::quiet_NaN()));
  }
};

}  // namespace samesum
