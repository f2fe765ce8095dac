/// The extension module: calls on memory whose address the Python side passes.
#include "module.hpp"

#include <algorithm>
#include <cmath>

#include "call.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/call/promise.hpp"
#include "strided.hpp"

namespace samesum::python {
namespace {

/// Runs a part of a call: `count` results from number `first` on, along `outer` or `inner`.
void reduce_part(const Call& call, std::size_t first, std::size_t count, bool along_outer) {
  const Layout& all = call.layout;
  const std::size_t skipped = first * (along_outer ? all.outer_stride : 1);
  Call part = call;
  part.x = part_of(call.x, skipped, call.x.size - skipped);
  part.y = part_of(call.y, skipped, call.x.size - skipped);
  if (const Mask& where = call.options.where; where.is_given())
    part.options.where = {where.data + skipped, where.size - skipped};
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

}  // namespace

void reduce_on_host(const Call& call) {
  const Layout& l = call.layout;
  if (call.keys.is_given() || l.offsets) return run(call);
  const std::size_t elements = l.results() * l.n;
  const bool one = l.outer == 1 && l.inner == 1 && l.stride == 1 && !call.method->has_result_per_element;
  if (elements <= 2 * chunk) return run(call);
  // Without a grid, a sum in fixed point finds one from all elements. A partial would pack selected elements.
  const bool can_be_cut = call.method->promise >= Promise::everywhere &&
                          (!call.method->takes_grid || call.options.grid) && !selects(call.options);
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

nb::tuple view_of(const PythonCall& call, PythonCall::Field field) {
  static PyObject* const name = PyUnicode_InternFromString("view");
  if (PyTuple_Check(call[field].ptr())) return nb::borrow<nb::tuple>(call[field]);
  return nb::borrow<nb::tuple>(call[PythonCall::library].attr(nb::handle(name))(call[field]));
}

Memory memory_of(const nb::tuple& view) {
  Memory memory{
      nb::cast<std::uintptr_t>(view[0]), 1, {nb::cast<int>(view[3]), nb::cast<std::uintptr_t>(view[4])}};
  for (const nb::handle n : nb::borrow<nb::tuple>(view[1])) memory.size *= nb::cast<std::size_t>(n);
  return memory;
}
Memory memory_of(const PythonCall& call, PythonCall::Field field) {
  return call.has(field) ? memory_of(view_of(call, field)) : Memory{};
}

namespace {

/// Returns the number of elements from the first to the last one that a layout reads.
std::size_t extent(const Layout& l) {
  if (l.results() == 0 || l.n == 0) return 0;
  return (l.outer - 1) * l.outer_stride + (l.n - 1) * l.stride + l.inner;
}

/// Runs a call whose method, format and layout are known, and whose arrays are in one memory: the one binding
/// of calls.
void run_call(nb::handle object) {
  using enum PythonCall::Field;
  const PythonCall given{object};
  const auto& chosen = given.as<const Method&>(method);
  const FormatInfo& input = format_named(given.as<std::string_view>(format));
  const Memory of_x = memory_of(given, x), of_y = memory_of(given, y), of_keys = memory_of(given, keys),
               of_flags = memory_of(given, where), of_offsets = memory_of(given, offsets),
               of_result = memory_of(given, result);
  const auto fields = given.as<std::vector<std::size_t>>(layout);
  const Layout l{fields.at(0), fields.at(1), fields.at(2),
                 fields.at(3), fields.at(4), reinterpret_cast<const std::uint64_t*>(of_offsets.address)};
  const std::size_t size = l.offsets ? of_x.size : extent(l);
  const Call call{
      .method = &chosen,
      .x = values_at(input, of_x.address, chosen.inputs == 0 ? 0 : size),
      .y = chosen.inputs == 2 ? values_at(input, of_y.address, size) : Values{},
      .keys = given.has(keys) ? Keys{key_format_named(given.as<std::string_view>(key_format)),
                                     reinterpret_cast<const void*>(of_keys.address), l.n}
                              : Keys{},
      .layout = l,
      .out = {chosen.result_format(input), reinterpret_cast<void*>(of_result.address), of_result.size,
              given.as<std::size_t>(result_stride)},
      .options = {.threads = given.as<int>(threads),
                  .ddof = given.as<double>(ddof),
                  .exclusive = given.is_true(exclusive),
                  .grid = given.as<std::optional<int>>(grid),
                  .combine = given.is_true(combine),
                  .where = given.has(where) ? Mask{reinterpret_cast<const void*>(of_flags.address),
                                                   chosen.inputs == 0 ? l.n : size}
                                            : Mask{},
                  .skip_nan = given.is_true(skipna),
                  .window = given.as<std::size_t>(window),
                  .centred = given.is_true(center),
                  .min_periods = given.as<std::optional<std::size_t>>(min_periods)}};
  const nb::gil_scoped_release released;
  run_at(call, of_result.place);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // caches hold methods until the process ends
  bind_methods(m);
  bind_call(m);
  bind_layouts(m);
  m.def("run", &run_call);
  // Correctly rounded, in place: array libraries may use square roots that are not.
  m.def("square_root", [](std::string_view format, std::uintptr_t x, std::size_t n) {
    const FloatingPointEnvironment environment;
    with_format(format_named(format), [&]<class F>() {
      F* const at = reinterpret_cast<F*>(x);
      for (std::size_t i = 0; i < n; ++i) at[i] = convert<F>(std::sqrt(convert<double>(at[i])));
    });
  });
  bind_study(m);
  bind_states(m);
  bind_statistics(m);
  bind_fast(m);
  bind_groups(m);
  bind_integers(m);
  bind_gpu(m);
  bind_foreign(m);
  bind_cells(m);
}

}  // namespace samesum::python
