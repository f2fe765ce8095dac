/// The extension module: the catalogue, and calls on memory whose address the Python side passes.
#include "module.hpp"

#include <algorithm>
#include <cmath>

#include "samesum/base/environment.hpp"
#include "samesum/call/promise.hpp"

namespace samesum::python {

const FormatInfo& format_named(std::string_view name) {
  if (const FormatInfo* format = find_format(name)) return *format;
  throw std::invalid_argument("samesum: '" + std::string{name} +
                              "' is not a format; use fp16, bf16, fp32 or fp64");
}

namespace {

/// Runs a part of a call: `count` results from number `first` on, along `outer` or `inner`.
void reduce_part(const Call& call, std::size_t first, std::size_t count, bool along_outer) {
  const Layout& all = call.layout;
  const std::size_t skipped = first * (along_outer ? all.outer_stride : 1);
  Call part = call;
  part.x = part_of(call.x, skipped, call.x.size - skipped);
  part.y = part_of(call.y, skipped, call.x.size - skipped);
  (along_outer ? part.layout.outer : part.layout.inner) = count;
  const std::size_t bytes = call.out.format ? call.out.format->bytes : sizeof(std::int64_t);
  const bool per_element = call.method->has_result_per_element;
  const std::size_t stride = per_element ? call.out.stride_of(all) : along_outer ? all.inner : 1;
  const std::size_t results = static_cast<std::size_t>(call.method->results);
  const std::size_t before = first * stride * results;
  part.out.data = static_cast<std::byte*>(call.out.data) + before * bytes;
  part.out.size = per_element ? call.out.size - before : count * (along_outer ? all.inner : 1) * results;
  run(part);
}

/// Reduces one long vector in chunks, with the bits of one call.
void reduce_vector(const Call& call) {
  Partial partial{*call.method, 0, call.options.grid};
  for (std::size_t i = 0; i < call.x.size; i += chunk) {
    const std::size_t n = std::min(chunk, call.x.size - i);
    partial.add(part_of(call.x, i, n), part_of(call.y, i, n), call.options);
    check_signals();
  }
  partial.finish(call.out, call.options);
}

KeyFormat key_format_named(std::string_view name) {
  if (name == "int32") return KeyFormat::int32;
  if (name == "uint32") return KeyFormat::uint32;
  if (name == "int64") return KeyFormat::int64;
  throw std::invalid_argument("samesum: '" + std::string{name} +
                              "' is not a format of keys; use int32, uint32 or int64");
}

std::string facts(const Method& m) {
  return "<samesum.Method " + m.name + ", " + std::string{name_of(m.promise)} + ">";
}

}  // namespace

void reduce_on_host(const Call& call) {
  const Layout& l = call.layout;
  if (call.keys.is_given() || l.offsets) return run(call);
  const std::size_t elements = l.results() * l.n;
  const bool one = l.outer == 1 && l.inner == 1 && l.stride == 1 && !call.method->has_result_per_element;
  if (elements <= 2 * chunk) return run(call);
  // Without a grid, a sum in fixed point finds one from all elements.
  const bool can_be_cut =
      call.method->promise >= Promise::everywhere && (!call.method->takes_grid || call.options.grid);
  if (one && l.n == call.x.size && can_be_cut) return reduce_vector(call);
  const bool along_outer = l.outer > 1;
  const std::size_t all = along_outer ? l.outer : l.inner;
  // The elements between those of a column have results of their own.
  const bool is_whole = call.method->has_result_per_element && !along_outer;
  if (all <= 1 || elements / all == 0 || is_whole) return run(call);
  const std::size_t step = std::max<std::size_t>(chunk / (elements / all), along_outer ? 1 : 64);
  for (std::size_t i = 0; i < all; i += step) {
    reduce_part(call, i, std::min(step, all - i), along_outer);
    check_signals();
  }
}

void run_at(const Call& call, Place place) {
  if (place.device < 0) return reduce_on_host(call);
  const Layout& all = call.layout;
  const bool is_whole = call.keys.is_given() || all.offsets || !call.method->accepts(*call.x.format) ||
                        call.method->accepts(*call.x.format, all);
  if (is_whole) return reduce_on_gpu(call, place);
  // The method reduces single contiguous vectors only.
  for (std::size_t row = 0; row < all.outer; ++row) {
    Call one = call;
    one.x = part_of(call.x, row * all.outer_stride, all.n);
    one.y = part_of(call.y, row * all.outer_stride, all.n);
    one.layout = Layout::vector(all.n);
    one.out.data = static_cast<std::byte*>(call.out.data) + row * call.method->result_bytes();
    one.out.size = static_cast<std::size_t>(call.method->results);
    reduce_on_gpu(one, place);
  }
}

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // caches hold methods until the process ends
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
  // The one binding of calls. `x`, `y`, `keys` and `offsets` are addresses; `layout` has the fields of Layout
  // before `offsets`. `size` is the number of elements of an input, `key_format` is "" without keys.
  m.def("run", [](const Method& method, std::string_view format, std::uintptr_t x, std::uintptr_t y,
                  std::size_t size, std::string_view key_format, std::uintptr_t keys,
                  const std::vector<std::size_t>& layout, std::uintptr_t offsets, std::uintptr_t out,
                  std::size_t out_size, std::size_t out_stride, int device, std::uintptr_t stream,
                  int threads, double ddof, bool exclusive, std::optional<int> grid, bool combine) {
    const FormatInfo& input = format_named(format);
    const Layout l{layout.at(0), layout.at(1), layout.at(2),
                   layout.at(3), layout.at(4), reinterpret_cast<const std::uint64_t*>(offsets)};
    const Call call{
        .method = &method,
        .x = values_at(input, x, method.inputs == 0 ? 0 : size),
        .y = method.inputs == 2 ? values_at(input, y, size) : Values{},
        .keys = key_format.empty()
                    ? Keys{}
                    : Keys{key_format_named(key_format), reinterpret_cast<const void*>(keys), l.n},
        .layout = l,
        .out = {method.result_format(input), reinterpret_cast<void*>(out), out_size, out_stride},
        .options = {
            .threads = threads, .ddof = ddof, .exclusive = exclusive, .grid = grid, .combine = combine}};
    const nb::gil_scoped_release released;
    run_at(call, {device, stream});
  });
  // Correctly rounded, in place: array libraries may use square roots that are not.
  m.def("square_root", [](std::string_view format, std::uintptr_t x, std::size_t n) {
    const FloatingPointEnvironment environment;
    with_format(format_named(format), [&]<class F>() {
      F* const at = reinterpret_cast<F*>(x);
      for (std::size_t i = 0; i < n; ++i) at[i] = convert<F>(std::sqrt(convert<double>(at[i])));
    });
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
  bind_study(m);
  bind_states(m);
  bind_fast(m);
  bind_gpu(m);
  bind_foreign(m);
}

}  // namespace samesum::python
