/// Methods: error bounds, checks of arguments, and calls.
#include "samesum/catalogue/method.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "samesum/accumulator/exact.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/base/text.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/catalogue/overlap.hpp"
#include "samesum/operation/grid_reduction.hpp"
#include "samesum/operation/validation.hpp"

namespace samesum {
namespace {

[[noreturn]] void refuse(const Method& m, const std::string& why) {
  throw std::invalid_argument("samesum: " + m.name + ": " + why);
}

// --- bounds ----------------------------------------------------------------------------------------------

/// Adds to `lost`, the error of a sum, what the additions to a shared cell may lose beyond their rounding.
/// Such a loss takes part in the roundings of later additions. It counts as one more element, added without a
/// rounding: by a factor of (1+u)^h < e while γ_h is finite, or of 1 + (n-1)u where that bound is the smaller
/// one; `probable_gamma` is at most 1.
double with_shared_cell_loss(const Method& m, std::size_t n, double lost) {
  const double per_arrival = Code::of(m).lost_per_arrival;
  if (per_arrival == 0) return lost;
  const double factor = 3 + static_cast<double>(n) * m.format->unit_roundoff;
  return rounded_up(lost + factor * per_arrival * static_cast<double>(m.height(n).merges + 1));
}

/// Bounds a sum; rigorously if `probability` is 1.
SumBound bound_of_sum_of(const Method& m, const FormatInfo& input, std::size_t n, double magnitudes,
                         Number result, double probability) {
  const Code& code = Code::of(m);
  SumBound all = sum_bound(code.accumulator_bound, input, *m.format, n, m.height(n), magnitudes, result);
  if (probability < 1) {
    const SumBound probable = probable_sum_bound(code.accumulator_probable_bound, input, *m.format, n,
                                                 m.height(n), magnitudes, result, 1 - probability);
    all = {std::min(all.prior, probable.prior), std::min(all.bound, probable.bound)};
  }
  return {with_shared_cell_loss(m, n, all.prior), with_shared_cell_loss(m, n, all.bound)};
}

Reduced reduced(const Method& m, const FormatInfo& input, std::size_t n, double magnitudes, double result) {
  return {input,      *m.format, n, m.height(n), Code::of(m).accumulator_bound, m.accumulator != "plain",
          magnitudes, result};
}

double bound_of_moments_of(const Method& m, const FormatInfo& input, std::size_t n,
                           const ResultNumbers& result, double largest, const BoundOptions& options) {
  const auto& [mean, variance] = result.number;
  if (m.accumulator == Exact::name) return bound_of_rounding(options.result_index == 0 ? mean : variance);
  const double value = mean.to_double();
  if (!std::isfinite(value) || !holds(*m.format, input)) return unbounded_error;
  const MomentsBound bound =
      bound_of_moments(reduced(m, input, n, largest, value), variance.to_double(), options.ddof);
  return options.result_index == 0 ? bound.mean : bound.variance;
}

/// Bounds one element. The formula needs the true value t, which is at most |computed| + bound(t). Its slope
/// is far below 1/2, so it holds for |computed| + 2·bound(|computed|) if it is at most twice as large there.
double bound_of_softmax_element(const Method& m, const FormatInfo& input, std::size_t n, double value,
                                double spread) {
  const SoftmaxBound all = Code::of(m).softmax_bound(input, n, spread);
  const double sign = value < 0 ? -1 : 1, first = all.of_element(value, spread);
  const double bound = all.of_element(value + sign * 2 * first, spread);
  return bound <= 2 * first ? rounded_up(bound) : unbounded_error;
}

/// Checks all arguments; returns what the accumulator proves, and the bound.
SumBound bounds(const Method& m, const FormatInfo& input, std::size_t n, const ResultNumbers& result,
                double magnitudes, const BoundOptions& options) {
  const auto both = [](double bound) { return SumBound{bound, bound}; };
  if (!(options.probability > 0 && options.probability <= 1))
    throw std::invalid_argument("samesum: probability is " + three_digits(options.probability) +
                                "; it must be above 0 and at most 1");
  check(m.name, input);
  magnitudes = checked_magnitudes(m.name, m.results == 2 ? "largest" : "magnitudes", magnitudes);
  if (options.result_index >= static_cast<std::size_t>(m.results))
    refuse(m, "result_index is " + std::to_string(options.result_index) + "; it must be less than " +
                  std::to_string(m.results) + ", the number of results");
  if (const std::string wrong = validation_error(m, Options{0, options.ddof, false, options.grid});
      !wrong.empty())
    refuse(m, wrong);
  if (result.count != static_cast<std::size_t>(m.results))
    refuse(m, m.results == 2 ? "the method has two results; pass both, {mean, variance}"
                             : "the method has one result; pass only that");
  if (m.returns_index) return both(holds(*m.format, input) ? 0 : unbounded_error);
  const FormatInfo& of_result = *m.result_format(input);
  if (m.results == 2) {
    check(m.name, "mean", result.number[0], of_result);
    check(m.name, "variance", result.number[1], of_result);
    return both(bound_of_moments_of(m, input, n, result, magnitudes, options));
  }
  const Number number = result.number[0];
  check(m.name, "result", number, of_result);
  const double value = number.to_double();
  if (n == 0 && std::isfinite(value)) return both(0);
  if (m.keeps_format)
    return both(std::isfinite(value) && m.accepts(input) && Code::of(m).softmax_bound
                    ? bound_of_softmax_element(m, input, n, value, magnitudes)
                    : unbounded_error);
  if (m.accumulator == Exact::name) return both(bound_of_rounding(number));
  if (m.accumulator == GridSum::name)
    return both(bound_on_grid(input, *Code::of(m).adds, n, magnitudes, number, options.grid));
  if (Code::of(m).operation_bound == bound_of_sum)
    return bound_of_sum_of(m, input, n, magnitudes, number, options.probability);
  if (!std::isfinite(value) || !holds(*m.format, input)) return both(unbounded_error);
  return both(Code::of(m).operation_bound(reduced(m, input, n, magnitudes, value)));
}

// --- calls -----------------------------------------------------------------------------------------------

std::string error_of_threads(const Options& options) {
  if (options.threads >= 0) return {};
  return "threads is " + std::to_string(options.threads) + "; it must be 0 (automatic) or more";
}

/// Whether two arrays share a byte.
bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return first <= second + (b_bytes - 1) && second <= first + (a_bytes - 1);
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

/// Checks the arguments of operations with a result per element. The layout itself is already checked.
std::string error_of_rows(const Method& m, const Values& x, const Layout& l, const Results& out) {
  const bool has_gaps = l.offsets || (l.n > 1 && l.stride != l.inner);
  if (m.is_scan() && has_gaps)
    return "the method accepts only contiguous rows and axes; use Layout::rows or Layout::axis";
  if (!m.is_scan() && (has_gaps || l.inner != 1))
    return "the method accepts only contiguous rows; use Layout::rows";
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
  if (rows_overlap(x, l, out, stride))
    return "out overlaps x; use separate memory, or the data and the row stride of x";
  return {};
}

/// Checks the arguments of operations by key, whose arrays are already checked.
std::string error_of_keys(const Method& m, const Values& x, const Keys& keys, const Layout& l,
                          const Results& out, std::size_t result_bytes) {
  if (std::string wrong = validation_error(keys); !wrong.empty()) return wrong;
  if (l.outer != 1 || l.offsets || l.inner == 0 || (l.n > 1 && l.stride != l.inner))
    return "the method takes contiguous rows of one or more elements, one for each key; use "
           "Layout::axis(1, n, inner)";
  if (std::string wrong = validation_error(l, std::nullopt, true); !wrong.empty()) return wrong;
  if (keys.size != l.n)
    return "there are " + std::to_string(keys.size) + " keys; the layout has " + std::to_string(l.n) +
           " rows";
  if (out.size % l.inner != 0)
    return "out has room for " + std::to_string(out.size) + " numbers; it needs " + std::to_string(l.inner) +
           " for each key";
  if (m.inputs == 0) {
    if (x.size > 0) return "the method counts keys; pass no elements";
    if (l.inner != 1)
      return "layout.inner is " + std::to_string(l.inner) + "; it must be 1 for a method that counts keys";
  } else if (x.size < l.n * l.inner) {
    return "x has " + std::to_string(x.size) + " elements, but the layout reads " +
           std::to_string(l.n * l.inner) + "; pass more elements or a smaller layout";
  }
  const std::size_t out_bytes = out.size * result_bytes;
  if (m.inputs > 0 && overlap(x.data, l.n * l.inner * x.format->bytes, out.data, out_bytes))
    return "out overlaps x; use separate memory for the results";
  if (overlap(keys.data, keys.size * bytes_of(keys.format), out.data, out_bytes))
    return "out overlaps keys; use separate memory for the results";
  return {};
}

void check_call(const Method& m, const Values& x, const Values* y, const Keys* keys, const Layout& layout,
                const Results& out, const Options& options) {
  std::string wrong = validation_error(m, options);
  if (wrong.empty()) wrong = validation_error(m, x, y, keys, layout, out, true);
  if (!wrong.empty()) refuse(m, wrong);
}

void run(const Method& m, const Values& x, const Values* y, const Layout& layout, const Results& out,
         const Options& options) {
  const FloatingPointEnvironment environment;
  check_call(m, x, y, nullptr, layout, out, options);
  Call call = call_of(x, y, layout, out, options);
  Code::of(m).backend->run(m, call);
}

void check_gives_number(const Method& m) {
  if (m.takes_keys) refuse(m, "the method takes keys; call reduce with keys");
  if (m.has_result_per_element)
    refuse(m, "the method returns a number per element; call reduce with a layout");
  if (m.returns_index) refuse(m, "the method returns an index; call reduce_to_index");
  if (m.results != 1)
    refuse(m, "the method returns " + std::to_string(m.results) + " numbers; call reduce with a layout");
}

Number one_number(const Method& m, const Values& x, const Values* y, const Options& options) {
  check_gives_number(m);
  std::uint64_t bits = 0;
  run(m, x, y, Layout::vector(x.size), {m.format, &bits, 1}, options);
  return {m.format, bits};
}

Job job(const Method& m, const Values& x, const Values* y, const Options& options) {
  const FloatingPointEnvironment environment;
  check_gives_number(m);
  check(options);
  check("x", x);
  if (!y && !options.exclusive && !options.grid && !options.combine && Code::of(m).sum[x.format->index])
    return [&m, x, options] { return m(x, options); };
  std::uint64_t bits = 0;
  const Results out{m.format, &bits, 1};
  // The checks read no data, which may lie in any memory; the backend copies what it cannot read.
  check_call(m, x, y, nullptr, Layout::vector(x.size), out, options);
  const Bound run = Code::of(m).backend->bind(m, call_of(x, y, Layout::vector(x.size), out, options));
  return [format = m.format, run] {
    const FloatingPointEnvironment environment;
    std::uint64_t result = 0;
    run(&result);
    return Number{format, result};
  };
}

}  // namespace

Height Method::height(std::size_t n) const { return code_->height(n); }

bool Method::accepts(const FormatInfo& input) const {
  return input.index < Formats::size &&
         (code_->sum[input.index] || code_->run[input.index] || code_->run_vector[input.index]);
}

bool Method::accepts(const FormatInfo& input, const Layout& layout) const {
  return accepts(input) && (is_vector(layout) || code_->run[input.index]);
}

double Method::bound(const FormatInfo& input, std::size_t n, ResultNumbers result, double magnitudes,
                     BoundOptions options) const {
  const FloatingPointEnvironment environment;
  return bounds(*this, input, n, result, magnitudes, options).bound;
}

double prior_bound(const Method& m, const FormatInfo& input, std::size_t n, double magnitudes, Number result,
                   double probability) {
  const FloatingPointEnvironment environment;
  return bounds(m, input, n, result, magnitudes, {probability}).prior;
}

Number Method::operator()(Values x, Options options) const {
  const FloatingPointEnvironment environment;
  check(options);
  check("x", x);
  if (const Code::Sum sum = code_->sum[x.format->index];
      sum && !options.exclusive && !options.grid && !options.combine)
    return {format, sum(x.data, x.size, options.threads)};
  return one_number(*this, x, nullptr, options);
}

Number Method::operator()(Values x, Values y, Options options) const {
  return one_number(*this, x, &y, options);
}

Job Method::bind(Values x, Options options) const { return job(*this, x, nullptr, options); }
Job Method::bind(Values x, Values y, Options options) const { return job(*this, x, &y, options); }

Placed Method::place(Values x) const {
  const FloatingPointEnvironment environment;
  check("x", x);
  return code_->backend->place(x);
}

void refuse_grid(const Method& m, int grid) {
  throw std::overflow_error("samesum: " + m.name + ": a sum overflows the grid 2^" + std::to_string(grid) +
                            "; give a larger grid, or none, so that one is found on which it fits");
}

void check_grid(const Method& m, const Call& call) {
  if (call.overflowed) refuse_grid(m, *call.options.grid);
}

void check(const Options& options) {
  if (options.threads < 0) throw std::invalid_argument("samesum: " + error_of_threads(options));
}

void reduce(const Method& method, Values x, Layout layout, Results out, Options options) {
  run(method, x, nullptr, layout, out, options);
}
void reduce(const Method& method, Values x, Values y, Layout layout, Results out, Options options) {
  run(method, x, &y, layout, out, options);
}
void reduce(const Method& method, Values x, Keys keys, Layout layout, Results out, Options options) {
  const FloatingPointEnvironment environment;
  check_call(method, x, nullptr, &keys, layout, out, options);
  Call call = call_of(x, keys, layout, out, options);
  Code::of(method).backend->run(method, call);
  if (const std::size_t bad = call.first_bad_key; bad != no_bad_key)
    refuse(method, message_of_bad_key(bad, key_at(keys.format, keys.data, bad), call.bins));
}

std::string validation_error(const Method& m, const Options& options) {
  const FloatingPointEnvironment environment;
  if (std::string wrong = error_of_threads(options); !wrong.empty()) return wrong;
  if (options.exclusive && !m.is_scan()) return "exclusive is only for scans, such as cumsum; leave it out";
  if (options.grid && m.accumulator != GridSum::name)
    return "grid is only for the accumulator fixed_point; leave it out";
  if (options.grid && (*options.grid < lowest_grid || *options.grid > highest_grid))
    return "grid is " + std::to_string(*options.grid) + "; it must be an exponent from " +
           std::to_string(lowest_grid) + " to " + std::to_string(highest_grid);
  if (options.combine && (!m.takes_keys || m.operation == ScatterMean::name))
    return "combine is only for sums, counts and extrema by key, such as scatter_add; leave it out";
  if (m.results != 2) return {};  // only moments divide by n - ddof
  if (!(options.ddof >= 0)) return "ddof is " + three_digits(options.ddof) + "; it must be 0 or more";
  if (m.accumulator == "exact" && options.ddof != std::floor(options.ddof))
    return "ddof is " + three_digits(options.ddof) + "; for an exact variance it must be a whole number";
  return {};
}

std::string validation_error(const Method& m, const Values& x, const Values* y, const Keys* keys,
                             const Layout& l, const Results& out, bool offsets_on_host) {
  if (m.takes_keys && keys == nullptr) return "the method takes keys; pass x and keys";
  if (!m.takes_keys && keys != nullptr) return "the method takes no keys; leave them out";
  if (m.inputs == 2 && y == nullptr) return "the method takes two inputs; pass x and y";
  if (m.inputs < 2 && y != nullptr) return "the method takes one input; leave out y";
  for (const auto& [name, v] : {std::pair{"x", &x}, std::pair{"y", y}})
    if (v != nullptr)
      if (std::string wrong = validation_error(name, *v); !wrong.empty()) return wrong;
  if (y && y->format->index != x.format->index)
    return "x has format " + std::string{x.format->name} + " and y has format " +
           std::string{y->format->name} + "; convert one of them";
  if (y && y->size != x.size)
    return "x has " + std::to_string(x.size) + " elements and y has " + std::to_string(y->size) +
           "; pass inputs of equal length";
  if (!m.accepts(*x.format)) {
    std::string others;
    for (const FormatInfo& f : formats)
      if (m.accepts(f)) others.append(others.empty() ? "" : ", ").append(f.name);
    return "the method does not accept elements of " + std::string{x.format->name} +
           "; convert them to one of " + others;
  }
  if (!keys && !m.accepts(*x.format, l))
    return "the method reduces only single vectors of " + std::string{x.format->name} +
           "; for rows, columns and segments use the order tree or a format that holds the elements";
  if (out.format && !is_listed(out.format)) return "out has an unknown format; use one of samesum::formats";
  const auto name_of_format = [](const FormatInfo* f) { return std::string{f ? f->name : "std::int64_t"}; };
  const FormatInfo* const format = m.result_format(*x.format);
  if (!format != !out.format || (format && format->index != out.format->index))
    return "out holds " + name_of_format(out.format) + "; the results are " + name_of_format(format);
  const std::size_t numbers = static_cast<std::size_t>(m.results),
                    bytes = format ? format->bytes : sizeof(std::int64_t);
  if (std::string wrong = validation_error("out", out.data, out.size, {bytes, bytes}); !wrong.empty())
    return wrong;
  if (keys) return error_of_keys(m, x, *keys, l, out, bytes);
  if (out.size % numbers != 0)
    return "out has room for " + std::to_string(out.size) + " numbers; it needs " + std::to_string(numbers) +
           " for each result";
  const auto results = m.has_result_per_element ? std::nullopt : std::optional{out.size / numbers};
  if (std::string wrong = validation_error(l, results, offsets_on_host); !wrong.empty()) return wrong;
  const std::size_t needed = *extent(l, offsets_on_host);
  if (x.size < needed)
    return "x has " + std::to_string(x.size) + " elements, but the layout reads " + std::to_string(needed) +
           "; pass more elements or a smaller layout";
  if (m.has_result_per_element) return error_of_rows(m, x, l, out);
  Values read_of_x = x, read_of_y = y ? *y : x;
  read_of_x.size = read_of_y.size = needed;
  return overlap_error(read_of_x, y ? &read_of_y : nullptr, out);
}

std::string overlap_error(const Values& x, const Values* y, const Results& out) {
  const std::size_t bytes = out.size * (out.format ? out.format->bytes : sizeof(std::int64_t));
  for (const Values* v : {&x, y})
    if (v != nullptr && overlap(v->data, v->size * v->format->bytes, out.data, bytes))
      return std::string{"out overlaps "} + (v == &x ? "x" : "y") + "; use separate memory for the results";
  return {};
}

}  // namespace samesum
