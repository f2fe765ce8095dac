/// The operations that sum terms, with any accumulator: sum, mean, sum_of_magnitudes, squared_norm and dot.
#pragma once

#include "samesum/base/type_list.hpp"
#include "samesum/operation/facts.hpp"
#include "samesum/operation/reduction_bound.hpp"
#include "samesum/operation/term_reducer.hpp"

namespace samesum {

/// An operation that sums terms; for a mean it divides the sum by their number.
template <Name name, Term term, double (*formula)(const Reduced&), bool mean = false>
struct SumOfTerms : FactsOf<name> {
  static constexpr auto bound = formula;
  template <template <class> class A, class F> static constexpr TermReducer<A, F> reducer(ReducerOptions) {
    return {{}, term, mean};
  }
};
using Sum = SumOfTerms<"sum", Term::element, bound_of_sum>;
using Mean = SumOfTerms<"mean", Term::element, bound_of_mean, true>;
using SumOfMagnitudes = SumOfTerms<"sum_of_magnitudes", Term::magnitude, bound_of_magnitudes>;
using SquaredNorm = SumOfTerms<"squared_norm", Term::square, bound_of_squares>;
using Dot = SumOfTerms<"dot", Term::product, bound_of_products>;
using Sums = TypeList<Sum, Mean, SumOfMagnitudes, SquaredNorm, Dot>;

}  // namespace samesum
