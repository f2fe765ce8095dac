/// Definitions of samesum.hpp.
#include "samesum/samesum.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "samesum/backend/cpu/methods.hpp"
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
      const double other = term == Term::square ? size : b ? std::abs(convert<double>(b[i])) : 1;
      largest = std::max(largest, term >= Term::square ? product_at_least(size, other) : size);
    }
    return largest;
  });
}

/// Estimates a sum from its tree: the reference adds up the partial sums.
Estimate recorded(const Method& m, const Values& x) {
  const RecordedSum seen = Code::of(find_on("reference", m)).watch[x.format->index](x.data, x.size);
  const Number value{m.format, seen.bits};
  const double magnitudes = at_least(seen.magnitudes, x.size);
  double bound = m.bound(*x.format, x.size, value, magnitudes);
  if (m.accumulator == "plain" && std::isfinite(value.to_double()))
    // Each rounding is off by at most u times what its addition returned, and these errors add up.
    bound = std::min(bound, rounded_up(m.format->unit_roundoff * at_least(seen.partials, x.size) +
                                       narrowing_bound(*x.format, *m.format, x.size, magnitudes)));
  return {value, bound, magnitudes};
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

Estimate estimate(Values x, Values y, std::string_view name) {
  const Method& m = find_for(name, x);
  const FloatingPointEnvironment environment;
  if (m.promise < Promise::everywhere)
    throw std::invalid_argument("samesum: no estimate for '" + m.name +
                                "': its tree differs from run to run; use a method that promises everywhere");
  const bool is_on_grid = m.accumulator == GridSum::name;
  if (m.operation == Sum::name && !y.is_given() && !is_on_grid) return recorded(m, x);
  const Method& host = find_on("cpu", m);
  const Number value = host(x, y);
  const double magnitudes = magnitudes_of(x, y);
  const double known = is_on_grid ? largest_term(Code::of(m).adds->term, x, y) : magnitudes;
  return {value, m.bound(*x.format, x.size, value, known), magnitudes};
}

}  // namespace samesum
