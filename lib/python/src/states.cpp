/// fsum, and the states that Python can store and send: exact sums and partials.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "call.hpp"

namespace samesum::python {
namespace {

nb::bytes to_bytes(const std::vector<std::byte>& bytes) { return nb::bytes{bytes.data(), bytes.size()}; }
std::span<const std::byte> span_of(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

// --- numbers of Python -------------------------------------------------------------------------------------

/// What becomes of an integer that no double equals.
enum class Integers { rounded, exact };

/// Adds Python's numbers in blocks.
class NumberSum {
 public:
  explicit NumberSum(Integers integers) : integers_{integers} {}

  /// Adds a number. Throws what Python raises for other objects.
  void add(PyObject* number) {
    if (PyFloat_CheckExact(number)) return put(PyFloat_AsDouble(number));
    if (PyLong_CheckExact(number))
      return integers_ == Integers::rounded ? put(checked(PyLong_AsDouble(number))) : add_integer(number);
    const nb::object held = nb::borrow(number);                   // its __float__ may remove it from a list
    if (integers_ == Integers::exact && PyIndex_Check(number)) {  // an integer of NumPy
      const nb::object integer = nb::steal(PyNumber_Index(number));
      if (!integer.is_valid()) throw nb::python_error();
      return add_integer(integer);
    }
    put(checked(PyFloat_AsDouble(number)));
  }

  /// Adds the numbers of an iterable, without those that a mask hides. A list may change during the call, as
  /// in a loop over it.
  void add_all(nb::handle numbers) {
    PyObject* const all = numbers.ptr();
    if (PyList_CheckExact(all)) {
      for (Py_ssize_t i = 0; i < NB_LIST_GET_SIZE(all); ++i) add(NB_LIST_GET_ITEM(all, i));
    } else if (PyTuple_CheckExact(all)) {
      for (Py_ssize_t i = 0; i < NB_TUPLE_GET_SIZE(all); ++i) add(NB_TUPLE_GET_ITEM(all, i));
    } else {
      const nb::object addends = nb::module_::import_("samesum._frames.reading").attr("addends")(numbers);
      const nb::object iterator = nb::steal(PyObject_GetIter(addends.ptr()));
      if (!iterator.is_valid()) throw nb::python_error();
      while (const nb::object number = nb::steal(PyIter_Next(iterator.ptr()))) add(number.ptr());
      if (PyErr_Occurred()) throw nb::python_error();
    }
  }

  /// Returns the sum of all numbers so far.
  const Exact& sum() {
    const std::span<const double> numbers{block_.data(), std::exchange(size_, 0)};
    if (numbers.size() <= few)
      sum_.add(numbers);
    else
      sum_.merge(accumulate(numbers, {.threads = 1}));
    return sum_;
  }

 private:
  /// Up to this length, adding one by one is faster.
  static constexpr std::size_t few = 32;

  static double checked(double x) {
    if (x == -1 && PyErr_Occurred()) throw nb::python_error();
    return x;
  }

  void put(double x) {
    block_[size_++] = x;
    if (size_ < block_.size()) return;
    sum();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  /// Adds the double nearest to an integer, then the one nearest to what is left, until nothing is.
  void add_integer(nb::handle integer) {
    for (nb::object left = nb::borrow(integer);;) {
      const double nearest = checked(PyLong_AsDouble(left.ptr()));
      put(nearest);
      if (std::abs(nearest) < 0x1p53) return;
      left = left - nb::steal(PyLong_FromDouble(nearest));
    }
  }

  Integers integers_;
  std::size_t size_ = 0;
  std::vector<double> block_ = std::vector<double>(4096);  // fits into the first-level cache
  Exact sum_;
};

/// Raises RecursionError before calls that contain one another exhaust the stack: __float__ may sum again.
class Recursion {
 public:
  Recursion() {
    if (Py_EnterRecursiveCall(" in a sum") != 0) throw nb::python_error();
  }
  ~Recursion() { Py_LeaveRecursiveCall(); }
  Recursion(const Recursion&) = delete;
  Recursion& operator=(const Recursion&) = delete;
};

nb::object fsum(nb::handle numbers) {
  const Recursion guarded;
  const bool is_sequence = PyList_CheckExact(numbers.ptr()) || PyTuple_CheckExact(numbers.ptr());
  if (!is_sequence && nb::hasattr(numbers, "get_mask"))  // of PyTorch, which fails to iterate over it
    throw nb::type_error("samesum: fsum takes no masked tensor; pass x.get_data()[x.get_mask()]");
  NumberSum all{Integers::rounded};
  all.add_all(numbers);
  const Exact& sum = all.sum();
  constexpr std::uint32_t both = Exact::seen_plus_infinity | Exact::seen_minus_infinity;
  if ((sum.flags() & both) == both) throw nb::value_error("-inf + inf in fsum");
  // Python versions differ in the sign of a sum of only -0.
  if (sum.only_minus_zero()) return nb::module_::import_("math").attr("fsum")(nb::make_tuple(-0.0));
  const double rounded = sum.result<fp64>();
  if (std::isinf(rounded) && !sum.is_special())
    throw std::overflow_error("samesum: the exact sum is beyond the largest double; scale the numbers");
  return nb::float_(rounded);
}

// --- exact sums --------------------------------------------------------------------------------------------

/// An exact sum that several threads may use. The lock is held for moments only, and never while waiting for
/// the GIL.
class SharedExact {
 public:
  explicit SharedExact(const Exact& sum = {}) : sum_{sum} {}

  Exact get() const {
    const std::scoped_lock lock{mutex_};
    return sum_;
  }
  void merge(const Exact& part) {
    const std::scoped_lock lock{mutex_};
    Exact both = sum_;
    both.merge(part);
    static_cast<void>(both.serialise());  // throws if the sum is beyond that of 2^64 elements
    sum_ = both;
  }

 private:
  mutable std::mutex mutex_;
  Exact sum_;
};

Exact accumulate_in_chunks(const Values& x, int threads) {
  Exact sum;
  for (std::size_t i = 0; i < x.size; i += chunk) {
    if (i > 0) check_signals();
    sum.merge(accumulate(part_of(x, i, std::min(chunk, x.size - i)), {threads}));
  }
  return sum;
}

/// Contiguous elements, and where they lie.
struct Elements {
  Values values = {};
  Place place = {};
};

/// Returns the elements of a field; nothing if the field is not given.
Elements contiguous_elements(const PythonCall& call, PythonCall::Field field) {
  if (!call.has(field)) return {};
  const Memory a = memory_of(call, field);
  return {values_at(format_named(call.as<std::string_view>(PythonCall::format)), a.address, a.size), a.place};
}

void add_elements(SharedExact& state, nb::handle object) {
  const PythonCall call{object};
  const auto [x, place] = contiguous_elements(call, PythonCall::x);
  const int threads = call.as<int>(PythonCall::threads);
  const nb::gil_scoped_release released;
  if (x.size > 0)
    state.merge(place.device < 0 ? accumulate_in_chunks(x, threads) : accumulate_on_gpu(x, place));
}

/// Adds what `add` adds, all of it or, if it raises, nothing.
template <auto add> void add_exactly(SharedExact& state, nb::handle numbers) {
  const Recursion guarded;
  NumberSum all{Integers::exact};
  (all.*add)(numbers.ptr());
  state.merge(all.sum());
}

// The stub _core.pyi describes the members of both classes, which only the Python side calls.

void bind_exact(nb::module_& m) {
  nb::class_<SharedExact>(m, "Exact")
      .def(nb::init<>())
      .def("add_elements", &add_elements)
      .def("add_number", &add_exactly<&NumberSum::add>)
      .def("add_numbers", &add_exactly<&NumberSum::add_all>)
      .def("merge", [](SharedExact& self, const SharedExact& other) { self.merge(other.get()); })
      .def("value",
           [](const SharedExact& self, std::string_view format) {
             return self.get().result(format_named(format)).to_double();
           })
      .def_prop_ro("is_empty", [](const SharedExact& self) { return self.get().empty(); })
      .def("copy", [](const SharedExact& self) { return new SharedExact{self.get()}; })
      .def("serialise", [](const SharedExact& self) { return to_bytes(self.get().serialise()); })
      .def_static("deserialise",
                  [](const nb::bytes& data) { return new SharedExact{Exact::deserialise(span_of(data))}; });
}

// --- partials ----------------------------------------------------------------------------------------------

/// A partial that several threads may use.
///
/// Threads wait for the lock without the GIL, so its holder can take the GIL to run signal handlers. The lock
/// is recursive because such a handler may use the partial, too.
class SharedPartial {
 public:
  explicit SharedPartial(Partial partial) : partial_{std::move(partial)} {}

  /// Calls `use` with the partial, which no other thread uses meanwhile. The caller holds the GIL; `use` does
  /// not.
  template <class Use> auto with(Use use) {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock{mutex_};
    return use(partial_);
  }
  Partial get() {
    return with([](const Partial& partial) { return partial; });
  }

 private:
  std::recursive_mutex mutex_;
  Partial partial_;
};

void add_in_chunks(Partial& partial, const Values& x, const Values& y, int threads) {
  const bool fits = !y.is_given() || x.size == y.size;
  if (x.size <= chunk || !fits) return partial.add(x, y, {.threads = threads});
  Partial after = partial;
  for (std::size_t i = 0; i < x.size; i += chunk) {
    const std::size_t n = std::min(chunk, x.size - i);
    after.add(part_of(x, i, n), part_of(y, i, n), {.threads = threads});
    const std::uint64_t end = partial.end();
    check_signals();
    if (partial.end() != end)
      throw std::runtime_error(
          "samesum: a signal handler changed the partial during add; the elements of this call are not in "
          "it");
  }
  partial = std::move(after);
}

void add_from_gpu(Partial& partial, const Values& x, const Values& y, Place place) {
  if (partial.method().backend == "cuda") return add_on_gpu(partial, x, y, place);
  Partial next{find_on("cuda", partial.method()), partial.end(), partial.grid()};
  add_on_gpu(next, x, y, place);
  partial.merge(next);
}

void add_portion(SharedPartial& state, nb::handle object) {
  const PythonCall call{object};
  const Elements x = contiguous_elements(call, PythonCall::x), y = contiguous_elements(call, PythonCall::y);
  const int threads = call.as<int>(PythonCall::threads);
  state.with([&](Partial& partial) {
    if (x.place.device < 0)
      add_in_chunks(partial, x.values, y.values, threads);
    else
      add_from_gpu(partial, x.values, y.values, x.place);
  });
}

/// Returns the result: an int for an index, a pair for moments, else a float.
nb::object finish(SharedPartial& state, double ddof) {
  const Method& m = state.with([](const Partial& p) -> const Method& { return p.method(); });
  alignas(std::int64_t) std::byte bytes[2 * sizeof(std::int64_t)] = {};
  const Results out{m.result_format(*m.format), bytes, static_cast<std::size_t>(m.results)};
  state.with([&](const Partial& partial) { partial.finish(out, {.ddof = ddof}); });
  const auto number = [&](std::size_t i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * m.format->bytes, m.format->bytes);
    return nb::float_(Number{m.format, bits}.to_double());
  };
  if (m.results == 2) return nb::make_tuple(number(0), number(1));
  if (!m.returns_index) return number(0);
  std::int64_t index = 0;
  std::memcpy(&index, bytes, sizeof index);
  return nb::int_(index);
}

/// What a member function of Partial returns, while no other thread uses the partial.
template <auto member> auto fact(SharedPartial& self) {
  return self.with([](const Partial& partial) { return (partial.*member)(); });
}

void bind_partial(nb::module_& m) {
  nb::class_<SharedPartial>(m, "Partial")
      .def("__init__",
           [](SharedPartial* self, const Method& method, std::uint64_t begin, std::optional<int> grid) {
             new (self) SharedPartial{Partial{method, begin, grid}};
           })
      .def("add", &add_portion)
      .def("merge",
           [](SharedPartial& self, SharedPartial& next) {
             const Partial other = next.get();
             self.with([&](Partial& partial) { partial.merge(other); });
           })
      .def("finish", &finish)
      .def_prop_ro(
          "method",
          [](SharedPartial& self) { return self.with([](const Partial& p) { return &p.method(); }); },
          nb::rv_policy::reference)
      .def_prop_ro("begin", &fact<&Partial::begin>)
      .def_prop_ro("end", &fact<&Partial::end>)
      .def("copy", [](SharedPartial& self) { return new SharedPartial{self.get()}; })
      .def("serialise", [](SharedPartial& self) { return to_bytes(fact<&Partial::serialise>(self)); })
      .def_static("deserialise", [](const nb::bytes& data, std::string_view backend) {
        return new SharedPartial{Partial::deserialise(span_of(data), backend)};
      });
}

constexpr const char* fsum_signature =
    "def fsum(iterable: Iterable[SupportsFloat | SupportsIndex], /) -> float";
constexpr const char* fsum_text =
    R"(Returns the correctly rounded sum of an iterable of numbers, as `math.fsum` does.

Use it in place of `math.fsum`: it raises the same errors for objects that are not numbers, and ValueError for
infinities of both signs; it rounds every int to fp64 first. It differs in one point: intermediate sums never
overflow. OverflowError means that the exact sum itself is beyond fp64. It needs no NumPy, and reads lists and
tuples the fastest; for arrays, `samesum.sum` is faster. What a masked array hides, and nulls of columns of pandas, polars
and Arrow, take no part. Promise: `order_free`.

>>> fsum([0.1] * 10)
1.0
>>> fsum([1e308, 1e308, -1e308])
1e+308)";

}  // namespace

void bind_states(nb::module_& m) {
  m.def("fsum", &fsum, nb::arg().none(), nb::sig(fsum_signature), fsum_text);
  bind_exact(m);
  bind_partial(m);
}

}  // namespace samesum::python
