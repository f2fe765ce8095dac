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

#include <span>
#include <string>

#include "samesum/operation/matrix.hpp"
#include "samesum/promise.hpp"

namespace samesum {

/// How the denominator is summed.
enum class SoftmaxSum { fp16, bf16, fp32, exact, online };
/// False for a number that was cast and is none of these.
constexpr bool is_listed(SoftmaxSum sum) { return sum >= SoftmaxSum::fp16 && sum <= SoftmaxSum::online; }

struct SoftmaxOptions {
  SoftmaxSum accumulator = SoftmaxSum::fp32;
  bool log = false;
  int threads = 0;  ///< as in Options
};

/// Rows of `in`, in host memory, to `out`, which has the same shape and format. They may be the same place
/// with the same stride, but must not overlap otherwise. No column or no row: nothing is written. Throws
/// std::invalid_argument that names the argument and the remedy.
void softmax(Matrix in, MutableMatrix out, SoftmaxOptions options = {});

/// A message that names the argument and the remedy; empty if all are valid.
std::string validation_error(Matrix in, MutableMatrix out, SoftmaxOptions options);

/// Rigorous bounds on the error of a row of finite numbers; softmax_bound.cpp has the proof. Infinity where
/// the theory gives none: where u times the height of the tree is not small, or something may overflow.
struct SoftmaxBound {
  /// |computed - true| of an element whose true value is that; `below` is at least (largest of the row) -
  /// x_i. Throws std::invalid_argument for a negative one.
  double of_element(double value, double below) const;
  /// |Σ computed - 1| over the row; of softmax alone.
  double of_sum() const;

  const FormatInfo* format;
  std::size_t columns;
  double spread;
  bool log;
  double of_denominator;  ///< |s - Σe^(x_i - m)| / Σe^(x_i - m)
};
/// `spread` is at least (largest - smallest) of the row. Throws std::invalid_argument for a negative one, and
/// for a format or an accumulator that softmax does not take.
SoftmaxBound softmax_bound(const FormatInfo& format, std::size_t columns, double spread,
                           SoftmaxOptions options);

/// One call on one machine: what a backend needs to know. The arguments have been checked.
struct SoftmaxCall {
  const FormatInfo* format;
  const void* x;
  void* y;
  std::size_t rows, columns, x_stride, y_stride;
  SoftmaxSum accumulator;
  bool log;
  int threads;  ///< of a CPU
};

/// A row of the table of softmaxes.
struct SoftmaxVariant {
  std::string name;  ///< "softmax/tree/plain/fp32@cuda", "log_softmax/exact@cpu", "softmax/online/fp32@cpu"
  SoftmaxSum accumulator;
  bool log;
  std::string backend;              ///< "reference", "cpu", "cuda"
  Promise promise;                  ///< order_free: permuted columns give the same bits, permuted
  void (*run)(const SoftmaxCall&);  ///< null on the backend "cuda": gpu_softmax.hpp
};
/// Every one that runs in this process.
std::span<const SoftmaxVariant> softmax_variants();

}  // namespace samesum
