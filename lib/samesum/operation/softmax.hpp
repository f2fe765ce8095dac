/// Softmax and log-softmax over rows: their definition, their methods and their error bounds.
///
/// A row x_0 … x_{n-1} in a format T is computed in a format C: fp64 by methods in fp64, else fp32. T is C or
/// the next narrower one: can_read<T, C>. With RN for rounding to nearest, ties to even, the results are
///   m = the largest x_i;  d_i = RN_C(x_i - m);  e_i = exp_of_nonpositive(d_i), see elementary.hpp;
///   s = the sum of the e_i, each rounded to the accumulator's format, in the order `tree` by a plain
///       accumulator; or the exact sum of the e_i, rounded once to C;
///   softmax: RN_T(RN_C(e_i · RN_C(1/s)));  log-softmax: RN_T(RN_C(d_i - log s)), log of elementary.hpp.
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
enum class SoftmaxSum { fp16, bf16, fp32, fp64, exact, online };

/// What distinguishes the methods of softmax and log-softmax.
struct SoftmaxForm {
  SoftmaxSum sum;
  bool in_fp64;  ///< whether it is computed in fp64, else in fp32
  bool log;
};
/// Returns `of.operator()<C>()` for the format C in which a form is computed.
template <class Of> auto with_computed(const SoftmaxForm& form, Of of) {
  return form.in_fp64 ? of.template operator()<fp64>() : of.template operator()<fp32>();
}

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
template <class F> struct ExactDenominator {
  using Format = F;
  static constexpr SoftmaxSum sum = SoftmaxSum::exact;
  static constexpr std::string_view order = "", accumulator = "exact";
  static constexpr Promise promise = Promise::order_free;
};
/// Denominator summed in the same pass that finds the largest element.
template <class F> struct OnlineDenominator {
  using Format = F;
  static constexpr SoftmaxSum sum = SoftmaxSum::online;
  static constexpr std::string_view order = "", accumulator = "online";
  static constexpr Promise promise = Promise::everywhere;
};
using Denominators =
    TypeList<PlainDenominator<fp16, SoftmaxSum::fp16>, PlainDenominator<bf16, SoftmaxSum::bf16>,
             PlainDenominator<fp32, SoftmaxSum::fp32>, ExactDenominator<fp32>, OnlineDenominator<fp32>,
             PlainDenominator<fp64, SoftmaxSum::fp64>, ExactDenominator<fp64>, OnlineDenominator<fp64>>;

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
  SoftmaxForm form;
  double of_denominator;  ///< |s - Σe^(x_i - m)| / Σe^(x_i - m)
};
/// Returns the error bounds for a row of `columns` elements. `format` is that of the elements. `spread` is at
/// least (largest - smallest) of the row.
SoftmaxBound softmax_bound(const FormatInfo& format, std::size_t columns, double spread,
                           const SoftmaxForm& form);

}  // namespace samesum
