/// The operations that sum terms, with any accumulator: sum, mean, sum_of_magnitudes, squared_norm and dot.
#pragma once

#include "samesum/operation/operation.hpp"
#include "samesum/operation/term_reducer.hpp"

namespace samesum {

struct Sum : SumOfTerms {
  static constexpr std::string_view name = "sum";
  static constexpr std::string_view summary = "sum of the elements";
  static constexpr auto bound = bound_of_sum;
  template <template <class> class A, class F> static constexpr TermReducer<A, F> reducer(ReducerOptions) {
    return {{}, Term::element, false};
  }
};
struct Mean : SumOfTerms {
  static constexpr std::string_view name = "mean";
  static constexpr std::string_view summary = "mean of the elements";
  static constexpr auto bound = bound_of_mean;
  template <template <class> class A, class F> static constexpr TermReducer<A, F> reducer(ReducerOptions) {
    return {{}, Term::element, true};
  }
};
struct SumOfMagnitudes : SumOfTerms {
  static constexpr std::string_view name = "sum_of_magnitudes";
  static constexpr std::string_view summary = "sum of the absolute values of the elements";
  static constexpr auto bound = bound_of_magnitudes;
  template <template <class> class A, class F> static constexpr TermReducer<A, F> reducer(ReducerOptions) {
    return {{}, Term::magnitude, false};
  }
};
struct SquaredNorm : SumOfTerms {
  static constexpr std::string_view name = "squared_norm";
  static constexpr std::string_view summary = "sum of the squares of the elements";
  static constexpr auto bound = bound_of_squares;
  template <template <class> class A, class F> static constexpr TermReducer<A, F> reducer(ReducerOptions) {
    return {{}, Term::square, false};
  }
};
struct Dot : SumOfTerms {
  static constexpr std::string_view name = "dot";
  static constexpr std::string_view summary = "dot product of two vectors";
  static constexpr auto bound = bound_of_products;
  static constexpr int inputs = 2;
  template <template <class> class A, class F> static constexpr TermReducer<A, F> reducer(ReducerOptions) {
    return {{}, Term::product, false};
  }
};

}  // namespace samesum
