/// The list of operations. To add one, write a file beside this one, and add its type here and its facts to
/// facts.hpp; a sum of terms is added to sums.hpp alone, and its facts.
#pragma once

#include "samesum/operation/by_key.hpp"
#include "samesum/operation/extrema.hpp"
#include "samesum/operation/logsumexp.hpp"
#include "samesum/operation/moments.hpp"
#include "samesum/operation/norm.hpp"
#include "samesum/operation/product.hpp"
#include "samesum/operation/rolling.hpp"
#include "samesum/operation/scans.hpp"
#include "samesum/operation/sums.hpp"

namespace samesum {

using Operations =
    Sums::And<Norm, Prod, LogSumExp, MeanAndVariance, Min, Max, ArgMin, ArgMax, CumSum, CumProd, CumMax,
              CumMin, CumLogSumExp, RollingSum, RollingMean, RollingVar, RollingMin, RollingMax, ScatterAdd,
              ScatterMean, ScatterMin, ScatterMax, ScatterCount>;

/// Whether a state of format F accepts elements of format T: its own format, 16-bit formats if F is fp32, and
/// fp32 if F is fp64.
template <class T, class F>
inline constexpr bool can_read = std::is_same_v<T, F> || (std::is_same_v<F, fp32> && sizeof(T) == 2) ||
                                 (std::is_same_v<F, fp64> && sizeof(T) == 4);

}  // namespace samesum
