#include "samesum/operation/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "samesum/environment.hpp"
#include "samesum/nearest.hpp"
#include "samesum/registry.hpp"

namespace samesum {
namespace {

std::vector<Reduction> all_reductions() {
  std::vector<Reduction> all;
  const auto append = [&all](std::vector<Reduction> more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  [&]<std::size_t... shard>(std::index_sequence<shard...>) {
    (append(reference::reductions<shard>()), ...);
    (append(cpu::reductions<shard>()), ...);
    (append(gpu::reductions<shard>()), ...);
  }
  (std::make_index_sequence<Formats::size>{});
  std::ranges::stable_sort(all, {}, &Reduction::backend);
  return all;
}

/// The first byte after the last element that is read.
std::size_t extent(const Layout& l, bool offsets_are_here) {
  if (l.results() == 0) return 0;
  if (l.offsets) return offsets_are_here ? static_cast<std::size_t>(l.offsets[l.outer]) : 0;
  if (l.n == 0) return 0;
  return (l.outer - 1) * l.outer_stride + (l.n - 1) * l.stride + l.inner;
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

std::string objection_to_input(const char* name, const Values& x, std::size_t needed) {
  if (x.size < needed)
    return std::string{name} + " has " + std::to_string(x.size) + " elements, and the layout reads " +
           std::to_string(needed) + "; give it all of them, or another layout";
  if (needed > 0 && x.data == nullptr)
    return std::string{name} + " is null but has " + std::to_string(x.size) + " elements";
  if (reinterpret_cast<std::uintptr_t>(x.data) % x.format->bytes != 0)
    return std::string{name} + " is not aligned to its elements of " + std::to_string(x.format->bytes) +
           " bytes; copy it";
  return {};
}

void run(const Reduction& reduction, Values x, const Values* y, const Layout& layout, const Results& out,
         ReduceOptions options) {
  if (const std::string wrong = objection(reduction, x, y, layout, out, true); !wrong.empty())
    throw std::invalid_argument("samesum: " + reduction.name + ": " + wrong);
  check(Options{options.threads});
  if (const std::string wrong = objection_to_ddof(reduction, options.ddof); !wrong.empty())
    throw std::invalid_argument("samesum: " + wrong);
  const FloatingPointEnvironment environment;
  const ReduceCall call{x.data, y ? y->data : nullptr, layout, out.data, options};
  if (reduction.from_host)
    reduction.from_host(reduction, *x.format, x.size, call);
  else
    reduction.run[x.format->index](call);
}

Reduced reduced(const Reduction& r, const FormatInfo& input, std::size_t n, double magnitudes,
                double result) {
  return {input,      *r.format, n, r.height(n), r.accumulator_bound, r.accumulator != "plain",
          magnitudes, result};
}

template <class Out>
Out one(std::string_view name, Values x, const Values* y, ReduceOptions options, bool index) {
  const Reduction& r = find_reduction(name);
  if (r.gives_index != index)
    throw std::invalid_argument("samesum: " + r.name + " gives " +
                                (r.gives_index ? "an index; call reduce_to_index" : "a number; call reduce"));
  if (r.results != 1)
    throw std::invalid_argument("samesum: " + r.name + " gives " + std::to_string(r.results) +
                                " numbers; call reduce with a layout");
  std::uint64_t bits = 0;
  const Results out = index ? Results{std::span{reinterpret_cast<std::int64_t*>(&bits), 1}}
                            : with_format(*r.format, [&]<class F>() {
                                return Results{std::span{reinterpret_cast<F*>(&bits), 1}};
                              });
  run(r, x, y, Layout::vector(x.size), out, options);
  if constexpr (std::is_same_v<Out, std::int64_t>)
    return static_cast<std::int64_t>(bits);
  else
    return {r.format, bits};
}

}  // namespace

double Reduction::bound(const FormatInfo& input, std::size_t n, Number result, double magnitudes) const {
  const FloatingPointEnvironment environment;
  if (results != 1)
    throw std::invalid_argument("samesum: " + name + " gives " + std::to_string(results) +
                                " numbers; call moments_bound");
  if (gives_index) return holds(*format, input) ? 0 : unbounded_error;
  const double value = result.to_double();
  if (!std::isfinite(value)) return unbounded_error;
  if (n == 0) return 0;
  if (!operation_bound) return bound_of_rounding(result);
  if (!holds(*format, input)) return unbounded_error;
  return operation_bound(reduced(*this, input, n, magnitudes, value));
}

MomentsBound Reduction::moments_bound(const FormatInfo& input, std::size_t n, Number mean, Number variance,
                                      ReduceOptions options, double largest) const {
  const FloatingPointEnvironment environment;
  if (results != 2)
    throw std::invalid_argument("samesum: " + name + " gives one " + (gives_index ? "index" : "number") +
                                "; call bound");
  if (accumulator == "exact") return {bound_of_rounding(mean), bound_of_rounding(variance)};
  const double value = mean.to_double();
  if (!std::isfinite(value) || !holds(*format, input)) return {unbounded_error, unbounded_error};
  return bound_of_moments(reduced(*this, input, n, largest, value), variance.to_double(), options.ddof);
}

std::string objection_to_ddof(const Reduction& r, double ddof) {
  const std::string is = "ddof is " + std::to_string(ddof);
  if (!(ddof >= 0)) return is + "; it must be 0 or more";
  if (r.accumulator == "exact" && ddof != std::floor(ddof))
    return is + "; of an exact variance it must be a whole number";
  return {};
}

std::string objection(const Reduction& r, const Values& x, const Values* y, const Layout& l,
                      const Results& out, bool offsets_are_here) {
  if (r.inputs == 2 && y == nullptr) return "it takes two inputs, x and y";
  if (r.inputs == 1 && y != nullptr) return "it takes one input; leave out y";
  if (y && y->format != x.format)
    return "x is of " + std::string{x.format->name} + " and y of " + std::string{y->format->name} +
           "; convert one of them";
  if (!r.takes(*x.format)) {
    std::string others;
    for (const FormatInfo& f : formats)
      if (r.takes(f)) others.append(others.empty() ? "" : ", ").append(f.name);
    return "it does not take elements of " + std::string{x.format->name} + ", but of " + others;
  }
  if (l.offsets && l.inner != 1) return "layout.inner is " + std::to_string(l.inner) + "; segments have 1";
  if (!l.offsets && l.inner > 1 && l.n > 1 && l.stride < l.inner)
    return "layout.stride is " + std::to_string(l.stride) +
           "; results would share elements, it must be inner (" + std::to_string(l.inner) + ") or more";
  if (!l.offsets && l.inner == 1 && l.n > 1 && l.stride == 0)
    return "layout.stride is 0; it must be 1 or more";
  if (l.offsets && offsets_are_here)
    for (std::size_t o = 0; o < l.outer; ++o)
      if (l.offsets[o + 1] < l.offsets[o])
        return "layout.offsets fall from " + std::to_string(l.offsets[o]) + " to " +
               std::to_string(l.offsets[o + 1]) + " at " + std::to_string(o + 1) +
               "; segments end where they begin, or later";
  const std::size_t needed = extent(l, offsets_are_here);
  for (const auto& [name, v] : {std::pair{"x", &x}, std::pair{"y", y}})
    if (v != nullptr)
      if (const std::string wrong = objection_to_input(name, *v, needed); !wrong.empty()) return wrong;
  const std::size_t numbers = l.results() * static_cast<std::size_t>(r.results);
  if (out.format != (r.gives_index ? nullptr : r.format))
    return "out is of " + std::string{out.format ? out.format->name : "std::int64_t"} +
           "; the results are of " + std::string{r.gives_index ? "std::int64_t" : r.format->name};
  if (out.size != numbers)
    return "out has room for " + std::to_string(out.size) + " numbers; there are " + std::to_string(numbers);
  if (numbers == 0) return {};
  if (out.data == nullptr) return "out is null";
  const std::size_t bytes = l.results() * r.result_bytes(), number = bytes / numbers;
  if (reinterpret_cast<std::uintptr_t>(out.data) % number != 0)
    return "out is not aligned to its numbers of " + std::to_string(number) + " bytes";
  for (const Values* v : {&x, y})
    if (v != nullptr && overlap(v->data, needed * v->format->bytes, out.data, bytes))
      return std::string{"out overlaps "} + (v == &x ? "x" : "y") + "; results need memory of their own";
  return {};
}

std::span<const Reduction> reductions() {
  static const std::vector<Reduction> table = all_reductions();
  return table;
}

const Reduction& find_reduction(std::string_view name) {
  std::string full{name};
  if (name.find('@') == name.npos) full += "@cpu";
  if (const auto found = std::ranges::find(reductions(), full, &Reduction::name); found != reductions().end())
    return *found;
  for (const Absent& a : absent())
    if (full.ends_with("@" + a.backend))
      throw std::invalid_argument("samesum: no reduction '" + full.substr(0, 80) + "' here: " + a.reason);
  throw std::invalid_argument("samesum: no reduction '" + std::string{name.substr(0, 80)} +
                              "'; the nearest are " + nearest(full, reductions()));
}

void reduce(const Reduction& reduction, Values x, Layout layout, Results out, ReduceOptions options) {
  run(reduction, x, nullptr, layout, out, options);
}
void reduce(const Reduction& reduction, Values x, Values y, Layout layout, Results out,
            ReduceOptions options) {
  run(reduction, x, &y, layout, out, options);
}
Number reduce(std::string_view name, Values x, ReduceOptions options) {
  return one<Number>(name, x, nullptr, options, false);
}
Number reduce(std::string_view name, Values x, Values y, ReduceOptions options) {
  return one<Number>(name, x, &y, options, false);
}
std::int64_t reduce_to_index(std::string_view name, Values x, ReduceOptions options) {
  return one<std::int64_t>(name, x, nullptr, options, true);
}

}  // namespace samesum
