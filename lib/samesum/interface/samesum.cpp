/// Definitions of samesum.hpp.
#include "samesum/samesum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/call/validation.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum {
namespace {

const Method& find_for(std::string_view name, const Values& x) {
  check("x", x);
  return find(name, {.format = x.format->name});
}

/// Returns at least the exact sum of n numbers whose sum in double, added one by one, is `sum`.
double at_least(double sum, std::size_t n) {
  return rounded_up(sum * (1 + static_cast<double>(n) * 0x1p-52));
}

/// Returns at least a·b, for a, b >= 0; 0 only if a or b is 0.
double product_at_least(double a, double b) {
  const double product = a * b;
  return a == 0 || b == 0 ? product
                          : rounded_up(std::max(product, std::numeric_limits<double>::denorm_min()));
}

/// Returns Σ|x| or Σ|xy|, rounded up.
double magnitudes_of(const Values& x, const Values& y) {
  return with_format(*x.format, [&]<class T>() {
    const auto *a = static_cast<const T*>(x.data), *b = static_cast<const T*>(y.data);
    double sum = 0;
    for (std::size_t i = 0; i < x.size; ++i) {
      const double size = std::abs(convert<double>(a[i]));
      sum += b ? product_at_least(size, std::abs(convert<double>(b[i]))) : size;
    }
    return at_least(sum, x.size);
  });
}

/// Returns the largest |term| of a sum, rounded up.
double largest_term(Term term, const Values& x, const Values& y) {
  return with_format(*x.format, [&]<class T>() {
    const auto *a = static_cast<const T*>(x.data), *b = static_cast<const T*>(y.data);
    double largest = 0;
    for (std::size_t i = 0; i < x.size; ++i) {
      const double size = std::abs(convert<double>(a[i]));
      const double other = second_factor(term, size, b ? std::abs(convert<double>(b[i])) : 1);
      largest = std::max(largest, is_product(term) ? product_at_least(size, other) : size);
    }
    return largest;
  });
}

/// Estimates a sum from its tree: one thread adds up the partial sums.
Estimate recorded(const Method& m, Code::Watch watch, const Values& x) {
  const RecordedSum seen = watch(x.data, x.size);
  const Number value{m.format, seen.bits};
  const double magnitudes = at_least(seen.magnitudes, x.size);
  double bound = m.bound(*x.format, x.size, value, magnitudes);
  if (m.accumulator == "plain" && std::isfinite(value.to_double()))
    // Each rounding is off by at most u times what its addition returned, and these errors add up.
    bound = std::min(bound, rounded_up(m.format->unit_roundoff * at_least(seen.partials, x.size) +
                                       narrowing_bound(*x.format, *m.format, x.size, magnitudes)));
  return {value, bound, magnitudes};
}

Estimate estimate_vector(const Method& m, const Values& x, const Values& y) {
  const FloatingPointEnvironment environment;
  if (m.promise < Promise::everywhere)
    throw std::invalid_argument("samesum: no estimate for '" + m.name +
                                "': its tree differs from run to run; use a method that promises everywhere");
  if (const Code::Watch watch = Code::of(m).watch[x.format->index]; watch && !y.is_given())
    return recorded(m, watch, x);
  const Method& host = find_on("cpu", m);
  const Number value = host(x, y);
  const double magnitudes = magnitudes_of(x, y);
  const double known = m.takes_grid ? largest_term(Code::of(m).adds->term, x, y) : magnitudes;
  return {value, m.bound(*x.format, x.size, value, known), magnitudes};
}

/// The elements of one result of a layout; a copy in `room` if they are not contiguous.
Values elements_of(const Values& x, const Layout& layout, std::size_t o, std::size_t i,
                   std::vector<std::byte>& room) {
  const std::size_t bytes = x.format->bytes, n = layout.length(o);
  if (n == 0) return {*x.format, x.data, 0};
  const auto* const first = static_cast<const std::byte*>(x.data) + (layout.first(o) + i) * bytes;
  if (layout.stride == 1) return {*x.format, first, n};
  room.resize(n * bytes);
  for (std::size_t k = 0; k < n; ++k)
    std::memcpy(room.data() + k * bytes, first + k * layout.stride * bytes, bytes);
  return {*x.format, room.data(), n};
}

}  // namespace

Number reduce(std::string_view name, Values x, Options options) { return find_for(name, x)(x, options); }
Number reduce(std::string_view name, Values x, Values y, Options options) {
  return find_for(name, x)(x, y, options);
}

std::int64_t reduce_to_index(std::string_view name, Values x, Options options) {
  const Method& m = find_for(name, x);
  if (!m.returns_index) throw std::invalid_argument("samesum: " + m.name + " returns no index; call reduce");
  std::int64_t index = -1;
  reduce(m, x, Layout::vector(x.size), std::span{&index, 1}, options);
  return index;
}

KeySegments segments_of(Keys keys, const Values& x) {
  if (keys.size != x.size)
    throw std::invalid_argument("samesum: x has " + std::to_string(x.size) + " elements, and there are " +
                                std::to_string(keys.size) + " keys; pass a key for each element");
  return segments_of(keys);
}

Exact accumulate(Values x, Options options) {
  check(options);
  check("x", x);
  const FloatingPointEnvironment environment;
  return cpu::sum_exact(x, options.threads);
}

Estimate estimate(std::string_view name, Values x, Values y) {
  return estimate_vector(find_for(name, x), x, y);
}

std::vector<Estimate> estimate(std::string_view name, Values x, Layout layout) {
  return estimate(name, x, {}, layout);
}
std::vector<Estimate> estimate(std::string_view name, Values x, Values y, Layout layout) {
  const Method& m = find_for(name, x);
  check_gives_number(m);
  if (const std::string wrong = validation_error(layout, {}, true); !wrong.empty()) refuse(m, wrong);
  std::vector<std::uint64_t> room(layout.results());
  const Call call{
      .method = &m, .x = x, .y = y, .layout = layout, .out = {m.format, room.data(), room.size()}};
  if (const std::string wrong = validation_error(call, true); !wrong.empty()) refuse(m, wrong);
  const Layout l = normalised(layout);
  std::vector<Estimate> all;
  std::vector<std::byte> of_x, of_y;
  for (std::size_t o = 0; o < l.outer; ++o)
    for (std::size_t i = 0; i < l.inner; ++i)
      all.push_back(estimate_vector(m, elements_of(x, l, o, i, of_x),
                                    y.is_given() ? elements_of(y, l, o, i, of_y) : Values{}));
  return all;
}

}  // namespace samesum
