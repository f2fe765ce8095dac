/// Every common reduction, of vectors, of an axis of an array, and of segments, under the contract of the
/// sums: a declared order, the same bits everywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/operation/fold.hpp"
#include "samesum/operation/layout.hpp"
#include "samesum/operation/reduction_bound.hpp"
#include "samesum/variant.hpp"

namespace samesum {

struct ReduceOptions {
  int threads = 0;  ///< as in Options
  double ddof = 0;  ///< for moments alone: the divisor of the sum of squares is n - ddof; 1 for a sample
};

/// What to reduce and where the results go. Both inputs have the layout and the format.
struct ReduceCall {
  const void *x, *y;  ///< y only for two inputs
  Layout layout;
  void* out;
  ReduceOptions options;
};

namespace gpu {
struct ReduceLaunch;
}

/// One operation in one order with one accumulator in one format on one backend.
struct Reduction {
  std::string
      name;  ///< "dot/tree/kahan/fp32@cpu", "norm/pairwise/fp64@cpu", "max/fp16@cuda", "mean/exact/fp32@cpu"
  std::string operation;     ///< "dot"
  std::string order;         ///< "" where none is needed: the promise is then order_free
  std::string accumulator;   ///< "kahan", "exact", "" where the operation has a state of its own
  const FormatInfo* format;  ///< of the state and of the results
  std::string backend;
  Promise promise;
  int inputs;        ///< 2 for dot
  int results;       ///< numbers a reduction: 2 for moments
  bool gives_index;  ///< the results are std::int64_t

  std::size_t result_bytes() const {
    return gives_index ? sizeof(std::int64_t) : static_cast<std::size_t>(results) * format->bytes;
  }
  /// Whether elements of that format can be read: the own format, narrower ones, and by exact ones all.
  bool takes(const FormatInfo& input) const {
    return input.index < Formats::size && (run[input.index] != nullptr || launch[input.index] != nullptr);
  }

  /// A rigorous bound on |result - truth of the n elements as given|, rounded up; reduction_bound.hpp has the
  /// formulas. Infinity if the result is not finite, if an overflow on the way cannot be excluded, or if the
  /// bound itself is beyond a double (products of many factors of few bits).
  ///
  /// What the result itself does not say the caller knows, as `magnitudes`: of sum and mean at least Σ|x|, of
  /// dot at least Σ|xy|, for which (‖x‖ + its bound)·(‖y‖ + its bound) serves. The other operations do not
  /// read it, nor do exact ones. Where it is left out, the bound of these three is infinite. Of argmin and
  /// argmax the bound is about the element that is there, and `result` is not read. Throws
  /// std::invalid_argument for moments, for negative magnitudes, and for a result of another format.
  double bound(const FormatInfo& input, std::size_t n, Number result,
               double magnitudes = unbounded_error) const;
  /// The same for the two results of moments. Both are bounded by what both say. Where squares underflow or
  /// overflow, and for long data of few bits, they say little; there it helps to know `largest`, at least
  /// max|x|. Throws for other operations.
  MomentsBound moments_bound(const FormatInfo& input, std::size_t n, Number mean, Number variance,
                             ReduceOptions options = {}, double largest = unbounded_error) const;

  // Filled by the registry.
  Height (*height)(std::size_t n);                      ///< of the tree
  AccumulatorBound accumulator_bound = nullptr;         ///< null for exact, and where the state is its own
  double (*operation_bound)(const Reduced&) = nullptr;  ///< null for exact, and for moments

  // By input format.
  using Run = void (*)(const ReduceCall&);
  std::array<Run, Formats::size> run{};
  using Launch = int (*)(gpu::ReduceLaunch&);  ///< gives a cudaError_t
  std::array<Launch, Formats::size> launch{};  ///< on the backend "cuda", instead of `run`
  using FromHost = void (*)(const Reduction&, const FormatInfo& input, std::size_t elements,
                            const ReduceCall&);
  FromHost from_host = nullptr;  ///< likewise: there and back
};

/// Every reduction that runs in this process.
std::span<const Reduction> reductions();

/// The reduction of that name; without "@backend" it means "@cpu". Throws std::invalid_argument that names
/// the nearest ones.
const Reduction& find_reduction(std::string_view name);

/// Numbers of results: what `reduce` writes, in the format of the reduction or as std::int64_t.
struct Results {
  const FormatInfo* format;  ///< nullptr for std::int64_t
  void* data;
  std::size_t size;  ///< of numbers

  template <Element T>
  Results(std::span<T> out) : format{&format_info<T>()}, data{out.data()}, size{out.size()} {}
  Results(std::span<std::int64_t> out) : format{nullptr}, data{out.data()}, size{out.size()} {}
};

/// Reduces x (and y, for two inputs, which has as many elements) as laid out. Each result has the bits of the
/// same reduction of its elements alone, one after the other: it does not depend on how many there are, on
/// its place or on strides. x is in the memory of the host; on the backend "cuda" it is copied there and back
/// (gpu_reduction.hpp has calls for data that are there). A result of no elements is +0 for sums, norms and
/// dot, 1 for prod, -inf for logsumexp, NaN for mean and moments, -1 for argmin and argmax, and for min +inf,
/// for max -inf, where NumPy and PyTorch raise an error. Throws std::invalid_argument, before anything is
/// read or written, for what does not fit together, and for sizes, strides or offsets whose products
/// overflow.
void reduce(const Reduction& reduction, Values x, Layout layout, Results out, ReduceOptions options = {});
void reduce(const Reduction& reduction, Values x, Values y, Layout layout, Results out,
            ReduceOptions options = {});

/// Of a vector, one number.
Number reduce(std::string_view name, Values x, ReduceOptions options = {});
Number reduce(std::string_view name, Values x, Values y, ReduceOptions options = {});
/// argmin and argmax: -1 of nothing.
std::int64_t reduce_to_index(std::string_view name, Values x, ReduceOptions options = {});

/// A message that names the argument of such a call and the remedy; empty if all are valid. `y` is null for
/// one input. Offsets are read only if they are in the memory of the host.
std::string validation_error(const Reduction& reduction, const Values& x, const Values* y,
                             const Layout& layout, const Results& out, bool offsets_are_here);
std::string validation_error(const Reduction& reduction, const ReduceOptions& options);

/// One backend's reductions in the format at place `shard` of the list.
namespace reference {
template <std::size_t shard> std::vector<Reduction> reductions();
}
namespace cpu {
template <std::size_t shard> std::vector<Reduction> reductions();
}
namespace gpu {
template <std::size_t shard> std::vector<Reduction> reductions();
}

/// What the name and the types say of a reduction; the backend adds what runs.
template <class Operation, class Order, template <class> class A, class F>
Reduction describe_reduction(std::string_view backend) {
  Reduction r{};
  r.operation = Operation::name;
  r.order = Operation::has_order ? Order::name : "";
  r.accumulator = Operation::has_accumulator ? A<Scalar<F>>::name : "";
  r.format = &format_info<F>();
  r.backend = backend;
  r.promise = Operation::has_order ? Promise::everywhere : Promise::order_free;
  r.inputs = Operation::inputs;
  r.results = Operation::results;
  r.gives_index = Operation::gives_index;
  r.height = Order::height;
  if constexpr (Operation::has_accumulator) r.accumulator_bound = A<Scalar<F>>::bound;
  if constexpr (requires { Operation::bound; }) r.operation_bound = Operation::bound;
  r.name = r.operation;
  for (const std::string& part : {r.order, r.accumulator, std::string{r.format->name}})
    if (!part.empty()) r.name += "/" + part;
  r.name.append("@").append(backend);
  return r;
}

}  // namespace samesum
