/// The list of operations. A new one is a type, in a file beside this, and a word in `Operations`.
#pragma once

#include "samesum/operation/operation.hpp"

namespace samesum {

struct Sum : SumOfTerms {
  static constexpr std::string_view name = "sum";
  static constexpr auto bound = bound_of_sum;
  template <template <class> class A, class F> static constexpr TermFold<A, F> fold(FoldOptions) {
    return {{}, Term::element, false};
  }
};
struct Mean : SumOfTerms {
  static constexpr std::string_view name = "mean";
  static constexpr auto bound = bound_of_mean;
  template <template <class> class A, class F> static constexpr TermFold<A, F> fold(FoldOptions) {
    return {{}, Term::element, true};
  }
};
struct SumOfMagnitudes : SumOfTerms {
  static constexpr std::string_view name = "sum_of_magnitudes";
  static constexpr auto bound = bound_of_magnitudes;
  template <template <class> class A, class F> static constexpr TermFold<A, F> fold(FoldOptions) {
    return {{}, Term::magnitude, false};
  }
};
struct SquaredNorm : SumOfTerms {
  static constexpr std::string_view name = "squared_norm";
  static constexpr auto bound = bound_of_squares;
  template <template <class> class A, class F> static constexpr TermFold<A, F> fold(FoldOptions) {
    return {{}, Term::square, false};
  }
};
struct Dot : SumOfTerms {
  static constexpr std::string_view name = "dot";
  static constexpr auto bound = bound_of_products;
  static constexpr int inputs = 2;
  template <template <class> class A, class F> static constexpr TermFold<A, F> fold(FoldOptions) {
    return {{}, Term::product, false};
  }
};

struct Norm : OwnState {
  static constexpr std::string_view name = "norm";
  static constexpr auto bound = bound_of_norm;
  template <template <class> class, class F> static constexpr NormFold<F> fold(FoldOptions) { return {}; }
};
struct Prod : OwnState {
  static constexpr std::string_view name = "prod";
  static constexpr auto bound = bound_of_product;
  template <template <class> class, class F> static constexpr ProductFold<F> fold(FoldOptions) { return {}; }
};
struct LogSumExp : OwnState {
  static constexpr std::string_view name = "logsumexp";
  static constexpr auto bound = bound_of_logsumexp;
  template <class F> static constexpr bool in_format = std::is_same_v<F, fp32>;  // as exp and log
  template <template <class> class, class F> static constexpr LogSumExpFold fold(FoldOptions) { return {}; }
};
struct MeanAndVariance : OwnState {
  static constexpr std::string_view name = "moments";
  static constexpr bool can_be_exact = true;
  static constexpr int results = 2;
  template <template <class> class, class F> static constexpr MomentsFold<F> fold(FoldOptions options) {
    return {{}, options.ddof};
  }
};

/// Order-free: any order gives the same bits.
template <bool smallest, bool index> struct ExtremumOf : OwnState {
  static constexpr bool has_order = false, gives_index = index;
  static constexpr std::string_view name =
      index ? (smallest ? "argmin" : "argmax") : (smallest ? "min" : "max");
  static constexpr auto bound = bound_of_extremum;
  template <template <class> class, class F> static constexpr auto fold(FoldOptions) {
    if constexpr (index)
      return FirstExtremumFold<F>{smallest};
    else
      return ExtremumFold<F>{smallest};
  }
};
using Min = ExtremumOf<true, false>;
using Max = ExtremumOf<false, false>;
using ArgMin = ExtremumOf<true, true>;
using ArgMax = ExtremumOf<false, true>;

using Operations = TypeList<Sum, Mean, SumOfMagnitudes, SquaredNorm, Dot, Norm, Prod, LogSumExp,
                            MeanAndVariance, Min, Max, ArgMin, ArgMax>;

/// Formats of elements that a state of format F takes: its own, and in a wider state 16 bits (fp32), fp32
/// (fp64).
template <class T, class F>
inline constexpr bool can_read = std::is_same_v<T, F> || (std::is_same_v<F, fp32> && sizeof(T) == 2) ||
                                 (std::is_same_v<F, fp64> && sizeof(T) == 4);

}  // namespace samesum
