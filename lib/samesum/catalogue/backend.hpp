/// The interface of a backend: its calls, its methods, and the code behind each method.
#pragma once

#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include "samesum/catalogue/partial.hpp"
#include "samesum/operation/partial_form.hpp"
#include "samesum/operation/reduction_bound.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/operation/validation.hpp"

namespace samesum {

/// A call with checked arguments, whose data lie where the backend can read them.
struct Call {
  const FormatInfo* input;
  const void *x, *y;  ///< y is null unless there are two inputs
  std::size_t size;   ///< elements per input
  Layout layout;      ///< as `normalised` returns it
  void* out;
  std::size_t out_stride;  ///< elements between rows of results, for results per element
  Options options;
  /// Whether `out` receives the state of a vector instead of its result, for a Partial. The format of the
  /// state is that of PartialForm.
  bool as_state = false;
  bool overflowed = false;  ///< the methods set it if a sum overflows the given grid
  /// For operations by key. Key k is that of the elements (k, i) of the layout. `out` has `bins` ×
  /// layout.inner results.
  Keys keys{KeyFormat::uint32, nullptr, 0};
  std::size_t bins = 0;
  /// Whether results are combined with what `out` holds.
  bool combines = false;
  /// The place of the first key that is no valid key, if the backend has found one; then it has written
  /// nothing.
  std::size_t first_bad_key = no_bad_key;
};

/// Assembles a call from arguments that have been checked.
inline Call call_of(const Values& x, const Values* y, const Layout& layout, const Results& out,
                    const Options& options) {
  return {x.format,           x.data,   y ? y->data : nullptr, x.size,
          normalised(layout), out.data, out.stride_of(layout), options};
}

/// Assembles a call of an operation by key, from arguments that have been checked.
inline Call call_of(const Values& x, const Keys& keys, const Layout& layout, const Results& out,
                    const Options& options) {
  Call call = call_of(x, nullptr, layout, out, options);
  call.keys = keys;
  // Without elements, combined results are those that `out` holds: there are none to write.
  call.bins = options.combine && keys.size == 0 ? 0 : out.size / layout.inner;
  call.combines = options.combine;
  return call;
}

/// Throws std::overflow_error: a sum overflows the given grid.
[[noreturn]] void refuse_grid(const Method& method, int grid);
/// Throws that error if the call has overflowed.
void check_grid(const Method& method, const Call& call);

/// A sum and what the reference records while it adds, in double.
struct RecordedSum {
  std::uint64_t bits;
  double magnitudes;  ///< Σ|x| of the elements as given
  double partials;    ///< Σ|partial sum| over the nodes of the tree
};

class Backend;

/// What computes a method: formulas that its types state, and functions of its backend, indexed by the format
/// of the elements. A MethodTable keeps one for each method.
struct Code {
  const Backend* backend = nullptr;
  std::optional<ExactKind> adds;  ///< terms that the operation adds; empty if it has a state of its own
  Height (*height)(std::size_t n) = nullptr;
  /// Null for exact methods, and for operations with a state of their own.
  AccumulatorBound accumulator_bound = nullptr;
  AccumulatorProbableBound accumulator_probable_bound = nullptr;
  double (*operation_bound)(const Reduced&) = nullptr;  ///< null for exact methods, moments and softmax
  /// Null except for softmax.
  SoftmaxBound (*softmax_bound)(const FormatInfo& input, std::size_t n, double spread) = nullptr;
  /// What partials need to know; only on the backend "reference".
  const PartialForm* partial_form = nullptr;
  double lost_per_arrival = 0;  ///< what an addition to a shared cell may lose beyond its rounding

  using Sum = std::uint64_t (*)(const void* x, std::size_t n, int threads);
  std::array<Sum, Formats::size> sum{};  ///< the bits of the sum of one vector, if it needs no Call
  using Run = void (*)(Call& call);
  std::array<Run, Formats::size> run_vector{};  ///< for one vector, if that differs from `run`
  std::array<Run, Formats::size> run{};         ///< for any layout
  using Watch = RecordedSum (*)(const void* x, std::size_t n);
  std::array<Watch, Formats::size> watch{};  ///< only on the backend "reference"

  static const Code& of(const Method& method) { return *method.code_; }
  void run_by(Method& method) const { method.code_ = this; }
};

/// Facts about a method that its types state. They are constants, so that a list of hundreds of methods
/// compiles quickly.
struct Facts {
  std::string_view operation, summary, order, accumulator, backend;
  /// Replaces operation, order and accumulator in the name; empty for methods of samesum.
  std::string_view called;
  const FormatInfo* format = nullptr;
  Promise promise = Promise::order_free;
  int inputs = 1, results = 1;
  bool returns_index = false, has_result_per_element = false, keeps_format = false, takes_keys = false,
       is_slow = false;
  std::size_t state_bytes = 0;
  int operations_per_element = 0;
  std::string (*height_formula)() = nullptr;
};

/// A method as a backend declares it, or a part of one.
struct Entry {
  Facts facts;
  Code code;
};

/// Methods, and the code that computes them, at addresses that do not change.
class MethodTable {
 public:
  MethodTable() = default;
  // Not copyable: methods of a copy would refer to the code of the original.
  MethodTable(MethodTable&&) = default;

  /// Adds the methods of a backend. Entries with the same name are parts of one method.
  void add(const std::vector<Entry>& entries, const Backend& backend);
  std::vector<Method> methods;

 private:
  std::deque<Code> codes_;
};

/// Elements that a partial takes in, from one or two inputs, where a backend can read them.
class PartialInput {
 public:
  /// Consecutive elements that are a subtree of the method's tree.
  struct Subtree {
    std::size_t first, count;
  };
  virtual ~PartialInput() = default;
  virtual const FormatInfo& format() const = 0;
  /// Copies n elements of each input to host memory. `y` is null if there is one input.
  virtual void copy(std::size_t first, std::size_t n, std::byte* x, std::byte* y) = 0;
  /// Writes the state of each subtree to host memory, `state_bytes` bytes per subtree.
  virtual void reduce(std::span<const Subtree> subtrees, std::size_t state_bytes, std::byte* states) = 0;
};

/// Throws std::invalid_argument if a partial cannot take in these elements.
void check_portion(const Partial& partial, const Values& x, const Values* y);
/// Takes in the next n elements.
void add_to(Partial& partial, PartialInput& input, std::size_t n);

/// A call that is bound to its data. It writes its results to `out` in host memory, and returns when they are
/// there.
using Bound = std::function<void(void* out)>;

/// A place where methods run: a name, methods, and how to run them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Returns the reason why the backend has no methods in this process; empty if it has methods.
  virtual std::string absence() const { return {}; }
  /// Returns the methods of the backend, or parts of them.
  virtual std::vector<Entry> entries() const = 0;
  /// Returns x where the backend can read it.
  virtual Placed place(Values x) const { return {x, nullptr}; }
  /// Runs a call on data in host memory or in memory of the backend, and waits for it.
  virtual void run(const Method& method, Call& call) const {
    enqueue(method, call);
    check_grid(method, call);
  }
  /// Binds a call to its data, to be run many times. `call.out` is ignored.
  virtual Bound bind(const Method& method, Call call) const {
    return [this, &method, call](void* out) {
      Call mine = call;
      mine.out = out;
      enqueue(method, mine);
      check_grid(method, mine);
    };
  }
  /// Returns the elements of a call on one vector for a partial.
  virtual std::unique_ptr<PartialInput> partial_input(const Method& method, const Call& call) const;
  /// Starts a call on data that the backend can read.
  void enqueue(const Method& method, Call& call) const;
};

/// Whether the layout is one vector of contiguous elements.
constexpr bool is_vector(const Layout& l) {
  return l.outer == 1 && l.inner == 1 && l.stride == 1 && l.offsets == nullptr;
}

inline void Backend::enqueue(const Method& method, Call& call) const {
  // Vectors without elements have no results per element: there are none to write.
  if (method.has_result_per_element && call.layout.n == 0) call.layout.outer = 0;
  const Code& code = Code::of(method);
  const std::size_t input = call.input->index;
  if (!is_vector(call.layout)) return code.run[input](call);
  if (code.run_vector[input]) return code.run_vector[input](call);
  if (!code.sum[input] || call.as_state) return code.run[input](call);
  const std::uint64_t bits = code.sum[input](call.x, call.layout.n, call.options.threads);
  std::memcpy(call.out, &bits, method.format->bytes);  // little-endian: the lowest bytes come first
}

}  // namespace samesum
