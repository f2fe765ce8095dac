/// A method: one operation in one order with one accumulator in one format on one backend, with its facts and
/// its contract.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "samesum/base/promise.hpp"
#include "samesum/bound/height.hpp"
#include "samesum/format/value.hpp"
#include "samesum/operation/layout.hpp"

namespace samesum {

/// Options of a call. `threads` never changes the bits of a method that promises `everywhere`.
struct Options {
  /// 0: one thread for each 2^17 elements, at most one for each processor. A number that is given is a limit:
  /// there are never more threads than pieces of work, nor than four for each processor. They come from a
  /// pool that lives as long as the process. Ignored by backends without threads.
  int threads = 0;
  double ddof = 0;  ///< for moments alone: the divisor of the sum of squares is n - ddof; 1 for a sample
};

/// Numbers that a call writes: in the format of the results, or std::int64_t for indices.
struct Results {
  const FormatInfo* format;  ///< nullptr for std::int64_t
  void* data;
  std::size_t size;  ///< of numbers
  /// For operations with a result per element: elements from a row of results to the next. 0: as in the
  /// input.
  std::size_t row_stride = 0;

  template <Element T>
  Results(std::span<T> out, std::size_t stride = 0)
      : format{&format_info<T>()}, data{out.data()}, size{out.size()}, row_stride{stride} {}
  Results(std::span<std::int64_t> out) : format{nullptr}, data{out.data()}, size{out.size()} {}
  Results(const FormatInfo* f, void* first, std::size_t n, std::size_t stride = 0)
      : format{f}, data{first}, size{n}, row_stride{stride} {}

  /// `row_stride`, or the stride of the input where that is 0.
  std::size_t stride_of(const Layout& input) const {
    return row_stride == 0 ? input.outer_stride : row_stride;
  }
};

/// The numbers that a method returned for one result: one, or the two of moments.
struct Returned {
  std::array<Number, 2> number;
  std::size_t count;
  Returned(Number x) : number{x, x}, count{1} {}
  Returned(Number mean, Number variance) : number{mean, variance}, count{2} {}
};

struct BoundOptions {
  /// 1: the bound is rigorous. Below, for sums: what the error exceeds with a probability of at most
  /// 1 - probability, for given elements, over the ways in which roundings fall: if each has mean 0 whatever
  /// the earlier ones were (Higham and Mary 2019; Hallman and Ipsen 2022; bound.hpp has the proof). Equal or
  /// structured elements break that: of 10^6 times 0.1 in fp32 a loop is 46 times this off, at 0.99. So does
  /// a sum that stagnates: each rounding drops the element, and the error may be as large as the sum. Never
  /// more than the rigorous bound, and equal to it for exact, Kahan and double_word, where theory gains
  /// nothing from Σ|x| alone, and for other operations.
  double probability = 1;
  std::size_t of = 0;  ///< which of the results: for moments 1 is the variance
  double ddof = 0;     ///< as in Options
};

/// A call that is bound to its data and can be run many times, on a GPU by one thread at a time.
using Job = std::function<Number()>;

/// Values where a backend can read them, and what keeps them there.
struct Placed {
  Values values;
  std::shared_ptr<const void> owner;
};

struct Code;

struct Method {
  std::string name;         ///< "sum/tree/kahan/bf16@cpu", "dot/exact/fp32@cpu", "max/fp16@cuda"
  std::string operation;    ///< "sum"
  std::string order;        ///< "" where none is needed: the promise is then order_free
  std::string accumulator;  ///< "plain", "kahan", …, "exact"; "" where the operation has a state of its own
  const FormatInfo* format;  ///< of the accumulator, and of the results; softmax has results as its elements
  std::string backend;       ///< "reference", "cpu", "cuda"
  Promise promise;
  int inputs;                  ///< 2 for dot
  int results;                 ///< numbers per result: 2 for moments
  bool gives_index;            ///< the results are std::int64_t
  bool per_element;            ///< softmax: a result per element, in the format of the elements
  bool slow = false;           ///< by its nature, and for the study's sake: one GPU thread, one cell for all
  std::size_t state_bytes;     ///< of one lane's state, as stored by this library
  int operations_per_element;  ///< floating-point operations that one `add` costs (integer ones for exact), 0
                               ///< where that depends on the elements
  std::string height_formula;  ///< of `height`, in words of n

  /// Additions on the longest path from an element to the result.
  Height height(std::size_t n) const;

  /// Whether elements of that format can be read: sums of one vector and exact methods take all, others their
  /// own and narrower ones.
  bool takes(const FormatInfo& input) const;
  /// The same for a layout. On a GPU some sums, whose order or accumulator has no kernel for batches, and all
  /// sums of elements wider than the accumulator, reduce one vector only.
  bool takes(const FormatInfo& input, const Layout& layout) const;

  /// Format of the results; nullptr for std::int64_t.
  const FormatInfo* result_format(const FormatInfo& input) const {
    return gives_index ? nullptr : per_element ? &input : format;
  }
  std::size_t result_bytes() const {
    return gives_index ? sizeof(std::int64_t) : static_cast<std::size_t>(results) * format->bytes;
  }

  /// A rigorous bound on |result - truth of the n elements as given|, rounded up; reduction_bound.hpp and the
  /// accumulators have the formulas. Infinity if the result is not finite, if an overflow on the way cannot
  /// be excluded, or if the bound itself is beyond a double.
  ///
  /// What the result itself does not say the caller knows, as `magnitudes`: for sum and mean at least Σ|x|,
  /// for dot at least Σ|xy|, for which (‖x‖ + its bound)·(‖y‖ + its bound) serves, for moments at least
  /// max|x| (optional, it helps where squares underflow or overflow), for softmax at least the largest minus
  /// the smallest element of the row. Other operations do not read it, nor do exact ones. Where it is left
  /// out, the bound of sum, mean and dot is infinite. For argmin and argmax the bound is about the element at
  /// the index, and the result is not read. Throws std::invalid_argument for negative magnitudes, for a
  /// result of another format, and unless 0 < probability <= 1.
  double bound(const FormatInfo& input, std::size_t n, Returned result,
               double magnitudes = std::numeric_limits<double>::infinity(), BoundOptions options = {}) const;

  /// The one number that x, or x and y, reduce to. Throws std::invalid_argument for arguments that do not fit
  /// together and for methods that give an index or two numbers, and on the backend "cuda" gpu::Error, which
  /// names the call that failed.
  Number operator()(Values x, Options options = {}) const;
  Number operator()(Values x, Values y, Options options = {}) const;

  /// The same, bound to its data to be run many times. The data must outlive the job. What has to be moved is
  /// moved here. Data on a GPU must be complete, or on their way in its default stream; gpu.hpp has calls for
  /// other streams.
  Job bind(Values x, Options options = {}) const;
  Job bind(Values x, Values y, Options options = {}) const;

  /// x where this method's backend can read it: x itself on a CPU, a copy in its memory on a GPU unless x is
  /// there already. Binding what is placed moves nothing.
  Placed place(Values x) const;

 private:
  friend struct Code;
  const Code* code_ = nullptr;  ///< what runs it
};

/// Reduces x (and y, for two inputs, which has as many elements) as laid out. Each result has the bits of the
/// same reduction of its elements alone: it does not depend on how many there are, on its place or on
/// strides. x is in the memory of the host; on the backend "cuda" it is copied there and back (gpu.hpp has
/// calls for data that are there). A result of no elements is +0 for sums, norms and dot, 1 for prod, -inf
/// for logsumexp, NaN for mean and moments, -1 for argmin and argmax, and for min +inf, for max -inf, where
/// NumPy and PyTorch raise an error. Softmax takes rows; its result (r, c) lies where element (r, c) lies, or
/// in rows that are out.row_stride apart, and may take the place of the element. Throws
/// std::invalid_argument, before anything is read or written, for what does not fit together, and for sizes,
/// strides or offsets whose products overflow.
void reduce(const Method& method, Values x, Layout layout, Results out, Options options = {});
void reduce(const Method& method, Values x, Values y, Layout layout, Results out, Options options = {});

/// A message that names the argument of such a call and the remedy; empty if all are valid. `y` is null for
/// one input. Offsets are read only if they are in the memory of the host.
std::string validation_error(const Method& method, const Values& x, const Values* y, const Layout& layout,
                             const Results& out, bool offsets_are_here);
std::string validation_error(const Method& method, const Options& options);

/// Throws std::invalid_argument for a negative number of threads.
void check(const Options& options);

}  // namespace samesum
