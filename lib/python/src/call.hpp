/// A call as a value: what the public functions of Python build once, and pass down to the library.
///
/// Its fields hold objects of Python. The type is written against Python's C interface: an object of
/// nanobind, or of a class of Python, takes longer to make, which calls on few elements notice.
#pragma once

#include "module.hpp"

/// The fields, and their values unless the caller gives others. See samesum/_core.pyi for what they mean.
#define SAMESUM_CALL_FIELDS(FIELD)           \
  FIELD(operation, nb::none())               \
  FIELD(x, nb::none())                       \
  FIELD(axis, nb::none())                    \
  FIELD(dtype, nb::none())                   \
  FIELD(out, nb::none())                     \
  FIELD(keepdims, nb::bool_(false))          \
  FIELD(method, nb::none())                  \
  FIELD(threads, nb::int_(0))                \
  FIELD(where, nb::none())                   \
  FIELD(skipna, nb::bool_(false))            \
  FIELD(dim, nb::none())                     \
  FIELD(keepdim, nb::none())                 \
  FIELD(grid, nb::none())                    \
  FIELD(check, nb::bool_(false))             \
  FIELD(ddof, nb::float_(0))                 \
  FIELD(finish, nb::none())                  \
  FIELD(y, nb::none())                       \
  FIELD(second, nb::str("y"))                \
  FIELD(weights, nb::none())                 \
  FIELD(weights_are, nb::str("frequencies")) \
  FIELD(as_numpy, nb::bool_(false))          \
  FIELD(is_detached, nb::bool_(false))       \
  FIELD(function, nb::none())                \
  FIELD(exclusive, nb::bool_(false))         \
  FIELD(include_initial, nb::bool_(false))   \
  FIELD(window, nb::int_(0))                 \
  FIELD(min_periods, nb::none())             \
  FIELD(center, nb::bool_(false))            \
  FIELD(keys, nb::none())                    \
  FIELD(key_format, nb::none())              \
  FIELD(combine, nb::bool_(false))           \
  FIELD(library, nb::none())                 \
  FIELD(format, nb::none())                  \
  FIELD(axes, nb::none())                    \
  FIELD(layout, nb::none())                  \
  FIELD(offsets, nb::none())                 \
  FIELD(result, nb::none())                  \
  FIELD(result_stride, nb::int_(0))          \
  FIELD(second_result, nb::none())           \
  FIELD(result_format, nb::none())

namespace samesum::python {

/// A call of Python's side. It owns nothing: the object lives as long as the caller holds it.
class PythonCall {
 public:
  enum Field : std::size_t {
#define SAMESUM_FIELD(name, value) name,
    SAMESUM_CALL_FIELDS(SAMESUM_FIELD)
#undef SAMESUM_FIELD
        count
  };
  /// Reads the fields of a `_core.Call`. Throws TypeError for every other object.
  explicit PythonCall(nb::handle call);
  nb::handle operator[](Field field) const;
  /// Whether a field is given, and not None.
  bool has(Field field) const { return fields_[field] && fields_[field] != Py_None; }
  /// Whether a field is true, as Python has it.
  bool is_true(Field field) const;
  /// Throws TypeError for a value of another type.
  template <class T> T as(Field field) const try {
    return nb::cast<T>((*this)[field]);
  } catch (const nb::cast_error&) {
    refuse(field);
  }

 private:
  [[noreturn]] static void refuse(Field field);

  PyObject* const* fields_;
};

/// Returns the `View` of Python's side of the array of a field that is given. It is an array of the library
/// of the call, or already a view.
nb::tuple view_of(const PythonCall& call, PythonCall::Field field);

/// Where the elements of an array lie.
struct Memory {
  std::uintptr_t address = 0;
  std::size_t size = 0;
  Place place = {};
};

/// Returns where the array of a `View` of Python's side lies.
Memory memory_of(const nb::tuple& view);
/// Returns where the array of a field lies; nothing in memory if the field is not given.
Memory memory_of(const PythonCall& call, PythonCall::Field field);

void bind_call(nb::module_& m);

}  // namespace samesum::python
