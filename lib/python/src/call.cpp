#include "call.hpp"

namespace samesum::python {
namespace {

/// A call. Fields that are not given are null. It takes no part in the search for circles of references:
/// nothing that it refers to refers to it.
struct CallObject {
  PyObject_HEAD PyObject* fields[PythonCall::count];
};

/// What the type knows of its fields: their names and values unless given. Never released.
struct CallFields {
  PyObject* names[PythonCall::count] = {};
  PyObject* values[PythonCall::count] = {};
  PyObject* type = nullptr;
};
CallFields of_calls;

constexpr const char* field_names[] = {
#define SAMESUM_FIELD(name, value) #name,
    SAMESUM_CALL_FIELDS(SAMESUM_FIELD)
#undef SAMESUM_FIELD
};

/// Returns the field of that name; `count` if there is none. Names in source code are interned.
std::size_t field_named(PyObject* name) {
  std::size_t field = 0;
  while (field < PythonCall::count && of_calls.names[field] != name) ++field;
  if (field == PythonCall::count)
    for (field = 0; field < PythonCall::count && PyUnicode_Compare(of_calls.names[field], name) != 0;)
      ++field;
  return field;
}

/// Sets the fields that are given by their names.
bool set_named(CallObject& call, PyObject* keywords) {
  Py_ssize_t at = 0;
  for (PyObject *name, *value; PyDict_Next(keywords, &at, &name, &value);) {
    const std::size_t field = field_named(name);
    if (field == PythonCall::count || call.fields[field]) {
      PyErr_Format(PyExc_TypeError, "Call() has no field '%U', or it is given twice", name);
      return false;
    }
    call.fields[field] = Py_NewRef(value);
  }
  return true;
}

PyObject* item_of(PyObject* tuple, Py_ssize_t i) {
#ifdef Py_LIMITED_API
  return PyTuple_GetItem(tuple, i);
#else
  return PyTuple_GET_ITEM(tuple, i);
#endif
}

/// Makes a call. `maker` is the class of Python's side that is called for it.
PyObject* make_call(PyObject* /*maker*/, PyObject* arguments, PyObject* keywords) {
  const Py_ssize_t given = PyTuple_Size(arguments);
  if (given > Py_ssize_t{PythonCall::count}) {
    PyErr_SetString(PyExc_TypeError, "Call() has fewer fields");
    return nullptr;
  }
  PyObject* const self = PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(of_calls.type), 0);
  if (!self) return nullptr;
  CallObject& call = *reinterpret_cast<CallObject*>(self);
  for (Py_ssize_t i = 0; i < given; ++i) call.fields[i] = Py_NewRef(item_of(arguments, i));
  if (!keywords || set_named(call, keywords)) return self;
  Py_DECREF(self);
  return nullptr;
}

PyObject* copy_of_call(PyObject* self, PyObject*) {
  PyObject* const copy = PyType_GenericAlloc(Py_TYPE(self), 0);
  if (!copy) return nullptr;
  for (std::size_t field = 0; field < PythonCall::count; ++field)
    reinterpret_cast<CallObject*>(copy)->fields[field] =
        Py_XNewRef(reinterpret_cast<CallObject*>(self)->fields[field]);
  return copy;
}

/// `closure` is the address of the name of the field.
std::size_t field_of(void* closure) {
  return static_cast<std::size_t>(static_cast<const char* const*>(closure) - field_names);
}

PyObject* get_field(PyObject* self, void* closure) {
  const std::size_t field = field_of(closure);
  PyObject* const value = reinterpret_cast<CallObject*>(self)->fields[field];
  return Py_NewRef(value ? value : of_calls.values[field]);
}

int set_field(PyObject* self, PyObject* value, void* closure) {
  PyObject*& field = reinterpret_cast<CallObject*>(self)->fields[field_of(closure)];
  PyObject* const before = field;
  field = Py_XNewRef(value);
  Py_XDECREF(before);
  return 0;
}

void destroy_call(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  for (PyObject* field : reinterpret_cast<CallObject*>(self)->fields) Py_XDECREF(field);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMethodDef call_methods[] = {
    {"copy", copy_of_call, METH_NOARGS, "Returns a call with the same fields, to change some of them."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PythonCall::PythonCall(nb::handle call) {
  if (!PyObject_TypeCheck(call.ptr(), reinterpret_cast<PyTypeObject*>(of_calls.type)))
    throw nb::type_error("samesum: pass a Call");
  fields_ = reinterpret_cast<CallObject*>(call.ptr())->fields;
}

nb::handle PythonCall::operator[](Field field) const {
  return fields_[field] ? fields_[field] : of_calls.values[field];
}

bool PythonCall::is_true(Field field) const {
  PyObject* const value = (*this)[field].ptr();
  if (value == Py_False || value == Py_None) return false;
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) throw nb::python_error();
  return truth == 1;
}

void PythonCall::refuse(Field field) {
  throw nb::type_error(
      (std::string{"samesum: "} + field_names[field] + " is of a type that no call takes").c_str());
}

void bind_call(nb::module_& m) {
  static PyGetSetDef members[PythonCall::count + 1] = {};
  std::size_t field = 0;
#define SAMESUM_FIELD(name, value)                                        \
  of_calls.names[field] = PyUnicode_InternFromString(field_names[field]); \
  of_calls.values[field++] = nb::object(value).release().ptr();
  SAMESUM_CALL_FIELDS(SAMESUM_FIELD)
#undef SAMESUM_FIELD
  for (field = 0; field < PythonCall::count; ++field)
    members[field] = {field_names[field], get_field, set_field, nullptr,
                      const_cast<const char**>(field_names + field)};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&destroy_call)},
                                {Py_tp_getset, members},
                                {Py_tp_methods, call_methods},
                                {0, nullptr}};
  static PyType_Spec spec{"samesum._core.Call", sizeof(CallObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static PyType_Slot slots_of_type[] = {{Py_tp_call, reinterpret_cast<void*>(&make_call)}, {0, nullptr}};
  static PyType_Spec spec_of_type{"samesum._core.CallMaker", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                  slots_of_type};
  of_calls.type = PyType_FromSpec(&spec);
  const auto type =
      nb::steal(PyType_FromSpecWithBases(&spec_of_type, reinterpret_cast<PyObject*>(&PyType_Type)));
  if (!of_calls.type || !type) throw nb::python_error();
  m.attr("Call") = nb::handle(of_calls.type);
  m.attr("CallMaker") = type;
  nb::dict values;
  for (field = 0; field < PythonCall::count; ++field)
    values[nb::handle(of_calls.names[field])] = nb::handle(of_calls.values[field]);
  m.attr("call_fields") = values;
}

}  // namespace samesum::python
