/// The interface of a backend: its calls, its methods, and the code behind each method.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "samesum/call/call.hpp"
#include "samesum/catalogue/partial.hpp"
#include "samesum/operation/partial_form.hpp"
#include "samesum/operation/reduction_bound.hpp"
#include "samesum/operation/softmax.hpp"

namespace samesum {

/// A call on a host backend: valid, normalised, and on data that the backend can read; and what the backend
/// reports about it.
struct HostRun {
  Call call;
  /// Whether the call writes the state of a vector instead of its result, for a Partial. The format of the
  /// state is that of PartialForm.
  bool as_state = false;
  bool overflowed = false;  ///< whether a sum overflows the given grid
  /// The place of the first key that is no valid key, if the backend has found one; then it has written
  /// nothing.
  std::size_t first_bad_key = no_bad_key;
  std::optional<std::uint64_t> bad_key = {};  ///< that key, if the keys are in device memory
};

namespace gpu {
struct Launch;        ///< a call on a GPU; backend/cuda/device/call.hpp defines it
struct SubtreeMerge;  ///< states on a GPU to be merged; backend/cuda/tree/merge_subtrees.hpp defines it
}  // namespace gpu

/// Throws std::overflow_error: a sum overflows the given grid.
[[noreturn]] void refuse_grid(const Method& method, int grid);
/// Throws what a call on a backend reports: std::overflow_error for a grid, std::invalid_argument for a key.
void refuse_what_failed(const HostRun& run);

/// A sum and what was recorded while adding, in double.
struct RecordedSum {
  std::uint64_t bits;
  double magnitudes;  ///< Σ|x| of the elements as given
  double partials;    ///< Σ|partial sum| over the nodes of the tree
};

class Backend;

/// The functions that run a method, by the format of the elements. `Work` is a call, and what a backend adds.
template <class Work> struct Functions {
  using Run = void (*)(Work& work);
  std::array<Run, Formats::size> any{};     ///< serve any layout
  std::array<Run, Formats::size> vector{};  ///< serve one vector; null if those above do
  /// Runs a call.
  void run(const Call& call, Work& work) const {
    (is_vector(call.layout) ? vector : any)[call.x.format->index](work);
  }
};

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
  const PartialForm* partial_form = nullptr;  ///< what partials need to know; null if there are none
  double lost_per_arrival = 0;  ///< what an addition to a shared cell may lose beyond its rounding

  using Sum = std::uint64_t (*)(const void* x, std::size_t n, int threads);
  std::array<Sum, Formats::size> sum{};  ///< the bits of the sum of one vector, if it needs no Call
  Functions<HostRun> host;
  Functions<gpu::Launch> device;
  template <class Work> Functions<Work>& functions() {
    if constexpr (std::is_same_v<Work, HostRun>)
      return host;
    else
      return device;
  }
  using Watch = RecordedSum (*)(const void* x, std::size_t n);
  std::array<Watch, Formats::size> watch{};  ///< sums and records what `estimate` needs; for sums
  /// Merges the states of subtrees on a device; null if no kernel does.
  void (*merge_subtrees)(gpu::SubtreeMerge& merge) = nullptr;

  static const Code& of(const Method& method) { return *method.code_; }
  void run_by(Method& method) const { method.code_ = this; }
};

/// Throws std::invalid_argument, with the remedy, if the result of a vector is not one number.
void check_gives_number(const Method& method);

/// Runs a call on one vector by Code::sum.
void run_sum(HostRun& run);

/// Facts about a method that its types state. They are constants, so that a list of hundreds of methods
/// compiles quickly.
struct Facts {
  const OperationFacts* operation = nullptr;
  std::string_view order, accumulator, backend;
  /// Replaces operation, order and accumulator in the name; empty for methods of samesum.
  std::string_view called;
  const FormatInfo* format = nullptr;
  Promise promise = Promise::order_free;
  bool takes_grid = false, is_slow = false;
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
  /// Adds parts to the methods of all backends whose name is, but for the backend, that of an entry.
  void add_to_all(const std::vector<Entry>& entries);
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

/// The call that writes the state of a vector.
Call call_for_state(const Method& method, const Values& x, const Values& y, const Options& options);
/// Throws std::invalid_argument if a partial cannot take in these elements.
void check_portion(const Partial& partial, const Values& x, const Values& y);
/// Takes in the next n elements.
void add_to(Partial& partial, PartialInput& input, std::size_t n);

/// Elements of one or two inputs that take part in a call.
struct PackedInputs {
  Placed x, y;
};

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
  virtual void run(HostRun& run) const { Code::of(*run.call.method).host.run(run.call, run); }
  /// Runs a call in which only some elements take part, on data as for `run`. A backend that does not define
  /// it has the backend "cpu" select the elements, on which the method then runs.
  virtual void run_selected(HostRun& run) const;
  /// Returns the elements of one or two vectors that take part, packed where the backend can read them: by
  /// the backend "cpu", unless the backend defines it.
  virtual PackedInputs packed(const Values& x, const Values& y, const Options& options) const;
  /// Binds a call to its data, to be run many times. The place of the results in `call` is ignored.
  virtual Bound bind(const Call& call) const {
    return [this, call](void* out) {
      HostRun mine{call};
      mine.call.out.data = out;
      run(mine);
      if (mine.overflowed) refuse_grid(*call.method, *call.options.grid);
    };
  }
  /// Returns the elements of a call on one vector for a partial.
  virtual std::unique_ptr<PartialInput> partial_input(const Call& call) const;
};

}  // namespace samesum
