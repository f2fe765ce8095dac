/// Softmax and log-softmax over rows, with the same bits everywhere.
///
/// For a row x_0 … x_{n-1} of T, which is fp16, bf16 or fp32, this is what is computed, RN being rounding to
/// nearest, ties to even:
///   m = the largest x_i;  d_i = RN32(x_i - m);  e_i = exp_of_nonpositive(d_i), see elementary.hpp;
///   s = the sum of the e_i in the order `tree` by a plain accumulator (each e_i rounded to its format
///   first),
///       or the exact sum rounded once to fp32;
///   softmax: RN_T(RN32(e_i · RN32(1/s)));  log-softmax: RN_T(RN32(d_i - log s)), log of elementary.hpp.
/// The `online` form takes m and s from OnlineSoftmax in the order `tree`: one pass over the row less, and
/// bits of its own. A row's bits depend on that row alone: not on its place, on other rows or on strides.
///
/// A row with a NaN or with +inf, or of -inf alone, gives NaN (the canonical one) in all its places, as in
/// PyTorch: x_i - m is NaN somewhere, and so is s. Beside finite elements, -inf gives 0, log-softmax -inf. An
/// fp16 accumulator overflows where s is beyond 65504: then softmax is 0, log-softmax -inf.
#pragma once

#include <string_view>

#include "samesum/base/promise.hpp"
#include "samesum/format/formats.hpp"

namespace samesum {

/// How the denominator is summed.
enum class SoftmaxSum { fp16, bf16, fp32, exact, online };

/// The operations, and what sums their denominators: there is a method for each pair, on every backend.
struct Softmax {
  static constexpr std::string_view name = "softmax";
  static constexpr bool log = false, gives_index = false, per_element = true;
  static constexpr int inputs = 1, results = 1;
};
struct LogSoftmax : Softmax {
  static constexpr std::string_view name = "log_softmax";
  static constexpr bool log = true;
};
using Softmaxes = TypeList<Softmax, LogSoftmax>;

template <class F, SoftmaxSum how> struct PlainDenominator {
  using Format = F;
  static constexpr SoftmaxSum sum = how;
  static constexpr std::string_view order = "tree", accumulator = "plain";
  static constexpr Promise promise = Promise::everywhere;
};
/// order_free: permuted columns give the same bits, permuted.
struct ExactDenominator {
  using Format = fp32;
  static constexpr SoftmaxSum sum = SoftmaxSum::exact;
  static constexpr std::string_view order = "", accumulator = "exact";
  static constexpr Promise promise = Promise::order_free;
};
struct OnlineDenominator {
  using Format = fp32;
  static constexpr SoftmaxSum sum = SoftmaxSum::online;
  static constexpr std::string_view order = "", accumulator = "online";
  static constexpr Promise promise = Promise::everywhere;
};
using Denominators =
    TypeList<PlainDenominator<fp16, SoftmaxSum::fp16>, PlainDenominator<bf16, SoftmaxSum::bf16>,
             PlainDenominator<fp32, SoftmaxSum::fp32>, ExactDenominator, OnlineDenominator>;

/// Rigorous bounds on the error of a row of finite numbers; softmax_bound.cpp has the proof. Infinity where
/// the theory gives none: where u times the height of the tree is not small, or something may overflow.
struct SoftmaxBound {
  /// |computed - true| of an element whose true value is that; `below` is at least (largest of the row) -
  /// x_i, and not negative.
  double of_element(double value, double below) const;
  /// |Σ computed - 1| over the row; of softmax alone.
  double of_sum() const;

  const FormatInfo* format;
  std::size_t columns;
  double spread;
  bool log;
  double of_denominator;  ///< |s - Σe^(x_i - m)| / Σe^(x_i - m)
};
/// `format` is that of the elements, fp16, bf16 or fp32; `spread` is at least (largest - smallest) of the
/// row.
SoftmaxBound softmax_bound(const FormatInfo& format, std::size_t columns, double spread, SoftmaxSum sum,
                           bool log);

}  // namespace samesum
