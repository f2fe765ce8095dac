/// The accumulator "kahan": compensated summation.
#pragma once

#include "samesum/accumulator/concept.hpp"

namespace samesum {

/// Kahan's summation (1965), which carries the excess of each addition into the next. `merge` uses TwoSum:
/// adding the other sum like an element would lose u·|partial sum| per level.
template <class V> struct Kahan {
  static constexpr std::string_view name = "kahan";
  static constexpr int operations_per_element = 4;
  static constexpr bool adds_as_it_merges = false;

  V sum = V::minus_zero(), excess = V::zero();
  SAMESUM_HD void add(V x) {
    const V y = x - excess;
    const V t = sum + y;
    const V lost = (t - sum) - y;
    excess = select(is_finite(lost), lost, V::zero());  // t - sum may overflow even if t does not
    sum = t;
  }
  SAMESUM_HD void merge(const Kahan& other) {
    const auto [t, error] = two_sum(sum, other.sum);
    excess = select(is_finite(error), (excess + other.excess) - error, V::zero());
    sum = t;
  }
  SAMESUM_HD V result() const { return select(excess == V::zero(), sum, sum - excess); }

  /// u|result| + (2u·[r > 0] + 14ru² + 4m(m+1)u²)·Σ|x| for r adds that round and then m merges on the longest
  /// path, if 14ru² <= 1/3 and (m+1)u <= 1/8; infinite otherwise.
  ///
  /// Proof, for u <= 2^-8. Let v = sum - excess be the value of a state, M its Σ|x|, |excess| <= C·M and
  /// |v - Σx| <= E·M. A prime marks the state after the operation.
  ///
  /// Add. y = (x - excess)(1+δ) loses at most u(|x| + CM). If |sum| >= |y|, then t and the new excess are
  /// Dekker's FastTwoSum and lose nothing more. Otherwise |t| <= 2(1+u)|y|, and t - sum is y plus at most
  /// u|t|. Its rounding and that of the second subtraction lose at most u(1+u)²(1+2u+2u²)(|x| + CM) + uC'M'.
  /// In both cases the new |excess| is at most u(1+u)²(|y| + |t|) <= 2u(1+u)⁴(1+2C+E)M'. That is below 3u·M'
  /// while E <= 0.44, which holds; so C = 3u. One add costs at most 2u|x| + 4.1u²|x| + 9.1u²M' <=
  /// 2u|x| + 14u²M', so r adds give E <= 2u + 14ru². (The leading 2u of the textbook, Higham eq. 4.8, assumes
  /// that higher-order terms are computed exactly; (-22,-68,-248,8) with 5 bits breaks it for `sum` alone.)
  ///
  /// Merge. TwoSum is exact, so only the two additions that compute the new excess round. They lose at most
  /// u(C + (1+u)(C + u(1+C+E)))M', and C grows to (1+u)²(C + u(1+C+E)). With (m+1)u <= 1/8 this gives
  /// C <= 3(k+1)u after k merges, so the next merge loses at most 8(k+1)u²M', and all merges 4m(m+1)u².
  ///
  /// Result. The last subtraction rounds once: u|result|.
  static Loss bound(const Summed& s) {
    const double r = static_cast<double>(s.height.adds), m = static_cast<double>(s.height.merges), u = s.u;
    if (42 * r * u * u > 1 || (m + 1) * u > 0.125) return loss_of_two_words(s, unbounded_error);
    const double states = (r > 0 ? 2 * u : 0) + (14 * r + 4 * m * (m + 1)) * u * u;
    return loss_of_two_words(s, u * s.result + states * s.magnitudes);
  }

  /// Equal to `bound`. The term 2u·Σ|x| is one rounding per element. Cancellation among these would reduce it
  /// to λu·(Σx²)^½ (Hallman and Ipsen 2022, on compensated summation), but Σx² may be as large as (Σ|x|)².
  static Loss probable_bound(const Summed& s, double) { return bound(s); }
};

}  // namespace samesum
