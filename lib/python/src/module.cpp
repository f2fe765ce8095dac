/// The extension module: calls on memory whose address the Python side passes.
#include "module.hpp"

#include <algorithm>
#include <cmath>

#include "samesum/base/environment.hpp"
#include "samesum/call/promise.hpp"

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

namespace {

/// The one binding of calls. `x`, `y`, `keys` and `offsets` are addresses; `layout` has the fields of Layout
/// before `offsets`. `size` is the number of elements of an input, `key_format` is "" without keys.
void bind_run(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "run",
      [](const Method& method, std::string_view format, std::uintptr_t x, std::size_t size,
         const std::vector<std::size_t>& layout, std::uintptr_t out, std::size_t out_size, int device,
         std::uintptr_t stream, std::uintptr_t y, std::string_view key_format, std::uintptr_t keys,
         std::uintptr_t offsets, std::size_t out_stride, int threads, double ddof, bool exclusive,
         std::optional<int> grid, bool combine, std::uintptr_t where, bool skip_nan, std::size_t window,
         std::optional<std::size_t> min_periods, bool centred) {
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
            .options = {.threads = threads,
                        .ddof = ddof,
                        .exclusive = exclusive,
                        .grid = grid,
                        .combine = combine,
                        .where = where == 0 ? Mask{}
                                            : Mask{reinterpret_cast<const void*>(where),
                                                   method.inputs == 0 ? l.n : size},
                        .skip_nan = skip_nan,
                        .window = window,
                        .centred = centred,
                        .min_periods = min_periods}};
        const nb::gil_scoped_release released;
        run_at(call, {device, stream});
      },
      "method"_a, "format"_a, "x"_a, "size"_a, "layout"_a, "out"_a, "out_size"_a, "device"_a, "stream"_a,
      nb::kw_only(), "y"_a = 0, "key_format"_a = "", "keys"_a = 0, "offsets"_a = 0, "out_stride"_a = 0,
      "threads"_a = 0, "ddof"_a = 0.0, "exclusive"_a = false, "grid"_a = nb::none(), "combine"_a = false,
      "where"_a = 0, "skip_nan"_a = false, "window"_a = 0, "min_periods"_a = nb::none(), "centred"_a = false);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // caches hold methods until the process ends
  bind_methods(m);
  bind_run(m);
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
  bind_weights(m);
  bind_fast(m);
  bind_groups(m);
  bind_integers(m);
  bind_gpu(m);
  bind_foreign(m);
}

}  // namespace samesum::python
