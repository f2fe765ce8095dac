/// A method: its facts, its error bound, and calls that give one number.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "samesum/bound/height.hpp"
#include "samesum/call/layout.hpp"
#include "samesum/call/options.hpp"
#include "samesum/call/promise.hpp"
#include "samesum/call/values.hpp"

namespace samesum {

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
  /// (Connolly, Higham and Mary 2021; Hallman and Ipsen 2022; bound.hpp has the proof). Equal or structured
  /// elements violate that: the error of a long loop that adds 0.1 in fp32 exceeds the bound for 0.99. So do
  /// sums that stagnate: each rounding drops the element, and the error may be as large as the sum.
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
                             ///< order_free, except for "online" and "hopper", which promise everywhere
  std::string accumulator;   ///< "plain", …, "exact", "hopper", "online"; "" for operations with a state of
                             ///< their own
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
  bool takes_grid = false;      ///< whether Options::grid may be given: the accumulator is fixed_point
  bool can_combine = false;     ///< whether Options::combine may be set: sums, counts and extrema by key
  bool takes_window = false;    ///< whether Options::window must be given, as in rolling_sum
  bool is_slow = false;     ///< whether the method is slow by design and exists for the study: one GPU thread
                            ///< sums all elements, every element is added to one atomic cell, or hardware is
                            ///< modelled in integers
  std::size_t state_bytes;  ///< bytes of the state of one lane, as this library stores it
  int operations_per_element;  ///< floating-point operations per `add` (integer operations for exact); 0 if
                               ///< that depends on the elements
  std::string height_formula;  ///< formula of `height` in n

  /// Returns the number of additions on the longest path from an element to the result.
  Height height(std::size_t n) const;

  /// Whether the method accepts elements of a format. Sums of one vector and exact methods accept all
  /// formats, `hopper` only fp16 and bf16, other methods their own and narrower ones.
  bool accepts(const FormatInfo& input) const;
  /// Whether the method accepts elements of a format in a layout. On a GPU, sums whose order or accumulator
  /// has no kernel for batches, and all sums of elements wider than the accumulator, accept only single
  /// vectors.
  bool accepts(const FormatInfo& input, const Layout& layout) const;

  /// Whether the method is a scan: result i is that of the first i + 1 elements.
  bool is_scan() const { return has_result_per_element && !keeps_format && !takes_window; }

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
  ///   row. Other operations and exact methods ignore it.
  /// @param options probability, which result, ddof, and grid.
  /// @throws std::invalid_argument if magnitudes is negative, or is omitted although only it can make the
  ///   bound finite; if a result has the wrong format; or if options.probability is not in (0, 1].
  double bound(const FormatInfo& input, std::size_t n, ResultNumbers result,
               std::optional<double> magnitudes = {}, BoundOptions options = {}) const;

  /// Reduces x to one number, and returns it in the format of the method. Memory of x: as for
  /// samesum::reduce.
  /// @throws std::invalid_argument if the arguments do not fit together, or if the method returns an index,
  ///   two numbers or a number per element.
  /// @throws std::overflow_error if a sum overflows options.grid. It names the remedy.
  /// @throws gpu::Error on the backend "cuda"; it names the CUDA call that failed.
  Number operator()(Values x, Options options = {}) const { return (*this)(x, Values{}, options); }
  /// Reduces two inputs of the same format and size to one number, as for one input.
  Number operator()(Values x, Values y, Options options = {}) const;

  /// Returns a call that is bound to x, to be run many times.
  ///
  /// Memory of x: as for samesum::reduce, but data that the backend cannot read are copied once, here. The
  /// data must outlive the job. Errors: as for operator().
  Job bind(Values x, Options options = {}) const { return bind(x, Values{}, options); }
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

}  // namespace samesum
