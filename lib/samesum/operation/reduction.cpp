#include "samesum/operation/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "samesum/environment.hpp"
#include "samesum/nearest.hpp"
#include "samesum/number_text.hpp"
#include "samesum/operation/validation.hpp"
#include "samesum/registry.hpp"

namespace samesum {
namespace {

std::vector<Reduction> all_reductions() {
  const FloatingPointEnvironment environment;  // also for the driver of a GPU, which begins here
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

/// Whether two arrays have a byte in common.
bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return first <= second + (b_bytes - 1) && second <= first + (a_bytes - 1);
}

void run(const Reduction& reduction, Values x, const Values* y, const Layout& layout, const Results& out,
         ReduceOptions options) {
  const FloatingPointEnvironment environment;
  std::string wrong = validation_error(reduction, options);
  if (wrong.empty()) wrong = validation_error(reduction, x, y, layout, out, true);
  if (!wrong.empty()) throw std::invalid_argument("samesum: " + reduction.name + ": " + wrong);
  const ReduceCall call{x.data, y ? y->data : nullptr, settled(layout), out.data, options};
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
  check(name, input);
  magnitudes = checked_magnitudes(name, "magnitudes", magnitudes);
  if (gives_index) return holds(*format, input) ? 0 : unbounded_error;
  check(name, "result", result, *format);
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
  check(name, input);
  largest = checked_magnitudes(name, "largest", largest);
  check(name, "mean", mean, *format);
  check(name, "variance", variance, *format);
  if (const std::string wrong = validation_error(*this, options); !wrong.empty())
    throw std::invalid_argument("samesum: " + name + ": " + wrong);
  if (accumulator == "exact") return {bound_of_rounding(mean), bound_of_rounding(variance)};
  const double value = mean.to_double();
  if (!std::isfinite(value) || !holds(*format, input)) return {unbounded_error, unbounded_error};
  return bound_of_moments(reduced(*this, input, n, largest, value), variance.to_double(), options.ddof);
}

std::string validation_error(const Reduction& r, const ReduceOptions& options) {
  const FloatingPointEnvironment environment;
  if (options.threads < 0)
    return "threads is " + std::to_string(options.threads) + "; it must be 0 (automatic) or more";
  if (r.results != 2) return {};  // nothing else divides by n - ddof
  if (!(options.ddof >= 0)) return "ddof is " + three_digits(options.ddof) + "; it must be 0 or more";
  if (r.accumulator == "exact" && options.ddof != std::floor(options.ddof))
    return "ddof is " + three_digits(options.ddof) + "; of an exact variance it must be a whole number";
  return {};
}

std::string validation_error(const Reduction& r, const Values& x, const Values* y, const Layout& l,
                             const Results& out, bool offsets_are_here) {
  if (r.inputs == 2 && y == nullptr) return "it takes two inputs, x and y";
  if (r.inputs == 1 && y != nullptr) return "it takes one input; leave out y";
  for (const auto& [name, v] : {std::pair{"x", &x}, std::pair{"y", y}})
    if (v != nullptr)
      if (std::string wrong = validation_error(name, *v); !wrong.empty()) return wrong;
  if (y && y->format->index != x.format->index)
    return "x is of " + std::string{x.format->name} + " and y of " + std::string{y->format->name} +
           "; convert one of them";
  if (y && y->size != x.size)
    return "x has " + std::to_string(x.size) + " elements and y " + std::to_string(y->size) +
           "; give it as many of both";
  if (!r.takes(*x.format)) {
    std::string others;
    for (const FormatInfo& f : formats)
      if (r.takes(f)) others.append(others.empty() ? "" : ", ").append(f.name);
    return "it does not take elements of " + std::string{x.format->name} + ", but of " + others;
  }
  if (out.format && !is_listed(out.format)) return "out has no format; take one of samesum::formats";
  if (r.gives_index ? out.format != nullptr : !out.format || out.format->index != r.format->index)
    return "out is of " + std::string{out.format ? out.format->name : "std::int64_t"} +
           "; the results are of " + std::string{r.gives_index ? "std::int64_t" : r.format->name};
  const auto numbers = static_cast<std::size_t>(r.results), bytes = r.result_bytes() / numbers;
  if (std::string wrong = validation_error("out", out.data, out.size, {bytes, bytes}); !wrong.empty())
    return wrong;
  if (out.size % numbers != 0)
    return "out has room for " + std::to_string(out.size) + " numbers; give it " + std::to_string(numbers) +
           " for each result";
  if (std::string wrong = validation_error(l, out.size / numbers, offsets_are_here); !wrong.empty())
    return wrong;
  const std::size_t needed = *extent(l, offsets_are_here);
  if (x.size < needed)
    return "x has " + std::to_string(x.size) + " elements, and the layout reads " + std::to_string(needed) +
           "; give it all of them, or another layout";
  for (const Values* v : {&x, y})
    if (v != nullptr && overlap(v->data, needed * v->format->bytes, out.data, out.size * bytes))
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
