/// What a backend is: where data must lie, its methods, and how it runs them.
#pragma once

#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include "samesum/catalogue/method.hpp"
#include "samesum/operation/exact_reduction.hpp"
#include "samesum/operation/reduction_bound.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/operation/validation.hpp"

namespace samesum {

/// A call whose arguments have been checked, with data where the backend can read them.
struct Call {
  const FormatInfo* input;
  const void *x, *y;  ///< y only for two inputs
  std::size_t size;   ///< elements of an input
  Layout layout;      ///< settled
  void* out;
  std::size_t out_stride;  ///< between rows, for results per element
  Options options;
};

inline Call call_of(const Values& x, const Values* y, const Layout& layout, const Results& out,
                    const Options& options) {
  return {x.format,        x.data,   y ? y->data : nullptr, x.size,
          settled(layout), out.data, out.stride_of(layout), options};
}

/// A sum and what was seen on the way, summed in double.
struct Watched {
  std::uint64_t bits;
  double magnitudes;  ///< Σ|x| of the elements as given
  double partials;    ///< Σ|partial sum| over the nodes of the tree
};

class Backend;

/// What computes a method: the formulas that its types state, and the functions of its backend by the format
/// of the elements. A MethodTable keeps one for each method.
struct Code {
  const Backend* backend = nullptr;
  std::optional<ExactKind> adds;  ///< the terms of a sum, whatever the accumulator
  Height (*height)(std::size_t n) = nullptr;
  AccumulatorBound accumulator_bound = nullptr;  ///< null for exact, and where the state is its own
  AccumulatorProbableBound accumulator_probable_bound = nullptr;
  double (*operation_bound)(const Reduced&) = nullptr;  ///< null for exact, for moments and softmax
  /// Null but for softmax.
  SoftmaxBound (*softmax_bound)(const FormatInfo& input, std::size_t n, double spread) = nullptr;
  double lost_per_arrival = 0;  ///< what an addition to a shared cell may lose beyond its rounding

  using Sum = std::uint64_t (*)(const void* x, std::size_t n, int threads);
  std::array<Sum, Formats::size> sum{};  ///< the bits of the sum of one vector, where it needs no call
  using Run = void (*)(Call& call);
  std::array<Run, Formats::size> run_vector{};  ///< of one vector, where that is not `run`
  std::array<Run, Formats::size> run{};         ///< of any layout
  using Watch = Watched (*)(const void* x, std::size_t n);
  std::array<Watch, Formats::size> watch{};  ///< on the reference backend alone

  static const Code& of(const Method& method) { return *method.code_; }
  void run_by(Method& method) const { method.code_ = this; }
};

/// Facts of a method that its types state. They are constants, so that a list of hundreds of methods compiles
/// quickly.
struct Facts {
  std::string_view operation, order, accumulator, backend;
  std::string_view called;  ///< replaces operation, order and accumulator in the name; empty for our methods
  const FormatInfo* format = nullptr;
  Promise promise = Promise::order_free;
  int inputs = 1, results = 1;
  bool gives_index = false, per_element = false, slow = false;
  std::size_t state_bytes = 0;
  int operations_per_element = 0;
  std::string (*height_formula)() = nullptr;
};

/// A method as a backend makes it, or a part of one.
struct Entry {
  Facts facts;
  Code code;
};

/// Methods, and the code that computes them at addresses that do not change.
class MethodTable {
 public:
  MethodTable() = default;
  MethodTable(MethodTable&&) = default;  // a copy's methods would have the code of the original

  /// Adds the methods of a backend. Entries of one name are parts of one method.
  void add(const std::vector<Entry>& entries, const Backend& backend);
  std::vector<Method> methods;

 private:
  std::deque<Code> codes_;
};

/// A call that is bound to its data: writes its results to `out`, in the memory of the host, and waits for
/// them.
using Bound = std::function<void(void* out)>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Why it has no methods in this process; empty if it has.
  virtual std::string absence() const { return {}; }
  virtual std::vector<Entry> entries() const = 0;
  /// x where the backend can read it.
  virtual Placed place(Values x) const { return {x, nullptr}; }
  /// Runs a call on data in the memory of the host, or of the backend, and waits for it.
  virtual void run(const Method& method, Call& call) const { enqueue(method, call); }
  /// The same call to be run many times, whatever `call.out` is.
  virtual Bound bind(const Method& method, Call call) const {
    return [this, &method, call](void* out) {
      Call mine = call;
      mine.out = out;
      enqueue(method, mine);
    };
  }
  /// Starts a call on data where the backend can read them.
  void enqueue(const Method& method, Call& call) const;
};

/// Whether the layout is one vector whose elements lie one after the other.
constexpr bool is_vector(const Layout& l) {
  return l.outer == 1 && l.inner == 1 && l.stride == 1 && l.offsets == nullptr;
}

inline void Backend::enqueue(const Method& method, Call& call) const {
  const Code& code = Code::of(method);
  const std::size_t input = call.input->index;
  if (!is_vector(call.layout)) return code.run[input](call);
  if (code.run_vector[input]) return code.run_vector[input](call);
  if (!code.sum[input]) return code.run[input](call);
  const std::uint64_t bits = code.sum[input](call.x, call.layout.n, call.options.threads);
  std::memcpy(call.out, &bits, method.format->bytes);  // the lowest bytes come first
}

}  // namespace samesum
