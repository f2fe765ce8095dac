/// The fast path of the most common calls: an array of NumPy is reduced over any axes, a contiguous tensor or
/// a list over neighbouring axes, or whole. It does no more than Python's side would; it only takes less
/// time. Python's side makes every other call.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <unordered_map>

#include "call.hpp"
#include "strided.hpp"

namespace samesum::python {
namespace {

/// What the Python side has registered of the array libraries that are in use. References are never released:
/// at exit the interpreter may be gone first.
struct Libraries {
  PyObject *array = nullptr, *empty = nullptr, *scalar[Formats::size] = {},
           *integer[cpu::integer_type_names.size()] = {};                     ///< NumPy
  PyObject *tensor = nullptr, *dtype[Formats::size] = {}, *stream = nullptr;  ///< PyTorch
  PyObject* finished = nullptr;  ///< returns a result from which a call computes further
};
Libraries known;

/// A method's operation, its name as the caller wrote it, the format of the elements and the backend.
template <class Text> using Key = std::array<Text, 4>;

/// Compares keys of views with those of strings, so that a lookup copies no text. Formats and backends are
/// few.
struct KeyHash {
  using is_transparent = void;
  template <class Text> std::size_t operator()(const Key<Text>& key) const {
    const std::hash<std::string_view> hash;
    return 31 * hash(key[0]) + hash(key[1]);
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

class Buffer;

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
  const Buffer* flags = nullptr;  ///< which elements take part; nullptr for all
};

/// What a call reduces: elements and their axes.
struct Array {
  Values x;  ///< from the first element to the last one that is read
  std::vector<StridedAxis> axes;
  Place place = {};
  bool is_contiguous = true;
  Mask where = {};

  std::size_t length(std::size_t first, std::size_t last) const {
    std::size_t n = 1;
    for (std::size_t d = first; d < last; ++d) n *= axes[d].n;
    return n;
  }
  std::size_t size() const { return length(0, axes.size()); }
};

/// Marks the reduced axes. Returns false if one does not exist, or is given twice.
bool mark_reduced(const Arguments& call, std::vector<StridedAxis>& axes) {
  for (StridedAxis& axis : axes) axis.reduced = call.all_axes;
  for (const int axis : call.axes) {
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<int>(axes.size()) : axis);
    if (at >= axes.size() || axes[at].reduced) return false;
    axes[at].reduced = true;
  }
  return true;
}

/// Returns the layout of a contiguous array; nothing if its reduced axes are not neighbours.
std::optional<Layout> contiguous_layout(const Array& a) {
  const std::size_t count = a.axes.size();
  std::size_t first = 0;
  while (first < count && !a.axes[first].reduced) ++first;
  std::size_t last = first;
  while (last < count && a.axes[last].reduced) ++last;
  for (std::size_t d = last; d < count; ++d)
    if (a.axes[d].reduced) return {};
  return Layout::axis(a.length(0, first), a.length(first, last), a.length(last, count));
}

/// Returns the lengths of the axes of the result.
std::vector<std::size_t> shape_of(const Arguments& call, const Method& method, const Array& a) {
  std::vector<std::size_t> shape;
  for (const StridedAxis& axis : a.axes) {
    if (!axis.reduced || method.has_result_per_element)
      shape.push_back(axis.n);
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

/// Returns the method of a call that Python's side has found before; nullptr if there is none, or it takes
/// other inputs.
const Method* remembered_method(const Arguments& call, const Array& a) {
  const auto found = remembered().find(Key<std::string_view>{call.operation, call.method, a.x.format->name,
                                                             a.place.device < 0 ? "cpu" : "cuda"});
  if (found == remembered().end()) return nullptr;
  const Method& m = *found->second;
  return m.inputs != 1 || m.is_scan() || m.takes_window ? nullptr : &m;
}

/// Elements up to which another thread could not use the time in which the GIL is released.
constexpr std::size_t few = 4096;

/// A call for which the fast path applies.
struct Found {
  const Method& method;
  Layout layout;
};

/// Returns the call of a method that Python's side has found before, unless the array is not contiguous.
std::optional<Found> find_contiguous(const Arguments& call, Array& a) {
  if (!mark_reduced(call, a.axes)) return std::nullopt;
  const std::optional<Layout> layout = contiguous_layout(a);
  const Method* const m = remembered_method(call, a);
  if (!layout || !m || (a.x.size == 0 && !call.all_axes) || !m->accepts(*a.x.format, *layout) ||
      (m->has_result_per_element && layout->inner != 1))
    return std::nullopt;
  return Found{*m, *layout};
}

void run(const Arguments& call, const Found& found, const Array& a, void* out) {
  const auto& [method, layout] = found;
  const std::size_t count =
      method.has_result_per_element ? a.x.size : layout.results() * static_cast<std::size_t>(method.results);
  const Results results{method.result_format(*a.x.format), out, count};
  const Call view{
      .method = &method,
      .x = a.x,
      .layout = layout,
      .out = results,
      .options = {.threads = call.threads, .ddof = call.ddof, .where = a.where, .skip_nan = call.skip_nan}};
  const auto reduce = [&] { run_at(view, a.place); };
  if (a.place.device < 0 && a.x.size <= few) return reduce();
  const nb::gil_scoped_release released;
  reduce();
}

double number_at(const FormatInfo& format, std::uint64_t bits) { return Number{&format, bits}.to_double(); }

/// A view of a buffer, released at the end. Empty if the object has none.
class Buffer {
 public:
  explicit Buffer(PyObject* x) : held_{PyObject_GetBuffer(x, &view_, PyBUF_STRIDES | PyBUF_FORMAT) == 0} {
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
  /// Returns the elements; nothing if they are not aligned, or their strides are no whole numbers of
  /// elements.
  std::optional<Array> array(const FormatInfo& format) const {
    Array a{{format, view_.buf, static_cast<std::size_t>(view_.len) / format.bytes}, {}};
    if (!is_aligned()) return {};
    a.axes = axes();
    a.is_contiguous = PyBuffer_IsContiguous(&view_, 'C') != 0;
    return a;
  }
  std::vector<StridedAxis> axes() const {
    std::vector<StridedAxis> all;
    all.reserve(static_cast<std::size_t>(view_.ndim));
    for (int i = 0; i < view_.ndim; ++i)
      all.push_back({static_cast<std::size_t>(view_.shape[i]), view_.strides[i] / view_.itemsize, false});
    return all;
  }
  /// Whether the elements lie where their type may, and whole numbers of elements apart.
  bool is_aligned() const {
    bool is_aligned =
        reinterpret_cast<std::uintptr_t>(view_.buf) % static_cast<std::size_t>(view_.itemsize) == 0;
    for (int i = 0; i < view_.ndim; ++i) is_aligned = is_aligned && view_.strides[i] % view_.itemsize == 0;
    return is_aligned;
  }
  /// Returns the strides of flags that are broadcast to `axes`; nothing if the buffer holds no flags of such
  /// a shape.
  std::optional<std::vector<std::ptrdiff_t>> strides_of_flags(std::span<const StridedAxis> axes) const {
    const std::string_view code = held_ && view_.format ? view_.format : "";
    const auto count = static_cast<std::size_t>(held_ ? view_.ndim : 0);
    if (code != "?" || count > axes.size()) return {};
    std::vector<std::ptrdiff_t> strides(axes.size(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t d = axes.size() - count + i;
      if (view_.shape[i] == static_cast<Py_ssize_t>(axes[d].n))
        strides[d] = axes[d].n == 1 ? 0 : view_.strides[i];
      else if (view_.shape[i] != 1)
        return {};
    }
    return strides;
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

nb::object of_integers(const Buffer& buffer, const Arguments& call) {
  static constexpr std::array<std::string_view, 5> exact{"sum", "min", "max", "argmin", "argmax"};
  if (!call.method.empty() || std::ranges::find(exact, call.operation) == exact.end()) return nb::none();
  const std::optional<cpu::IntegerType> type = buffer.integer_type();
  if (!type || !buffer.is_aligned()) return nb::none();
  std::vector<StridedAxis> axes = buffer.axes();
  if (!mark_reduced(call, axes)) return nb::none();
  cpu::IntegerArray array{*type, buffer.data(), nullptr, {}};
  std::optional<std::vector<std::ptrdiff_t>> of_flags;
  if (call.flags) {
    of_flags = call.flags->strides_of_flags(axes);
    if (!of_flags) return nb::none();
    array.where = static_cast<const std::uint8_t*>(call.flags->data());
  }
  std::vector<std::size_t> shape;
  std::size_t elements = 1;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const auto& [n, stride, reduced] = axes[d];
    array.axes.push_back({n, stride, of_flags ? (*of_flags)[d] : 0, reduced});
    elements *= n;
    if (!reduced || call.keeps_axes) shape.push_back(reduced ? 1 : n);
  }
  if (elements == 0) return nb::none();
  const auto result = static_cast<std::size_t>(result_type(call.operation, *type));
  nb::object out = nb::handle(known.empty)(tuple_of(shape), nb::handle(known.integer[result]));
  const Buffer results{out.ptr()};
  const auto reduce = [&] { return reduce_integers(call.operation, array, results.data()); };
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

/// Memory of arrays that a call on few elements copies.
struct Copies {
  std::vector<std::uint64_t> elements;
  std::vector<std::uint8_t> flags;
};

/// Returns the call for an array with gaps or flags: in place if a layout reduces both, else for few elements
/// on copies, in which the elements of each result follow each other.
std::optional<Found> find_strided(const Arguments& call, Array& a, Copies& copies) {
  if (!mark_reduced(call, a.axes)) return std::nullopt;
  const Method* const m = remembered_method(call, a);
  const std::size_t size = a.size();
  if (!m || m->has_result_per_element || size == 0) return std::nullopt;
  std::vector<StridedAxis> of_flags = a.axes;
  if (call.flags) {
    const auto strides = call.flags->strides_of_flags(a.axes);
    if (!strides) return std::nullopt;
    for (std::size_t d = 0; d < of_flags.size(); ++d) of_flags[d].stride = (*strides)[d];
  }
  bool in_place = true;
  std::size_t extent = 1;
  for (std::size_t d = 0; d < of_flags.size(); ++d) {
    const auto& [n, stride, reduced] = a.axes[d];
    const bool is_repeated = stride == 0 && !reduced;  // Python's side computes such results once
    in_place = in_place && (n == 1 || (stride == of_flags[d].stride && !is_repeated));
    if (n > 1 && stride > 0) extent += (n - 1) * static_cast<std::size_t>(stride);
  }
  const std::optional<Layout> layout = in_place ? layout_of(a.axes) : std::nullopt;
  if (layout && m->accepts(*a.x.format, *layout)) {
    a.x.size = extent;
    if (call.flags) a.where = {call.flags->data(), extent};
    return Found{*m, *layout};
  }
  if (size > few) return std::nullopt;
  const std::size_t bytes = a.x.format->bytes;
  copies.elements.resize((size * bytes + 7) / 8);
  pack_rows(a.axes, a.x.data, bytes, copies.elements.data());
  a.x = {*a.x.format, copies.elements.data(), size};
  if (call.flags) {
    copies.flags.resize(size);
    pack_rows(of_flags, call.flags->data(), 1, copies.flags.data());
    a.where = {copies.flags.data(), size};
  }
  std::size_t count = 1;
  for (const StridedAxis& axis : a.axes) count *= axis.reduced ? 1 : axis.n;
  const Layout rows = Layout::rows(count, size / count);
  if (!m->accepts(*a.x.format, rows)) return std::nullopt;
  return Found{*m, rows};
}

std::optional<Found> find_in_array(const Arguments& call, Array& a, Copies& copies) {
  if (a.is_contiguous && !call.flags)
    if (const auto found = find_contiguous(call, a)) return found;
  return find_strided(call, a, copies);
}

nb::object of_array(nb::handle x, const Arguments& call) {
  const Buffer buffer{x.ptr()};
  const FormatInfo* format = buffer.format();
  if (!format) return of_integers(buffer, call);
  std::optional<Array> a = buffer.array(*format);
  if (!a) return nb::none();
  Copies copies;
  const std::optional<Found> found = find_in_array(call, *a, copies);
  if (!found) return nb::none();
  const FormatInfo* const results_in = found->method.result_format(*format);
  PyObject* const scalar =
      results_in ? known.scalar[results_in->index] : known.integer[int(cpu::IntegerType::int64)];
  if (!scalar) return nb::none();
  const std::vector<std::size_t> shape = shape_of(call, found->method, *a);
  if (shape.empty()) {
    std::uint64_t bits = 0;
    run(call, *found, *a, &bits);
    if (call.as_numpy && may_be_of_nothing(results_in, &bits, 1)) return nb::none();
    return results_in ? nb::handle(scalar)(number_at(*results_in, bits))
                      : nb::handle(scalar)(static_cast<std::int64_t>(bits));
  }
  nb::object out = nb::handle(known.empty)(tuple_of(shape), nb::handle(scalar));
  const Buffer results{out.ptr()};
  if (!results.data()) return nb::none();
  run(call, *found, *a, results.data());
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
  Array a{elements, {{elements.size(), 1, false}}};
  const std::optional<Found> found = find_contiguous(call, a);
  if (!found || call.keeps_axes || found->method.returns_index || found->method.has_result_per_element ||
      found->method.results > 1)
    return nb::none();
  std::uint64_t bits = 0;
  run(call, *found, a, &bits);
  return nb::cast(number_at(*found->method.format, bits));
}

nb::object called(nb::handle object, const char* name) { return object.attr(name)(); }

/// Returns the elements of an aligned tensor in memory, on a GPU of a contiguous one; nothing for any other
/// tensor.
std::optional<Array> elements_of(nb::handle x, bool is_detached) {
  const nb::object dtype = x.attr("dtype");
  const FormatInfo* format = nullptr;
  for (const FormatInfo& f : formats)
    if (dtype.ptr() == known.dtype[f.index]) format = &f;
  if (!format || (!is_detached && x.attr("requires_grad").ptr() == Py_True) ||
      called(x, "is_neg").ptr() == Py_True)
    return std::nullopt;
  const bool is_contiguous = called(x, "is_contiguous").ptr() == Py_True;
  Place place{nb::cast<int>(called(x, "get_device")), 0};
  if (place.device < 0 ? !nb::cast<bool>(x.attr("is_cpu")) : !is_contiguous) return std::nullopt;
  if (place.device >= 0) place.stream = nb::cast<std::uintptr_t>(nb::handle(known.stream)(place.device));
  const auto address = nb::cast<std::uintptr_t>(called(x, "data_ptr"));
  if (address % format->bytes != 0) return std::nullopt;
  std::vector<StridedAxis> axes;  // without strides if the tensor is contiguous
  std::size_t n = 1;
  for (const nb::handle length : nb::borrow<nb::tuple>(x.attr("shape"))) {
    axes.push_back({nb::cast<std::size_t>(length), 0, false});
    n *= axes.back().n;
  }
  if (!is_contiguous) {
    const auto strides = nb::borrow<nb::tuple>(called(x, "stride"));
    for (std::size_t d = 0; d < axes.size(); ++d) axes[d].stride = nb::cast<std::ptrdiff_t>(strides[d]);
  }
  return Array{values_at(*format, address, n), axes, place, is_contiguous};
}

nb::object of_tensor(nb::handle x, const Arguments& call) {
  std::optional<Array> a;
  try {
    a = elements_of(x, call.is_detached);
  } catch (nb::python_error& error) {
    // A tensor without memory of its own, as inside torch.vmap.
    if (!error.matches(PyExc_RuntimeError)) throw;
  }
  if (!a) return nb::none();
  Copies copies;
  const std::optional<Found> found =
      a->is_contiguous ? find_contiguous(call, *a) : find_strided(call, *a, copies);
  if (!found || found->method.returns_index) return nb::none();
  const nb::tuple shape = tuple_of(shape_of(call, found->method, *a));
  const std::size_t format = found->method.result_format(*a->x.format)->index;
  nb::object out = format == a->x.format->index
                       ? x.attr("new_empty")(shape)
                       : x.attr("new_empty")(shape, nb::arg("dtype") = nb::handle(known.dtype[format]));
  run(call, *found, *a, reinterpret_cast<void*>(nb::cast<std::uintptr_t>(called(out, "data_ptr"))));
  return out;
}

/// Returns the result before the call computes further from it, or None if the call needs Python's side.
nb::object fast_result(const PythonCall& given) {
  using enum PythonCall::Field;
  if (given.has(dtype) || given.has(out) || given.has(grid) || given.has(dim) || given.has(keepdim) ||
      given.has(y) || given.is_true(check))
    return nb::none();
  Arguments call{};
  call.operation = given.as<std::string_view>(operation);
  call.keeps_axes = given.is_true(keepdims);
  call.is_detached = given.is_true(is_detached);
  call.ddof = given.as<double>(ddof);
  call.skip_nan = given.is_true(skipna);
  call.as_numpy = given.is_true(as_numpy);
  if (!nb::try_cast(given[threads], call.threads) || call.threads < 0) return nb::none();
  const nb::handle elements = given[x], reduced = given[axis], name = given[method];
  call.all_axes = reduced.is_none();
  if (PyLong_CheckExact(reduced.ptr())) {
    if (!nb::try_cast(reduced, call.axes.emplace_back())) return nb::none();
  } else if (!call.all_axes && !(PyTuple_CheckExact(reduced.ptr()) && nb::try_cast(reduced, call.axes))) {
    return nb::none();
  }
  if (!name.is_none()) {
    // An empty name is not the default: Python's side refuses it.
    if (!PyUnicode_CheckExact(name.ptr()) || !nb::try_cast(name, call.method) || call.method.empty())
      return nb::none();
  }
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(elements.ptr()));
  if (given.has(where)) {
    if (type != known.array || reinterpret_cast<PyObject*>(Py_TYPE(given[where].ptr())) != known.array)
      return nb::none();
    const Buffer flags{given[where].ptr()};
    call.flags = &flags;
    return of_array(elements, call);
  }
  if (type == known.array) return of_array(elements, call);
  if (call.skip_nan) return nb::none();
  if (type == known.tensor) return of_tensor(elements, call);
  if (PyList_CheckExact(elements.ptr())) return of_list(elements, call);
  return nb::none();
}

/// The function `fast`. Not one of nanobind, which takes as long as the call of the library to be called. If
/// the library refuses a call, Python's side makes it again, and raises the error.
PyObject* fast(PyObject* /*module*/, PyObject* object) try {
  const PythonCall call{object};
  nb::object result = fast_result(call);
  if (!result.is_none() && call.has(PythonCall::finish))
    result = nb::handle(known.finished)(call[PythonCall::x], call[PythonCall::finish], result);
  return result.release().ptr();
} catch (nb::python_error& error) {
  error.restore();
  return nullptr;
} catch (const std::exception&) {
  return nb::none().release().ptr();
}

PyMethodDef definition_of_fast = {"fast", &fast, METH_O, nullptr};

}  // namespace

void bind_fast(nb::module_& m) {
  m.attr("fast") = nb::steal(PyCFunction_New(&definition_of_fast, nullptr));
  m.def("finish_by", [](nb::object finished) { known.finished = finished.release().ptr(); });
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
