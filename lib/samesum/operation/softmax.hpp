/// Softmax and log-softmax over rows: their definition, their methods and their error bounds.
///
/// For a row x_0 … x_{n-1} in a format T (fp16, bf16 or fp32), with RN for rounding to nearest, ties to even,
/// the results are defined by
///   m = the largest x_i;  d_i = RN32(x_i - m);  e_i = exp_of_nonpositive(d_i), see elementary.hpp;
///   s = the sum of the e_i, each rounded to the accumulator's format, in the order `tree` by a plain
///       accumulator; or the exact sum of the e_i, rounded once to fp32;
///   softmax: RN_T(RN32(e_i · RN32(1/s)));  log-softmax: RN_T(RN32(d_i - log s)), log of elementary.hpp.
/// The `online` form takes m and s from OnlineSoftmax in the order `tree`: it reads the row once less and has
/// bits of its own. The bits of a row depend only on that row, not on its place, on other rows or on strides.
///
/// A row with a NaN or +inf, or with -inf alone, gives the canonical NaN in all places, as in PyTorch: some
/// x_i - m is NaN, and so is s. Beside finite elements, -inf gives 0, in log-softmax -inf. An fp16
/// accumulator overflows if s is beyond 65504; then softmax is 0 and log-softmax -inf.
#pragma once

#include <string_view>

#include "samesum/call/promise.hpp"
#include "samesum/format/formats.hpp"
#include "samesum/operation/facts.hpp"

namespace samesum {

/// How the denominator is summed: by a plain accumulator in a format, exactly, or in the same pass that finds
/// the largest element.
enum class SoftmaxSum { fp16, bf16, fp32, exact, online };

/// The operation softmax. Each operation has a method for each of the `Denominators`, on every backend.
struct Softmax : FactsOf<"softmax"> {
  static constexpr bool log = false;
};
/// The operation log-softmax.
struct LogSoftmax : FactsOf<"log_softmax"> {
  static constexpr bool log = true;
};
using Softmaxes = TypeList<Softmax, LogSoftmax>;

/// Denominator summed by a plain accumulator in format F.
template <class F, SoftmaxSum how> struct PlainDenominator {
  using Format = F;
  static constexpr SoftmaxSum sum = how;
  static constexpr std::string_view order = "tree", accumulator = "plain";
  static constexpr Promise promise = Promise::everywhere;
};
/// Denominator summed exactly. Order-free: permuted columns give the same bits, permuted.
struct ExactDenominator {
  using Format = fp32;
  static constexpr SoftmaxSum sum = SoftmaxSum::exact;
  static constexpr std::string_view order = "", accumulator = "exact";
  static constexpr Promise promise = Promise::order_free;
};
/// Denominator summed in the same pass that finds the largest element.
struct OnlineDenominator {
  using Format = fp32;
  static constexpr SoftmaxSum sum = SoftmaxSum::online;
  static constexpr std::string_view order = "", accumulator = "online";
  static constexpr Promise promise = Promise::everywhere;
};
using Denominators =
    TypeList<PlainDenominator<fp16, SoftmaxSum::fp16>, PlainDenominator<bf16, SoftmaxSum::bf16>,
             PlainDenominator<fp32, SoftmaxSum::fp32>, ExactDenominator, OnlineDenominator>;

/// Rigorous error bounds for a row of finite numbers; softmax_bound.cpp has the proof. A bound is infinite
/// where the theory gives none: if u times the height of the tree is not small, or if something may overflow.
struct SoftmaxBound {
  /// Returns a bound on |computed - true| for an element with the true result `value`. `below` is at least
  /// (largest of the row) - x_i, and not negative.
  double of_element(double value, double below) const;
  /// Returns a bound on |Σ computed - 1| over the row. For softmax only: infinite for log-softmax.
  double of_sum() const;

  const FormatInfo* format;
  std::size_t columns;
  double spread;
  bool log;
  double of_denominator;  ///< |s - Σe^(x_i - m)| / Σe^(x_i - m)
};
/// Returns the error bounds for a row of `columns` elements. `format` is that of the elements: fp16, bf16 or
/// fp32. `spread` is at least (largest - smallest) of the row.
SoftmaxBound softmax_bound(const FormatInfo& format, std::size_t columns, double spread, SoftmaxSum sum,
                           bool log);

}  // namespace samesum
