/// Means of fp16 whose sum overflows in fp16.
#pragma once

#include "samesum/format/fp16_wide.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum {

/// The mean of fp16 elements whose sum overflows in fp16, in numbers of fp16's precision with the exponents
/// of fp32. It replaces a mean that is not finite; elements that are not finite leave it as it is. A quotient
/// that rounds beyond the largest number of fp16, as no mean of such numbers is, becomes that number.
template <template <class> class A>
struct WideMeanReducer : StateReducer<A<Scalar<fp16_wide>>, Scalar<fp16_wide>> {
  using Format = fp16;
  using State = A<Scalar<fp16_wide>>;
  SAMESUM_HD static bool is_wanted(std::size_t at, const void* out) {
    return !is_finite(Scalar<fp16>{convert<float>(static_cast<const fp16*>(out)[at])});
  }
  SAMESUM_HD Scalar<fp16_wide> item(const Read<fp16>& e) const { return {e.x.v}; }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    const Scalar<fp16_wide> sum = state.result();
    if (n == 0 || !is_wanted(at, out) || !is_finite(sum)) return;
    constexpr double most = samesum::Format<fp16>::max_finite;
    const double mean = static_cast<double>(sum.v) / static_cast<double>(n);
    static_cast<fp16*>(out)[at] = to_format<fp16>(Scalar<fp16>::of(mean > most    ? most
                                                                   : mean < -most ? -most
                                                                                  : mean));
  }
};

}  // namespace samesum
