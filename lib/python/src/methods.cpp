/// The catalogue: formats and methods, and how they are found.
#include "module.hpp"
#include "samesum/base/text.hpp"
#include "samesum/call/promise.hpp"

namespace samesum::python {

const FormatInfo& format_named(std::string_view name) {
  if (const FormatInfo* format = find_format(name)) return *format;
  throw std::invalid_argument("samesum: '" + std::string{name} + "' is not a format; use one of " +
                              listed(formats, ", ", &FormatInfo::name));
}

namespace {

std::string facts(const Method& m) {
  return "<samesum.Method " + m.name + ", " + std::string{name_of(m.promise)} + ">";
}

void bind_method(nb::module_& m) {
  nb::class_<Method>(m, "Method",
                     "A reduction method: what is computed, in which order, and how terms are added.")
      .def_ro("name", &Method::name, "Full name: operation/order/accumulator/format@backend.")
      .def_ro("operation", &Method::operation, "\"sum\", \"dot\", …")
      .def_ro("order", &Method::order, "Order of the additions; \"\" if the method has none.")
      .def_ro("accumulator", &Method::accumulator,
              "How terms are added; \"\" if the operation has a state of its own.")
      .def_prop_ro(
          "format", [](const Method& x) { return x.format->name; },
          "Format of the accumulator and the results.")
      .def_ro("backend", &Method::backend, "\"cpu\", \"cuda\" or \"reference\".")
      .def_prop_ro(
          "promise", [](const Method& x) { return name_of(x.promise); },
          "Guarantee about the bits: none < run_to_run < everywhere < order_free.")
      .def_ro("inputs", &Method::inputs, "Number of inputs: 2 for dot.")
      .def_ro("results", &Method::results, "Numbers per result: 2 for moments.")
      .def_ro("returns_index", &Method::returns_index, "Whether results are indices (int64).")
      .def_ro("has_result_per_element", &Method::has_result_per_element,
              "Whether each element has a result, as in softmax.")
      .def_ro("keeps_format", &Method::keeps_format,
              "Whether the results have the format of the elements, as in softmax.")
      .def_ro("takes_keys", &Method::takes_keys, "Whether elements are reduced by key, as in scatter_add.")
      .def_ro("takes_window", &Method::takes_window,
              "Whether each result is that of a window of elements, as in rolling_sum.")
      .def_prop_ro(
          "is_scan", [](const Method& x) { return x.is_scan(); },
          "Whether result i is that of the first i + 1 elements.")
      .def_ro("is_slow", &Method::is_slow, "Whether the method is slow by design and exists for the study.")
      .def_ro("height_formula", &Method::height_formula, "Formula of `height` in n.")
      .def(
          "height", [](const Method& x, std::size_t n) { return x.height(n).total(); }, nb::arg("n"),
          "Number of additions on the longest path from an element to the result.")
      .def(
          "accepts", [](const Method& x, std::string_view format) { return x.accepts(format_named(format)); },
          nb::arg("format"), "Whether the method accepts elements of a format.")
      .def("__repr__", &facts);
}

}  // namespace

void bind_methods(nb::module_& m) {
  bind_method(m);
  m.def("methods", [] {
    nb::list all;
    for (const Method& x : methods()) all.append(nb::cast(&x, nb::rv_policy::reference));
    return all;
  });
  m.def("absent", [] {
    nb::dict reasons;
    for (const Absent& x : absent()) reasons[nb::cast(x.backend)] = x.reason;
    return reasons;
  });
  m.def(
      "find",
      [](std::string_view name, std::string_view operation, std::string_view format,
         std::string_view backend) {
        return &find(name, {operation, format, backend});
      },
      nb::rv_policy::reference);
  m.def("accepts_layout",
        [](const Method& method, std::string_view format, const std::vector<std::size_t>& l) {
          return method.accepts(format_named(format), {l.at(0), l.at(1), l.at(2), l.at(3), l.at(4), nullptr});
        });
  m.def(
      "default_method",
      [](std::string_view operation, std::string_view format, std::string_view backend) {
        return default_method(operation, format_named(format), backend);
      },
      nb::rv_policy::reference);
  nb::dict bytes;
  for (const FormatInfo& format : formats) bytes[nb::cast(format.name)] = format.bytes;
  m.attr("format_bytes") = bytes;
}

}  // namespace samesum::python
