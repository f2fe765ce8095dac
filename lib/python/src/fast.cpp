/// The short way for the commonest calls: all elements of one contiguous array are reduced to one number. It
/// does no more than Python's side would; it only takes less time. Every other call is left to Python.
#include <unordered_map>

#include "module.hpp"

namespace samesum::python {
namespace {

/// What the Python side has registered of the array libraries that are in use. References are never released:
/// at exit the interpreter may be gone first.
struct Libraries {
  PyObject *array = nullptr, *scalar[Formats::size] = {};                     ///< NumPy
  PyObject *tensor = nullptr, *dtype[Formats::size] = {}, *stream = nullptr;  ///< PyTorch
};
Libraries known;

/// Methods by operation, name as the caller wrote it, format of the elements and backend.
using Methods = std::unordered_map<std::string, const Method*>;
Methods& remembered() {
  static auto& all = *new Methods;
  return all;
}

std::string key_of(std::string_view operation, std::string_view name, std::string_view format,
                   std::string_view backend) {
  std::string key;
  key.reserve(64);
  for (const std::string_view part : {operation, name, format, backend}) key.append(part).push_back(' ');
  return key;
}

/// Arguments of a short call.
struct Short {
  std::string_view operation, method;  ///< `method` is empty for the default
  int threads;
};

/// Returns the method of a call; nullptr if the short way does not have it.
const Method* method_of(const Short& call, const FormatInfo& format, bool on_gpu) {
  const auto found =
      remembered().find(key_of(call.operation, call.method, format.name, on_gpu ? "cuda" : "cpu"));
  if (found == remembered().end()) return nullptr;
  const Method& m = *found->second;
  const bool is_simple = m.inputs == 1 && m.results == 1 && !m.returns_index && !m.has_result_per_element;
  return is_simple ? &m : nullptr;
}

/// Elements up to which another thread could not use the time in which the GIL is released.
constexpr std::size_t few = 4096;

void run(const Method& method, Values x, void* out, Place place, int threads) {
  const View view{method, x, nullptr, Layout::vector(x.size), {method.format, out, 1}, {threads, 0}};
  const auto reduce = [&] { place.device < 0 ? reduce_on_host(view) : reduce_on_gpu(view, place); };
  if (place.device < 0 && x.size <= few) return reduce();
  const nb::gil_scoped_release released;
  reduce();
}

double number_at(const FormatInfo& format, std::uint64_t bits) { return Number{&format, bits}.to_double(); }

/// A view of a contiguous buffer, released at the end. Empty if the object has none.
class Buffer {
 public:
  explicit Buffer(PyObject* x)
      : held_{PyObject_GetBuffer(x, &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0} {
    if (!held_) PyErr_Clear();
  }
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  /// Returns the format of the elements; nullptr if it is none of the library.
  const FormatInfo* format() const {
    if (!held_ || !view_.format || view_.format[0] == 0 || view_.format[1] != 0) return nullptr;
    switch (view_.format[0]) {
      case 'e':
        return &format_info<fp16>();
      case 'f':
        return &format_info<fp32>();
      case 'd':
        return &format_info<fp64>();
      default:
        return nullptr;
    }
  }
  Values values(const FormatInfo& format) const {
    return {format, view_.buf, static_cast<std::size_t>(view_.len) / format.bytes};
  }

 private:
  Py_buffer view_{};
  bool held_;
};

nb::object of_array(nb::handle x, const Short& call) {
  const Buffer buffer{x.ptr()};
  const FormatInfo* format = buffer.format();
  const Method* method = format ? method_of(call, *format, false) : nullptr;
  if (!method) return nb::none();
  const Values values = buffer.values(*format);
  if (reinterpret_cast<std::uintptr_t>(values.data) % format->bytes != 0) return nb::none();
  PyObject* scalar = known.scalar[method->format->index];
  if (!scalar) return nb::none();
  std::uint64_t bits = 0;
  run(*method, values, &bits, {}, call.threads);
  return nb::handle(scalar)(number_at(*method->format, bits));
}

nb::object of_list(nb::handle x, const Short& call) {
  const Method* method = method_of(call, format_info<fp64>(), false);
  if (!method) return nb::none();
  std::vector<double> elements;
  elements.reserve(static_cast<std::size_t>(PyList_Size(x.ptr())));
  // No Python code runs in this loop, so the list cannot change.
  for (Py_ssize_t i = 0, n = PyList_Size(x.ptr()); i < n; ++i) {
    PyObject* item = PyList_GetItem(x.ptr(), i);
    if (!PyFloat_CheckExact(item)) return nb::none();
    elements.push_back(PyFloat_AsDouble(item));
  }
  std::uint64_t bits = 0;
  run(*method, elements, &bits, {}, call.threads);
  return nb::cast(number_at(*method->format, bits));
}

nb::object ask(nb::handle object, const char* name) { return object.attr(name)(); }

nb::object of_tensor(nb::handle x, const Short& call) {
  const nb::object dtype = x.attr("dtype");
  const FormatInfo* format = nullptr;
  for (const FormatInfo& f : formats)
    if (dtype.ptr() == known.dtype[f.index]) format = &f;
  if (!format || x.attr("requires_grad").ptr() == Py_True || ask(x, "is_contiguous").ptr() != Py_True)
    return nb::none();
  const int device = nb::cast<int>(ask(x, "get_device"));
  if (device < 0 && !nb::cast<bool>(x.attr("is_cpu"))) return nb::none();
  const Method* method = method_of(call, *format, device >= 0);
  if (!method || method->format != format) return nb::none();
  const auto address = nb::cast<std::uintptr_t>(ask(x, "data_ptr"));
  const auto n = nb::cast<std::size_t>(ask(x, "numel"));
  nb::object out = x.attr("new_empty")(nb::tuple());
  Place place{device, 0};
  if (device >= 0) place.stream = nb::cast<std::uintptr_t>(nb::handle(known.stream)(device));
  run(*method, values_at(*format, address, n),
      reinterpret_cast<void*>(nb::cast<std::uintptr_t>(ask(out, "data_ptr"))), place, call.threads);
  return out;
}

/// Returns the result, or None if the call needs Python's side.
nb::object fast(std::string_view operation, nb::handle x, nb::handle method, nb::handle limit) {
  int threads = 0;
  if (!nb::try_cast(limit, threads) || threads < 0 || !(method.is_none() || PyUnicode_Check(method.ptr())))
    return nb::none();
  const Short call{operation, method.is_none() ? std::string_view{} : nb::cast<std::string_view>(method),
                   threads};
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr()));
  if (type == known.array) return of_array(x, call);
  if (type == known.tensor) return of_tensor(x, call);
  if (PyList_CheckExact(x.ptr())) return of_list(x, call);
  return nb::none();
}

}  // namespace

void bind_fast(nb::module_& m) {
  m.def("fast", &fast, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none());
  m.def("remember", [](std::string_view operation, std::string_view name, std::string_view format,
                       std::string_view backend, const Method& method) {
    remembered()[key_of(operation, name, format, backend)] = &method;
  });
  // The types of scalars by name of their format.
  m.def("know_numpy", [](nb::object array, nb::dict scalars) {
    for (const auto [name, type] : scalars)
      known.scalar[format_named(nb::cast<std::string_view>(name)).index] = type.inc_ref().ptr();
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
