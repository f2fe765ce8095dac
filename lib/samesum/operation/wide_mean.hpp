/// Means of fp16 elements whose sum overflows in fp16.
#pragma once

#include "samesum/format/fp16_wide.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum {

/// Computes the mean of fp16 elements whose sum overflows in fp16, in numbers with the precision of fp16 and
/// the exponents of fp32. Replaces a mean that is not finite, unless an element is not finite. A quotient
/// that rounds beyond the largest number of fp16 becomes that number, since no mean of such numbers exceeds
/// it.
template <template <class> class A>
struct WideMeanReducer : StateReducer<A<Scalar<fp16_wide>>, Scalar<fp16_wide>> {
  using Format = fp16;
  using State = A<Scalar<fp16_wide>>;
  /// Whether result `at` is to be replaced: it is not finite.
  SAMESUM_HD static bool must_replace(std::size_t at, const void* out) {
    return !is_finite(Scalar<fp16>{convert<float>(static_cast<const fp16*>(out)[at])});
  }
  SAMESUM_HD Scalar<fp16_wide> item(const InputElement<fp16>& e) const { return {e.x.v}; }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    const Scalar<fp16_wide> sum = state.result();
    if (n == 0 || !must_replace(at, out) || !is_finite(sum)) return;
    constexpr double most = samesum::Format<fp16>::max_finite;
    const double mean = static_cast<double>(sum.v) / static_cast<double>(n);
    static_cast<fp16*>(out)[at] = to_format<fp16>(Scalar<fp16>::of(mean > most    ? most
                                                                   : mean < -most ? -most
                                                                                  : mean));
  }
};

}  // namespace samesum
