/// The fast path of the most common calls: a contiguous array is reduced over neighbouring axes, or whole; an
/// array of integers over any axes. It does no more than Python's side would; it only takes less time.
/// Python's side makes every other call.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "module.hpp"

namespace samesum::python {
namespace {

/// What the Python side has registered of the array libraries that are in use. References are never released:
/// at exit the interpreter may be gone first.
struct Libraries {
  PyObject *array = nullptr, *empty = nullptr, *scalar[Formats::size] = {},
           *integer[cpu::integer_type_names.size()] = {};                     ///< NumPy
  PyObject *tensor = nullptr, *dtype[Formats::size] = {}, *stream = nullptr;  ///< PyTorch
};
Libraries known;

/// A method's operation, its name as the caller wrote it, the format of the elements and the backend.
template <class Text> using Key = std::array<Text, 4>;

/// Compares keys of views with those of strings, so that a lookup copies no text.
struct KeyHash {
  using is_transparent = void;
  template <class Text> std::size_t operator()(const Key<Text>& key) const {
    std::size_t all = 0;
    for (const std::string_view part : key) all = 31 * all + std::hash<std::string_view>{}(part);
    return all;
  }
};
struct KeyEqual {
  using is_transparent = void;
  template <class A, class B> bool operator()(const Key<A>& a, const Key<B>& b) const {
    return std::equal(a.begin(), a.end(), b.begin());
  }
};
using Methods = std::unordered_map<Key<std::string>, const Method*, KeyHash, KeyEqual>;
Methods& remembered() {
  static auto& all = *new Methods;
  return all;
}

/// Arguments of a call.
struct Arguments {
  std::string_view operation, method;  ///< `method` is empty for the default
  int threads;
  bool all_axes;
  std::vector<int> axes;  ///< as the caller wrote them, unless all are reduced
  bool keeps_axes;
  bool is_detached;  ///< whether autograd need not see the call
  double ddof;
  bool skip_nan;
  bool as_numpy;  ///< whether Python's side replaces the extrema of nothing, infinities and -1
};

/// What a call reduces: elements and the lengths of their axes.
struct Array {
  Values x;
  std::vector<std::size_t> shape;
  Place place = {};

  std::size_t length(std::size_t first, std::size_t last) const {
    return std::accumulate(shape.data() + first, shape.data() + last, std::size_t{1}, std::multiplies{});
  }
};

/// Reduced axes: those from `first` up to but not including `last`.
struct Axes {
  std::size_t first, last;
};

/// Returns the reduced axes; nothing if they are not neighbours in ascending order.
std::optional<Axes> axes_of(const Arguments& call, const Array& a) {
  const int count = static_cast<int>(a.shape.size());
  if (call.all_axes) return Axes{0, a.shape.size()};
  if (call.axes.empty()) return std::nullopt;
  const int first = call.axes[0] < 0 ? call.axes[0] + count : call.axes[0];
  int last = first;
  for (const int axis : call.axes)
    if ((axis < 0 ? axis + count : axis) != last++) return std::nullopt;
  if (first < 0 || last > count) return std::nullopt;
  return Axes{static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
}

/// Returns the lengths of the axes of the result.
std::vector<std::size_t> shape_of(const Arguments& call, const Method& method, const Array& a, Axes axes) {
  std::vector<std::size_t> shape;
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    if (i < axes.first || i >= axes.last || method.has_result_per_element)
      shape.push_back(a.shape[i]);
    else if (call.keeps_axes)
      shape.push_back(1);
  }
  if (method.results > 1) shape.push_back(static_cast<std::size_t>(method.results));
  return shape;
}

nb::tuple tuple_of(const std::vector<std::size_t>& shape) {
  nb::tuple lengths = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t i = 0; i < shape.size(); ++i)
    PyTuple_SetItem(lengths.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromSize_t(shape[i]));
  return lengths;
}

/// A call for which the fast path applies.
struct Found {
  const Method& method;
  Axes axes;
  Layout layout;
};

std::optional<Found> find_remembered(const Arguments& call, const Array& a) {
  const std::optional<Axes> axes = axes_of(call, a);
  if (!axes || (a.x.size == 0 && !call.all_axes)) return std::nullopt;
  const auto found = remembered().find(Key<std::string_view>{call.operation, call.method, a.x.format->name,
                                                             a.place.device < 0 ? "cpu" : "cuda"});
  if (found == remembered().end()) return std::nullopt;
  const Method& m = *found->second;
  const Layout layout = Layout::axis(a.length(0, axes->first), a.length(axes->first, axes->last),
                                     a.length(axes->last, a.shape.size()));
  if (m.inputs != 1 || !m.accepts(*a.x.format, layout) || m.is_scan() || m.takes_window ||
      (m.has_result_per_element && layout.inner != 1))
    return std::nullopt;
  return Found{m, *axes, layout};
}

/// Elements up to which another thread could not use the time in which the GIL is released.
constexpr std::size_t few = 4096;

void run(const Arguments& call, const Found& found, const Array& a, void* out) {
  const auto& [method, axes, layout] = found;
  const std::size_t count =
      method.has_result_per_element ? a.x.size : layout.results() * static_cast<std::size_t>(method.results);
  const Results results{method.result_format(*a.x.format), out, count};
  const Call view{.method = &method,
                  .x = a.x,
                  .layout = layout,
                  .out = results,
                  .options = {.threads = call.threads, .ddof = call.ddof, .skip_nan = call.skip_nan}};
  const auto reduce = [&] { run_at(view, a.place); };
  if (a.place.device < 0 && a.x.size <= few) return reduce();
  const nb::gil_scoped_release released;
  reduce();
}

double number_at(const FormatInfo& format, std::uint64_t bits) { return Number{&format, bits}.to_double(); }

/// A view of a buffer, released at the end. Empty if the object has none; by default, none that is
/// contiguous.
class Buffer {
 public:
  explicit Buffer(PyObject* x, int flags = PyBUF_C_CONTIGUOUS)
      : held_{PyObject_GetBuffer(x, &view_, flags | PyBUF_FORMAT) == 0} {
    if (!held_) PyErr_Clear();
  }
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  /// Returns the format of the elements; nullptr if it is none of the library.
  const FormatInfo* format() const {
    const std::string_view code = held_ && view_.format ? view_.format : "";
    if (code == "e") return &format_info<fp16>();
    if (code == "f") return &format_info<fp32>();
    return code == "d" ? &format_info<fp64>() : nullptr;
  }
  Array array(const FormatInfo& format) const {
    return {{format, view_.buf, static_cast<std::size_t>(view_.len) / format.bytes},
            {view_.shape, view_.shape + view_.ndim}};
  }
  void* data() const { return held_ ? view_.buf : nullptr; }
  /// Returns the type of the elements; nothing if they are no integers of the machine.
  std::optional<cpu::IntegerType> integer_type() const {
    const std::string_view code = held_ && view_.format ? view_.format : "";
    if (code == "?") return cpu::IntegerType::boolean;
    const bool is_signed = code.size() == 1 && std::string_view{"bhilq"}.find(code) != code.npos;
    if (!is_signed && (code.size() != 1 || std::string_view{"BHILQ"}.find(code) == code.npos)) return {};
    const int width = std::countr_zero(static_cast<std::size_t>(view_.itemsize));
    return static_cast<cpu::IntegerType>(width + (is_signed ? 0 : 4));
  }
  /// Returns the integers; nothing if they are not aligned. `is_reduced(axis)` tells which axes are.
  template <class IsReduced>
  std::optional<cpu::IntegerArray> integers(cpu::IntegerType type, IsReduced is_reduced) const {
    cpu::IntegerArray array{type, view_.buf, nullptr, {}};
    bool is_aligned =
        reinterpret_cast<std::uintptr_t>(view_.buf) % static_cast<std::size_t>(view_.itemsize) == 0;
    for (int i = 0; i < view_.ndim; ++i) {
      is_aligned = is_aligned && view_.strides[i] % view_.itemsize == 0;
      array.axes.push_back(
          {static_cast<std::size_t>(view_.shape[i]), view_.strides[i] / view_.itemsize, 0, is_reduced(i)});
    }
    if (!is_aligned) return {};
    return array;
  }
  int axes() const { return held_ ? view_.ndim : 0; }

 private:
  Py_buffer view_{};
  bool held_;
};

/// The type of the results of integers.
cpu::IntegerType result_type(std::string_view operation, cpu::IntegerType type) {
  using enum cpu::IntegerType;
  if (operation == "sum" && type >= uint8 && type <= uint64) return uint64;
  return operation == "sum" || operation.starts_with("arg") ? int64 : type;
}

/// Which axes are reduced; nothing if one does not exist, or is given twice.
std::optional<std::vector<bool>> reduced_axes(const Arguments& call, int count) {
  std::vector<bool> reduced(static_cast<std::size_t>(count), call.all_axes);
  for (const int axis : call.axes) {
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + count : axis);
    if (at >= reduced.size() || reduced[at]) return {};
    reduced[at] = true;
  }
  return reduced;
}

nb::object of_integers(nb::handle x, const Arguments& call) {
  static constexpr std::array<std::string_view, 5> exact{"sum", "min", "max", "argmin", "argmax"};
  if (!call.method.empty() || std::ranges::find(exact, call.operation) == exact.end()) return nb::none();
  const Buffer buffer{x.ptr(), PyBUF_STRIDES};
  const std::optional<cpu::IntegerType> type = buffer.integer_type();
  const auto reduced = reduced_axes(call, buffer.axes());
  if (!type || !reduced) return nb::none();
  const auto array = buffer.integers(*type, [&](int i) { return (*reduced)[static_cast<std::size_t>(i)]; });
  if (!array) return nb::none();
  std::vector<std::size_t> shape;
  std::size_t elements = 1;
  for (const cpu::IntegerAxis& axis : array->axes) {
    elements *= axis.n;
    if (!axis.reduced || call.keeps_axes) shape.push_back(axis.reduced ? 1 : axis.n);
  }
  if (elements == 0) return nb::none();
  const auto result = static_cast<std::size_t>(result_type(call.operation, *type));
  nb::object out = nb::handle(known.empty)(tuple_of(shape), nb::handle(known.integer[result]));
  const Buffer results{out.ptr()};
  const auto reduce = [&] { return reduce_integers(call.operation, *array, results.data()); };
  bool is_invalid;
  if (elements <= few) {
    is_invalid = reduce();
  } else {
    const nb::gil_scoped_release released;
    is_invalid = reduce();
  }
  if (is_invalid) return nb::none();  // Python's side raises the error
  return shape.empty() ? nb::object{out[nb::make_tuple()]} : out;
}

/// Whether one of the results may be the extremum of nothing.
bool may_be_of_nothing(const FormatInfo* format, const void* results, std::size_t n) {
  if (!format) {
    const auto* const indices = static_cast<const std::int64_t*>(results);
    return std::any_of(indices, indices + n, [](std::int64_t index) { return index < 0; });
  }
  return with_format(*format, [&]<class F>() {
    const auto* const numbers = static_cast<const F*>(results);
    return std::any_of(numbers, numbers + n, [](F x) {
      return static_cast<BitsOf<F>>(to_bits(x) & ~Format<F>::sign_bit) == Format<F>::infinity;
    });
  });
}

nb::object of_array(nb::handle x, const Arguments& call) {
  const Buffer buffer{x.ptr()};
  const FormatInfo* format = buffer.format();
  if (!format) return of_integers(x, call);
  const Array a = buffer.array(*format);
  if (reinterpret_cast<std::uintptr_t>(a.x.data) % format->bytes != 0) return nb::none();
  const std::optional<Found> found = find_remembered(call, a);
  if (!found) return nb::none();
  const FormatInfo* const results_in = found->method.result_format(*format);
  PyObject* const scalar =
      results_in ? known.scalar[results_in->index] : known.integer[int(cpu::IntegerType::int64)];
  if (!scalar) return nb::none();
  const std::vector<std::size_t> shape = shape_of(call, found->method, a, found->axes);
  if (shape.empty()) {
    std::uint64_t bits = 0;
    run(call, *found, a, &bits);
    if (call.as_numpy && may_be_of_nothing(results_in, &bits, 1)) return nb::none();
    return results_in ? nb::handle(scalar)(number_at(*results_in, bits))
                      : nb::handle(scalar)(static_cast<std::int64_t>(bits));
  }
  nb::object out = nb::handle(known.empty)(tuple_of(shape), nb::handle(scalar));
  const Buffer results{out.ptr()};
  if (!results.data()) return nb::none();
  run(call, *found, a, results.data());
  if (call.as_numpy && may_be_of_nothing(results_in, results.data(), Layout{found->layout}.results()))
    return nb::none();
  return out;
}

nb::object of_list(nb::handle x, const Arguments& call) {
  std::vector<double> elements;
  elements.reserve(static_cast<std::size_t>(PyList_Size(x.ptr())));
  // No Python code runs in this loop, so the list cannot change.
  for (Py_ssize_t i = 0, n = PyList_Size(x.ptr()); i < n; ++i) {
    PyObject* item = PyList_GetItem(x.ptr(), i);
    if (!PyFloat_CheckExact(item)) return nb::none();
    elements.push_back(PyFloat_AsDouble(item));
  }
  const Array a{elements, {elements.size()}};
  const std::optional<Found> found = find_remembered(call, a);
  if (!found || call.keeps_axes || found->method.returns_index || found->method.has_result_per_element ||
      found->method.results > 1)
    return nb::none();
  std::uint64_t bits = 0;
  run(call, *found, a, &bits);
  return nb::cast(number_at(*found->method.format, bits));
}

nb::object called(nb::handle object, const char* name) { return object.attr(name)(); }

/// Returns the elements of a contiguous and aligned tensor in memory; nothing for any other tensor.
std::optional<Array> elements_of(nb::handle x, bool is_detached) {
  const nb::object dtype = x.attr("dtype");
  const FormatInfo* format = nullptr;
  for (const FormatInfo& f : formats)
    if (dtype.ptr() == known.dtype[f.index]) format = &f;
  if (!format || (!is_detached && x.attr("requires_grad").ptr() == Py_True) ||
      called(x, "is_contiguous").ptr() != Py_True || called(x, "is_neg").ptr() == Py_True)
    return std::nullopt;
  Place place{nb::cast<int>(called(x, "get_device")), 0};
  if (place.device < 0 && !nb::cast<bool>(x.attr("is_cpu"))) return std::nullopt;
  if (place.device >= 0) place.stream = nb::cast<std::uintptr_t>(nb::handle(known.stream)(place.device));
  const auto address = nb::cast<std::uintptr_t>(called(x, "data_ptr"));
  if (address % format->bytes != 0) return std::nullopt;
  std::vector<std::size_t> shape;
  std::size_t n = 1;
  for (const nb::handle length : nb::borrow<nb::tuple>(x.attr("shape"))) {
    shape.push_back(nb::cast<std::size_t>(length));
    n *= shape.back();
  }
  return Array{values_at(*format, address, n), shape, place};
}

nb::object of_tensor(nb::handle x, const Arguments& call) {
  std::optional<Array> a;
  try {
    a = elements_of(x, call.is_detached);
  } catch (nb::python_error& error) {
    // A tensor without memory of its own, as inside torch.vmap.
    if (!error.matches(PyExc_RuntimeError)) throw;
  }
  const std::optional<Found> found = a ? find_remembered(call, *a) : std::nullopt;
  if (!found || found->method.returns_index) return nb::none();
  const nb::tuple shape = tuple_of(shape_of(call, found->method, *a, found->axes));
  const std::size_t format = found->method.result_format(*a->x.format)->index;
  nb::object out = format == a->x.format->index
                       ? x.attr("new_empty")(shape)
                       : x.attr("new_empty")(shape, nb::arg("dtype") = nb::handle(known.dtype[format]));
  run(call, *found, *a, reinterpret_cast<void*>(nb::cast<std::uintptr_t>(called(out, "data_ptr"))));
  return out;
}

/// Returns the result, or None if the call needs Python's side.
nb::object fast(std::string_view operation, nb::handle x, nb::handle method, nb::handle threads,
                nb::handle axis, nb::handle keepdims, bool is_detached, double ddof, bool skip_nan,
                bool as_numpy) {
  const int keeps_axes = PyObject_IsTrue(keepdims.ptr());
  if (keeps_axes < 0) throw nb::python_error();
  Arguments call{operation,       {},          0,    axis.is_none(), {},
                 keeps_axes == 1, is_detached, ddof, skip_nan,       as_numpy};
  if (!nb::try_cast(threads, call.threads) || call.threads < 0) return nb::none();
  if (PyLong_CheckExact(axis.ptr())) {
    if (!nb::try_cast(axis, call.axes.emplace_back())) return nb::none();
  } else if (!call.all_axes && !(PyTuple_CheckExact(axis.ptr()) && nb::try_cast(axis, call.axes))) {
    return nb::none();
  }
  if (!method.is_none()) {
    // An empty name is not the default: Python's side refuses it.
    if (!PyUnicode_CheckExact(method.ptr()) || !nb::try_cast(method, call.method) || call.method.empty())
      return nb::none();
  }
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr()));
  if (type == known.array) return of_array(x, call);
  if (skip_nan) return nb::none();
  if (type == known.tensor) return of_tensor(x, call);
  if (PyList_CheckExact(x.ptr())) return of_list(x, call);
  return nb::none();
}

}  // namespace

void bind_fast(nb::module_& m) {
  m.def("fast", &fast, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
        nb::arg().none(), nb::arg() = false, nb::arg() = 0.0, nb::arg() = false, nb::arg() = false);
  m.def("remember", [](std::string operation, std::string name, std::string format, std::string backend,
                       const Method& method) {
    remembered()[{operation, name, format, backend}] = &method;
  });
  // The types of scalars by name of their format, and those of integers.
  m.def("know_numpy", [](nb::object array, nb::object empty, nb::dict scalars, nb::dict integers) {
    for (const auto [name, type] : scalars)
      known.scalar[format_named(nb::cast<std::string_view>(name)).index] = type.inc_ref().ptr();
    for (const auto [name, type] : integers) {
      const cpu::IntegerType at = integer_type_named(nb::cast<std::string_view>(name));
      known.integer[static_cast<std::size_t>(at)] = type.inc_ref().ptr();
    }
    known.empty = empty.release().ptr();
    known.array = array.release().ptr();
  });
  // The data types by name of their format, and the function that returns the current stream of a device.
  m.def(
      "know_torch",
      [](nb::object tensor, nb::dict dtypes, nb::object stream) {
        for (const auto [name, dtype] : dtypes)
          known.dtype[format_named(nb::cast<std::string_view>(name)).index] = dtype.inc_ref().ptr();
        known.stream = stream.release().ptr();
        known.tensor = tensor.release().ptr();
      },
      nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace samesum::python
