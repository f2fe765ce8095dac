/// The scans: cumsum, cumprod, cummax, cummin and cumlogsumexp.
#pragma once

#include "samesum/operation/extrema.hpp"
#include "samesum/operation/logsumexp.hpp"
#include "samesum/operation/product.hpp"
#include "samesum/operation/sums.hpp"

namespace samesum {

/// The scan of the operation `Of`. Result i is the result of `Of` for the first i + 1 elements, or for the
/// first i if the scan is exclusive (Options::exclusive). It has the bits of that reduction, in the same
/// order with the same accumulator, and the same bound; with the accumulator fixed_point, on the grid of the
/// whole vector, unless one is given.
template <Name name, class Of> struct Scan : FactsOf<name> {
  static_assert(FactsOf<name>::facts.of == Of::name);
  static constexpr auto bound = Of::bound;
  template <template <class> class A, class F> static constexpr auto reducer(ReducerOptions options) {
    return Of::template reducer<A, F>(options);
  }
};
using CumSum = Scan<"cumsum", Sum>;
using CumProd = Scan<"cumprod", Prod>;
using CumMax = Scan<"cummax", Max>;
using CumMin = Scan<"cummin", Min>;
using CumLogSumExp = Scan<"cumlogsumexp", LogSumExp>;

/// Whether an operation is a scan.
template <class Operation> inline constexpr bool is_scan = Operation::facts.is_scan();

/// Sums elements with any accumulator, with the bits of TermReducer.
template <template <class> class A, class F> struct ElementSum : OwnStateReducer<A<Scalar<F>>, F> {
  SAMESUM_HD void finish(const A<Scalar<F>>& state, std::uint64_t n, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = to_format<F>(n == 0 ? Scalar<F>::zero() : state.result());
  }
};

/// The reducer of a scan, or of an operation that has a scan.
template <class Operation, template <class> class A, class F> constexpr auto scan_reducer() {
  if constexpr (Operation::has_accumulator)
    return ElementSum<A, F>{};
  else
    return Operation::template reducer<A, F>({});
}

}  // namespace samesum
