/// The list of operations. A new operation is a file beside this and a word in `Operations`.
#pragma once

#include "samesum/base/type_list.hpp"
#include "samesum/operation/extrema.hpp"
#include "samesum/operation/logsumexp.hpp"
#include "samesum/operation/moments.hpp"
#include "samesum/operation/norm.hpp"
#include "samesum/operation/product.hpp"
#include "samesum/operation/sums.hpp"

namespace samesum {

using Operations = TypeList<Sum, Mean, SumOfMagnitudes, SquaredNorm, Dot, Norm, Prod, LogSumExp,
                            MeanAndVariance, Min, Max, ArgMin, ArgMax>;

/// Formats of elements that a state of format F takes: its own, and in a wider state 16 bits (fp32), fp32
/// (fp64).
template <class T, class F>
inline constexpr bool can_read = std::is_same_v<T, F> || (std::is_same_v<F, fp32> && sizeof(T) == 2) ||
                                 (std::is_same_v<F, fp64> && sizeof(T) == 4);

}  // namespace samesum
