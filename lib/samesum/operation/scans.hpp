/// The scans: cumsum, cumprod, cummax, cummin and cumlogsumexp.
#pragma once

#include "samesum/operation/extrema.hpp"
#include "samesum/operation/logsumexp.hpp"
#include "samesum/operation/product.hpp"
#include "samesum/operation/sums.hpp"

namespace samesum {

/// What all scans share. Result i is the result of the operation `Of` for the first i + 1 elements, or for
/// the first i if the scan is exclusive (Options::exclusive). It has the bits of that reduction, in the same
/// order with the same accumulator, and the same bound; with the accumulator fixed_point, on the grid of the
/// whole vector, unless one is given.
template <class Of> struct Scan : Of {
  using Prefix = Of;  ///< declares a scan
  static constexpr bool has_result_per_element = true;
};

struct CumSum : Scan<Sum> {
  static constexpr std::string_view name = "cumsum";
  static constexpr std::string_view summary = "sums of the first elements";
};
struct CumProd : Scan<Prod> {
  static constexpr std::string_view name = "cumprod";
  static constexpr std::string_view summary = "products of the first elements";
};
struct CumMax : Scan<Max> {
  static constexpr std::string_view name = "cummax";
  static constexpr std::string_view summary = "largest of the first elements";
};
struct CumMin : Scan<Min> {
  static constexpr std::string_view name = "cummin";
  static constexpr std::string_view summary = "smallest of the first elements";
};
struct CumLogSumExp : Scan<LogSumExp> {
  static constexpr std::string_view name = "cumlogsumexp";
  static constexpr std::string_view summary = "log of sums of exponentials of the first elements";
};

/// Whether an operation is a scan.
template <class Operation> inline constexpr bool is_scan = requires { typename Operation::Prefix; };

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
