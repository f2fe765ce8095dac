/// Checks of calls, and their messages.
#include "samesum/call/call.hpp"

#include <cmath>
#include <stdexcept>

#include "samesum/base/environment.hpp"
#include "samesum/base/text.hpp"
#include "samesum/call/validation.hpp"

namespace samesum {
namespace {

constexpr char no_selection[] =
    "where and skip_nan are for samesum::reduce, run, Method and Partial::add, which wait for their results; "
    "leave them out here, and pass the elements that take part";
constexpr char only_for_scans[] = "exclusive is only for scans, such as cumsum; leave it out";
constexpr char only_by_key[] =
    "combine is only for sums, counts and extrema by key, such as scatter_add; leave it out";

std::string error_of_threads(const Options& options) {
  if (options.threads >= 0) return {};
  return "threads is " + std::to_string(options.threads) + "; it must be 0 (automatic) or more";
}

/// Checks that no option of rolling operations is given.
std::string error_of_window(const Options& o) {
  const std::string_view given = o.window != 0   ? "window"
                                 : o.centred     ? "centred"
                                 : o.min_periods ? "min_periods"
                                                 : "";
  if (given.empty()) return {};
  return std::string{given} + " is only for rolling operations, such as rolling_sum; leave it out";
}
/// Checks the window of a call on vectors of n elements.
std::string error_of_window(const Options& o, std::size_t n) {
  if (o.window == 0) return "window is 0; pass its number of elements, at least 1";
  if (o.window >> 39 != 0) return "window is " + std::to_string(o.window) + "; fewer than 2^39 are supported";
  if (o.min_periods && *o.min_periods > o.window)
    return "min_periods is " + std::to_string(*o.min_periods) + ", more than the window of " +
           std::to_string(o.window) + "; pass at most the window";
  if (o.window > n && n > 0 && !o.min_periods)
    return "window is " + std::to_string(o.window) + ", but there are " + std::to_string(n) +
           " elements, so that every result would be NaN; pass a smaller window, or min_periods";
  return {};
}

/// Whether writing the results of some rows may change elements that other threads still read: any overlap
/// except exactly in place.
bool rows_overlap(const Values& x, const Layout& rows, const Results& out, std::size_t out_stride) {
  const std::size_t width = rows.n * rows.inner;
  const bool same_rows =
      x.format->index == out.format->index && (rows.outer == 1 || rows.outer_stride == out_stride);
  if (x.data == out.data && same_rows) return false;
  const auto reach = [&](std::size_t stride, const FormatInfo& format) {
    return ((rows.outer - 1) * stride + width) * format.bytes;
  };
  if (!overlap(x.data, reach(rows.outer_stride, *x.format), out.data, reach(out_stride, *out.format)))
    return false;
  if (rows.outer == 1 || !same_rows) return true;  // some are harmless; no caller should rely on that
  const auto a = reinterpret_cast<std::uintptr_t>(x.data), b = reinterpret_cast<std::uintptr_t>(out.data);
  const std::size_t bytes = x.format->bytes, stride = out_stride * bytes,
                    apart = (a < b ? b - a : a - b) % stride;
  return apart < width * bytes || apart + width * bytes > stride;
}

/// Checks the elements of a call.
std::string error_of_inputs(const Call& call) {
  const Method& m = *call.method;
  const Values &x = call.x, &y = call.y;
  if (m.takes_keys && !call.keys.is_given()) return "the method takes keys; pass x and keys";
  if (!m.takes_keys && call.keys.is_given()) return "the method takes no keys; leave them out";
  if (m.inputs == 2 && !y.is_given()) return "the method takes two inputs; pass x and y";
  if (m.inputs < 2 && y.is_given()) return "the method takes one input; leave out y";
  if (m.inputs == 0 && !x.is_given()) return {};
  for (const auto& [name, v] : {std::pair{"x", &x}, std::pair{"y", &y}})
    if (v == &x || v->is_given())
      if (std::string wrong = validation_error(name, *v); !wrong.empty()) return wrong;
  if (y.is_given() && y.format->index != x.format->index)
    return "x has format " + std::string{x.format->name} + " and y has format " +
           std::string{y.format->name} + "; convert one of them";
  if (y.is_given() && y.size != x.size)
    return "x has " + std::to_string(x.size) + " elements and y has " + std::to_string(y.size) +
           "; pass inputs of equal length";
  if (!m.accepts(*x.format)) {
    std::string others;
    for (const FormatInfo& f : formats)
      if (m.accepts(f)) others.append(others.empty() ? "" : ", ").append(f.name);
    return "the method does not accept elements of " + std::string{x.format->name} +
           "; convert them to one of " + others;
  }
  if (!m.accepts(*x.format, call.layout))
    return "the method reduces only single vectors of " + std::string{x.format->name} +
           "; for rows, columns and segments use the order tree or a format that holds the elements";
  return {};
}

/// Format of the results that the method writes; null for std::int64_t.
const FormatInfo* result_format(const Call& call) {
  return call.method->result_format(call.x.is_given() ? *call.x.format : *call.method->format);
}

/// Size of a number of the results, in bytes.
std::size_t result_bytes(const Call& call) {
  const FormatInfo* const format = result_format(call);
  return format ? format->bytes : sizeof(std::int64_t);
}

/// Checks the array for the results, whatever their number.
std::string error_of_out(const Call& call) {
  const Results& out = call.out;
  if (out.format && !is_listed(out.format)) return "out has an unknown format; use one of samesum::formats";
  const auto name_of_format = [](const FormatInfo* f) { return std::string{f ? f->name : "std::int64_t"}; };
  const FormatInfo* const format = result_format(call);
  if (!format != !out.format || (format && format->index != out.format->index))
    return "out holds " + name_of_format(out.format) + "; the results are " + name_of_format(format);
  const std::size_t bytes = result_bytes(call);
  return validation_error("out", out.data, out.size, {bytes, bytes});
}

/// Checks the arguments of operations with a result per element. The layout itself is already checked.
std::string error_of_rows(const Call& call) {
  const Method& m = *call.method;
  const Layout& l = call.layout;
  const Results& out = call.out;
  const bool has_gaps = l.offsets || (l.n > 1 && l.stride != l.inner);
  if (!m.keeps_format && has_gaps)
    return "the method accepts only contiguous rows and axes; use Layout::rows or Layout::axis";
  if (m.keeps_format && (has_gaps || l.inner != 1))
    return "the method accepts only contiguous rows; use Layout::rows";
  if (m.takes_window)
    if (std::string wrong = error_of_window(call.options, l.n); !wrong.empty()) return wrong;
  if (l.results() == 0 || l.n == 0) return {};
  if (l.n >> 39 != 0) return "layout.n is " + std::to_string(l.n) + "; fewer than 2^39 are supported";
  const std::size_t width = l.n * l.inner, stride = out.stride_of(l);
  if (l.outer > 1 && l.outer_stride < width)
    return "layout has rows of " + std::to_string(width) + " elements at a stride of " +
           std::to_string(l.outer_stride) + "; rows must not share elements";
  if (l.outer > 1 && stride < width)
    return "out has a row stride of " + std::to_string(stride) + ", less than the " + std::to_string(width) +
           " elements of a row";
  const std::optional<std::size_t> reach = extent(Layout::rows(l.outer, width, stride), true);
  if (!reach || out.size < *reach)
    return "out has room for " + std::to_string(out.size) + " numbers; it needs one for each element" +
           (reach ? ", " + std::to_string(*reach) : "");
  if (m.takes_window)
    return overlap_error({*call.x.format, call.x.data, *extent(l, true)}, {}, {out.format, out.data, *reach});
  if (rows_overlap(call.x, l, out, stride))
    return "out overlaps x; use separate memory, or the data and the row stride of x";
  return {};
}

/// Checks the arguments of operations by key, whose arrays are already checked.
std::string error_of_keys(const Call& call) {
  const Method& m = *call.method;
  const Layout& l = call.layout;
  const Keys& keys = call.keys;
  if (std::string wrong = validation_error(keys); !wrong.empty()) return wrong;
  if (l.outer != 1 || l.offsets || l.inner == 0 || (l.n > 1 && l.stride != l.inner))
    return "the method takes contiguous rows of one or more elements, one for each key; use "
           "Layout::axis(1, n, inner)";
  if (std::string wrong = validation_error(l, std::nullopt, true); !wrong.empty()) return wrong;
  if (keys.size != l.n)
    return "there are " + std::to_string(keys.size) + " keys; the layout has " + std::to_string(l.n) +
           " rows";
  if (call.out.size % l.inner != 0)
    return "out has room for " + std::to_string(call.out.size) + " numbers; it needs " +
           std::to_string(l.inner) + " for each key";
  const std::size_t elements = l.n * l.inner, out_bytes = call.out.size * result_bytes(call);
  if (m.inputs == 0) {
    if (call.x.size > 0) return "the method counts keys; pass no elements";
    if (l.inner != 1)
      return "layout.inner is " + std::to_string(l.inner) + "; it must be 1 for a method that counts keys";
  } else if (call.x.size < elements) {
    return "x has " + std::to_string(call.x.size) + " elements, but the layout reads " +
           std::to_string(elements) + "; pass more elements or a smaller layout";
  } else if (overlap(call.x.data, elements * call.x.format->bytes, call.out.data, out_bytes)) {
    return "out overlaps x; use separate memory for the results";
  }
  if (overlap(keys.data, keys.size * bytes_of(keys.format), call.out.data, out_bytes))
    return "out overlaps keys; use separate memory for the results";
  return {};
}

/// Checks the layout of a call without keys, and its results.
std::string error_of_layout(const Call& call, bool offsets_on_host) {
  const Method& m = *call.method;
  const Results& out = call.out;
  const std::size_t numbers = static_cast<std::size_t>(m.results);
  if (out.size % numbers != 0)
    return "out has room for " + std::to_string(out.size) + " numbers; it needs " + std::to_string(numbers) +
           " for each result";
  const auto results = m.has_result_per_element ? std::nullopt : std::optional{out.size / numbers};
  if (std::string wrong = validation_error(call.layout, results, offsets_on_host); !wrong.empty())
    return wrong;
  const std::size_t needed = *extent(call.layout, offsets_on_host);
  if (call.x.size < needed)
    return "x has " + std::to_string(call.x.size) + " elements, but the layout reads " +
           std::to_string(needed) + "; pass more elements or a smaller layout";
  if (m.has_result_per_element) return error_of_rows(call);
  Values x = call.x, y = call.y;
  x.size = y.size = needed;
  return overlap_error(x, y, out);
}

}  // namespace

void refuse(const Method& method, const std::string& why) {
  throw std::invalid_argument("samesum: " + method.name + ": " + why);
}

void check(const Options& options) {
  std::string wrong = selects(options) ? no_selection : error_of_threads(options);
  if (wrong.empty() && options.exclusive) wrong = only_for_scans;
  if (wrong.empty() && options.combine) wrong = only_by_key;
  if (wrong.empty()) wrong = error_of_window(options);
  if (!wrong.empty()) throw std::invalid_argument("samesum: " + wrong);
}

std::string validation_error(const Method& m, const Options& options) {
  const FloatingPointEnvironment environment;
  if (std::string wrong = error_of_threads(options); !wrong.empty()) return wrong;
  if (m.takes_window && options.where.is_given())
    return "where is not for rolling operations; make the elements that take no part NaN, and pass skip_nan";
  if (selects(options) && !m.takes_window) return no_selection;
  if (options.exclusive && !m.is_scan()) return only_for_scans;
  if (options.grid && !m.takes_grid) return "grid is only for the accumulator fixed_point; leave it out";
  if (options.grid && (*options.grid < lowest_grid || *options.grid > highest_grid))
    return "grid is " + std::to_string(*options.grid) + "; it must be an exponent from " +
           std::to_string(lowest_grid) + " to " + std::to_string(highest_grid);
  if (options.combine && !m.can_combine) return only_by_key;
  if (!m.takes_window)
    if (std::string wrong = error_of_window(options); !wrong.empty()) return wrong;
  if (m.takes_window && m.takes_grid && !options.grid)
    return "grid is missing; the windows of a rolling operation share one, so pass grid";
  if (m.results != 2 && m.operation != "rolling_var") return {};  // only variances divide by n - ddof
  if (!(options.ddof >= 0)) return "ddof is " + three_digits(options.ddof) + "; it must be 0 or more";
  if (m.accumulator == "exact" && options.ddof != std::floor(options.ddof))
    return "ddof is " + three_digits(options.ddof) + "; for an exact variance it must be a whole number";
  return {};
}

std::string overlap_error(const Values& x, const Values& y, const Results& out) {
  const std::size_t bytes = out.size * (out.format ? out.format->bytes : sizeof(std::int64_t));
  for (const auto& [name, v] : {std::pair{"x", &x}, std::pair{"y", &y}})
    if (v->is_given() && overlap(v->data, v->size * v->format->bytes, out.data, bytes))
      return std::string{"out overlaps "} + name + "; use separate memory for the results";
  return {};
}

std::string validation_error(const Call& call, bool offsets_on_host) {
  std::string wrong = validation_error(*call.method, call.options);
  if (wrong.empty()) wrong = error_of_inputs(call);
  if (wrong.empty() && call.most_terms != 0)  // a number that is too small would give wrong sums
    wrong = "most_terms is " + std::to_string(call.most_terms) + "; the library sets it, so leave it 0";
  if (wrong.empty()) wrong = error_of_out(call);
  if (wrong.empty())
    wrong = call.keys.is_given() ? error_of_keys(call) : error_of_layout(call, offsets_on_host);
  return wrong;
}

}  // namespace samesum
