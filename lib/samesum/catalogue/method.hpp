/// A method: its facts, its calls and its error bound.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "samesum/base/promise.hpp"
#include "samesum/bound/height.hpp"
#include "samesum/format/value.hpp"
#include "samesum/operation/keys.hpp"
#include "samesum/operation/layout.hpp"

namespace samesum {

/// Options of a call. `threads` never changes the bits of a method that promises `everywhere`.
struct Options {
  /// 0: one thread per 2^17 elements, at most one per processor. A positive number is a limit: there are
  /// never more threads than pieces of work, nor more than four per processor. Threads come from a pool that
  /// lives as long as the process. Backends without threads ignore this option.
  int threads = 0;
  double ddof = 0;  ///< for moments: the divisor of the sum of squares is n - ddof; 1 for a sample
  /// For scans: result i is that of the first i elements, without element i. Result 0 is the one for no
  /// elements.
  bool exclusive = false;
  /// For the accumulator fixed_point: terms are rounded to multiples of 2^grid. If it is not given, each
  /// result has the finest grid on which no sum of n terms as large as its largest one can overflow: its bits
  /// then depend on its own elements alone. A scan has one grid for each vector, found from all its elements:
  /// a result then depends on the elements behind it, too. By key, there is one grid, found from all elements
  /// and the number of keys: the bits of a result then depend on the elements of other keys.
  std::optional<int> grid = {};
  /// For sums, counts and extrema by key: each result is combined with the number that `out` holds, which
  /// counts as one more element, before the others. A key without elements leaves its number as it is.
  bool combine = false;
};
/// Limits of Options::grid: below each product of two numbers, and above it.
inline constexpr int lowest_grid = 2 * Format<fp64>::min_quantum,
                     highest_grid = 2 * (Format<fp64>::max_exponent + 1);

/// The array for the results of a call: numbers in the format of the results, or std::int64_t for indices.
struct Results {
  const FormatInfo* format;  ///< nullptr for std::int64_t
  void* data;
  std::size_t size;  ///< number of elements in `data`
  /// Row stride of the results, in elements, for operations with one result per element. 0 means the row
  /// stride of the input.
  std::size_t row_stride = 0;

  template <Element T>
  Results(std::span<T> out, std::size_t stride = 0)
      : format{&format_info<T>()}, data{out.data()}, size{out.size()}, row_stride{stride} {}
  Results(std::span<std::int64_t> out) : format{nullptr}, data{out.data()}, size{out.size()} {}
  Results(const FormatInfo* f, void* first, std::size_t n, std::size_t stride = 0)
      : format{f}, data{first}, size{n}, row_stride{stride} {}

  /// Returns `row_stride`, or the stride of the input if that is 0.
  std::size_t stride_of(const Layout& input) const {
    return row_stride == 0 ? input.outer_stride : row_stride;
  }
};

/// The numbers that a method returned for one result: one number, or mean and variance.
struct ResultNumbers {
  std::array<Number, 2> number;
  std::size_t count;
  ResultNumbers(Number x) : number{x, x}, count{1} {}
  ResultNumbers(Number mean, Number variance) : number{mean, variance}, count{2} {}
};

/// Options of an error bound.
struct BoundOptions {
  /// 1: the bound is rigorous. Below 1, for sums: for given elements, the error exceeds the bound with a
  /// probability of at most 1 - probability, if each rounding has mean 0 whatever the earlier ones were
  /// (Higham and Mary 2019; Hallman and Ipsen 2022; bound.hpp has the proof). Equal or structured elements
  /// violate that: for 10^6 times 0.1 in fp32, the error of a loop is 46 times the bound for 0.99. So do sums
  /// that stagnate: each rounding drops the element, and the error may be as large as the sum.
  ///
  /// The bound never exceeds the rigorous one. It equals the rigorous one for operations other than sums,
  /// and for exact, Kahan and double_word sums, for which no tighter probable bound follows from Σ|x| alone.
  double probability = 1;
  std::size_t result_index = 0;  ///< index of the result; for moments 0 is the mean and 1 the variance
  double ddof = 0;               ///< as in Options
  std::optional<int> grid = {};  ///< as in Options
};

/// A call that is bound to its data and can be run many times; on a GPU by one thread at a time.
using Job = std::function<Number()>;

/// A view of values in memory that a backend can read, and the owner of that memory.
struct Placed {
  Values values;
  std::shared_ptr<const void> owner;
};

struct Code;

/// One operation in one order with one accumulator in one format on one backend. `find` and `methods` return
/// references to methods, which live as long as the process.
struct Method {
  std::string name;          ///< "sum/tree/kahan/bf16@cpu", "dot/exact/fp32@cpu", "max/fp16@cuda"
  std::string operation;     ///< "sum"
  std::string summary;       ///< what the operation computes: "sum of the elements"
  std::string order;         ///< "" if the operation or accumulator has no order; the promise is then
                             ///< order_free, except for "online", which promises everywhere
  std::string accumulator;   ///< "plain", …, "exact", "online"; "" for operations with a state of their own
  const FormatInfo* format;  ///< format of the accumulator and the results; softmax returns results in the
                             ///< format of its input
  std::string backend;       ///< "reference", "cpu", "cuda"
  Promise promise;
  int inputs;                   ///< number of inputs: 2 for dot, 0 for scatter_count
  int results;                  ///< numbers per result: 2 for moments
  bool returns_index;           ///< whether the results are indices or counts, std::int64_t
  bool has_result_per_element;  ///< whether each element has a result, as in softmax and scans
  bool keeps_format = false;    ///< whether the results have the format of the elements, as in softmax
  bool takes_keys = false;      ///< whether elements are reduced by key, as in scatter_add
  bool is_slow = false;     ///< whether the method is slow by design and exists for the study: one GPU thread
                            ///< sums all elements, or every element is added to one atomic cell
  std::size_t state_bytes;  ///< bytes of the state of one lane, as this library stores it
  int operations_per_element;  ///< floating-point operations per `add` (integer operations for exact); 0 if
                               ///< that depends on the elements
  std::string height_formula;  ///< formula of `height` in n

  /// Returns the number of additions on the longest path from an element to the result.
  Height height(std::size_t n) const;

  /// Whether the method accepts elements of a format. Sums of one vector and exact methods accept all
  /// formats, other methods their own and narrower ones.
  bool accepts(const FormatInfo& input) const;
  /// Whether the method accepts elements of a format in a layout. On a GPU, sums whose order or accumulator
  /// has no kernel for batches, and all sums of elements wider than the accumulator, accept only single
  /// vectors.
  bool accepts(const FormatInfo& input, const Layout& layout) const;

  /// Whether the method is a scan: result i is that of the first i + 1 elements.
  bool is_scan() const { return has_result_per_element && !keeps_format; }

  /// Returns the format of the results; nullptr for std::int64_t.
  const FormatInfo* result_format(const FormatInfo& input) const {
    return returns_index ? nullptr : keeps_format ? &input : format;
  }
  /// Returns the size of a result in bytes.
  std::size_t result_bytes() const {
    return returns_index ? sizeof(std::int64_t) : static_cast<std::size_t>(results) * format->bytes;
  }

  /// Returns a rigorous bound on |result - true result for the n elements as given|, rounded up.
  /// reduction_bound.hpp and the accumulators have the formulas.
  ///
  /// The bound is infinite if the result is not finite, if an overflow on the way cannot be excluded, or if
  /// the bound itself is beyond a double. With options.probability < 1 it is a probable bound.
  ///
  /// @param input format of the elements.
  /// @param n number of elements; by key, those of the key, and one more if Options::combine was set. For
  ///   fixed_point without a given grid, by key the number of all keys and for scans that of the elements of
  ///   the vector, which determine the grid.
  /// @param result what the method returned; for moments both numbers. For argmin and argmax the bound is
  ///   that of the element at the index, and the result is not read.
  /// @param magnitudes an upper bound on a property of the data. fixed_point: of the largest |term|, unless a
  ///   grid is given; the bound is finite without it, but larger. Otherwise sum and mean: of Σ|x|. dot: of
  ///   Σ|xy|, for example (‖x‖ + its bound)·(‖y‖ + its bound). moments (optional; tightens the bound if
  ///   squares underflow or overflow): of max|x|. softmax: of the largest minus the smallest element of the
  ///   row. If it is omitted, the bounds of sum, mean and dot are infinite. Other operations and exact
  ///   methods ignore it.
  /// @param options probability, which result, ddof, and grid.
  /// @throws std::invalid_argument if magnitudes is negative, if a result has the wrong format, or if
  ///   options.probability is not in (0, 1].
  double bound(const FormatInfo& input, std::size_t n, ResultNumbers result,
               double magnitudes = std::numeric_limits<double>::infinity(), BoundOptions options = {}) const;

  /// Reduces x to one number, and returns it in the format of the method. Memory of x: as for
  /// samesum::reduce.
  /// @throws std::invalid_argument if the arguments do not fit together, or if the method returns an index,
  ///   two numbers or a number per element.
  /// @throws std::overflow_error if a sum overflows options.grid. It names the remedy.
  /// @throws gpu::Error on the backend "cuda"; it names the CUDA call that failed.
  Number operator()(Values x, Options options = {}) const;
  /// Reduces two inputs of the same format and size to one number, as for one input.
  Number operator()(Values x, Values y, Options options = {}) const;

  /// Returns a call that is bound to x, to be run many times.
  ///
  /// Memory of x: as for samesum::reduce, but data that the backend cannot read are copied once, here. The
  /// data must outlive the job. Errors: as for operator().
  Job bind(Values x, Options options = {}) const;
  /// Returns a call that is bound to two inputs of the same format and size, as for one input.
  Job bind(Values x, Values y, Options options = {}) const;

  /// Returns x where the backend of this method can read it: on a CPU x itself, on a GPU a copy in device
  /// memory unless x is already there. Binding values that are placed moves no data.
  /// @throws std::invalid_argument if x is null but not empty, is misaligned, or has an unknown format.
  /// @throws gpu::Error on the backend "cuda"; it names the CUDA call that failed.
  Placed place(Values x) const;

 private:
  friend struct Code;
  const Code* code_ = nullptr;  ///< what computes the method
};

/// Reduces x, in the given layout, into `out`.
///
/// Each result has the bits of the same reduction of its elements alone: they do not depend on the number of
/// results, on their place or on strides. Promise and error bound: Method::promise, Method::bound.
///
/// Inputs, out and offsets are in host memory. The backend "cuda" copies inputs and offsets to the device and
/// the results back, and waits for them. It also accepts inputs in the memory of a GPU, and reads them there;
/// they must be complete, or be written in the GPU's default stream. gpu.hpp has calls for other streams and
/// for results in device memory.
///
/// A result for no elements is +0 for sums, norms and dot, 1 for prod, -inf for logsumexp, NaN for mean and
/// moments, -1 for argmin and argmax, +inf for min and -inf for max, where NumPy and PyTorch raise an error.
///
/// Softmax accepts rows, and scans accept rows and axes (Layout::rows, Layout::axis). Result (o, k, i) is
/// written at the position of element (o, k, i), with out.row_stride in place of the input's outer stride if
/// it is not 0. `out` may be x itself with the same format and stride; any other overlap is an error.
/// @throws std::invalid_argument, before anything is read or written, if the arguments do not fit together,
///   or if products of sizes, strides or offsets overflow.
/// @throws std::overflow_error if a term or a sum overflows options.grid: a term exceeds 2^(126 - ⌈log2 n⌉)
///   units, or the sum of a result exceeds 2^126 of them, for other formats than fp64 2^62. Such results are
///   NaN. Whether a sum overflows depends neither on the order of the elements nor on NaN and infinities.
/// @throws std::bad_alloc if host memory is exhausted, on whichever thread. Then some results may be written.
/// @throws gpu::Error on the backend "cuda"; it names the CUDA call that failed.
void reduce(const Method& method, Values x, Layout layout, Results out, Options options = {});
/// Reduces two inputs of the same format and size, for example to dot products, as for one input.
void reduce(const Method& method, Values x, Values y, Layout layout, Results out, Options options = {});

/// Reduces the elements of x that have the same key, by a method whose operation takes keys (scatter_add,
/// scatter_mean, scatter_count, scatter_min, scatter_max).
///
/// The layout is Layout::axis(1, n, inner), or Layout::vector(n) for inner = 1, with n = keys.size. Element
/// (k, i) belongs to result (keys[k], i). `out` has m × inner results, so keys must be less than
/// m = out.size / inner. A key without elements has the result for no elements. With Options::combine,
/// results are combined with what `out` holds. scatter_count reads no elements: x must be empty.
///
/// Each result has the bits of the same reduction of its elements alone, in their order; scatter_add in the
/// order serial has the bits of `out[key] += x` in a loop. Memory: as for other calls; keys are in host
/// memory, too.
/// @throws std::invalid_argument as for other calls, and if a key is out of range; then nothing has been
///   written.
/// @throws gpu::Error on the backend "cuda"; it names the CUDA call that failed.
void reduce(const Method& method, Values x, Keys keys, Layout layout, Results out, Options options = {});

/// Returns a message that names the invalid argument of such a call and the remedy; empty if all are valid.
/// `y` is null for one input, and `keys` without keys. Offsets are read only if they are in host memory; keys
/// are not read.
std::string validation_error(const Method& method, const Values& x, const Values* y, const Keys* keys,
                             const Layout& layout, const Results& out, bool offsets_on_host);
/// Returns a message that names the invalid option and the remedy; empty if all are valid.
std::string validation_error(const Method& method, const Options& options);

/// Throws std::invalid_argument if the number of threads is negative.
void check(const Options& options);

}  // namespace samesum
