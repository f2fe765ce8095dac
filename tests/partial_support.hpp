/// Random vectors, and partials of random cuts of them.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>

#include "support.hpp"

namespace samesum::testing_support {

/// Returns the methods of a backend that have partials.
inline std::vector<const Method*> methods_with_partials(std::string_view backend) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == backend && has_partials(m)) chosen.push_back(&m);
  return chosen;
}

/// The inputs of a method.
struct Inputs {
  Array x, y;
  std::size_t n;
  Values first(std::size_t begin, std::size_t count) const { return part(x, begin, count); }
  Values second(std::size_t begin, std::size_t count) const { return part(y, begin, count); }

 private:
  static Values part(const Array& array, std::size_t begin, std::size_t count) {
    const Values all = array.values();
    return {*all.format, static_cast<const std::byte*>(all.data) + begin * all.format->bytes, count};
  }
};

inline std::size_t below(std::mt19937_64& random, std::size_t n) {
  return static_cast<std::size_t>(random() % n);
}

/// Random elements: ordinary, large enough to overflow, or with special values.
inline std::vector<double> random_elements(std::mt19937_64& random, std::size_t n, const FormatInfo& format) {
  std::vector<double> x = wide(n, 24, random());
  const std::size_t kind = below(random, 8);
  if (kind == 0)
    for (double& e : x) e = format.max_finite * (e > 0 ? 0.75 : -0.25);
  if (kind == 1)
    for (double& e : x) e *= format.smallest_subnormal;
  if (kind == 2) std::ranges::fill(x, -0.0);
  if (kind == 3 && n > 0) {
    const double inf = std::numeric_limits<double>::infinity();
    for (const double special : {inf, random() % 2 ? inf : -inf, random() % 4 ? 0.0 : inf - inf})
      x[below(random, n)] = special;
  }
  return x;
}

/// Random inputs in a format that the method accepts.
inline Inputs random_inputs(std::mt19937_64& random, const Method& m, std::size_t n) {
  std::vector<const FormatInfo*> accepted;
  for (const FormatInfo& f : formats)
    if (m.accepts(f)) accepted.push_back(&f);
  const FormatInfo& f = *accepted[below(random, accepted.size())];
  return {{f, random_elements(random, n, f)}, {f, random_elements(random, m.inputs == 2 ? n : 0, f)}, n};
}

/// The bits that a call returns, of whatever type.
using Bits = std::vector<std::uint64_t>;

inline Results results_of(const Method& m, Bits& bits) {
  const FormatInfo* format = m.result_format(*m.format);
  return {format, bits.data(), static_cast<std::size_t>(m.results)};
}
/// Returns what a call writes; a third word if it overflows its grid.
inline Bits bits_unless_overflow(const Method& m, const std::function<void(Results)>& call) {
  Bits bits(2);
  try {
    call(results_of(m, bits));
  } catch (const std::overflow_error&) {
    bits = {0, 0, 1};
  }
  return bits;
}
inline Bits undivided(const Method& m, const Inputs& in, Options options = {}) {
  const Layout layout = Layout::vector(in.n);
  return bits_unless_overflow(m, [&](Results out) {
    if (m.inputs == 2)
      reduce(m, in.x.values(), in.y.values(), layout, out, with_grid(m, options));
    else
      reduce(m, in.x.values(), layout, out, with_grid(m, options));
  });
}
inline Bits finished(const Partial& partial, Options options = {}) {
  return bits_unless_overflow(partial.method(), [&](Results out) { partial.finish(out, options); });
}

inline void add(Partial& partial, const Inputs& in, std::size_t begin, std::size_t count,
                Options options = {}) {
  if (partial.method().inputs == 2)
    partial.add(in.first(begin, count), in.second(begin, count), options);
  else
    partial.add(in.first(begin, count), options);
}

/// Cuts the inputs at random into the given number of parts, which may be empty, and feeds each to a partial
/// in random portions. method_of(k) is the method of part k.
inline std::vector<Partial> random_parts(std::mt19937_64& random, const Inputs& in, std::size_t parts,
                                         const std::function<const Method&(std::size_t)>& method_of) {
  std::vector<std::size_t> cuts{0, in.n};
  for (std::size_t k = 1; k < parts; ++k) cuts.push_back(below(random, in.n + 1));
  std::ranges::sort(cuts);
  std::vector<Partial> all;
  for (std::size_t k = 0; k < parts; ++k) {
    Partial part = partial_of(method_of(k), cuts[k]);
    while (part.end() < cuts[k + 1]) {
      const std::size_t left = cuts[k + 1] - static_cast<std::size_t>(part.end()),
                        portion = random() % 2 ? left : 1 + below(random, left);
      add(part, in, static_cast<std::size_t>(part.end()), portion, {.threads = 1 + int(random() % 3)});
    }
    all.push_back(std::move(part));
  }
  return all;
}

/// Merges neighbours in random order until one partial is left.
inline Partial merged(std::mt19937_64& random, std::vector<Partial> parts) {
  while (parts.size() > 1) {
    const std::size_t k = below(random, parts.size() - 1);
    parts[k].merge(parts[k + 1]);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(k) + 1);
  }
  return parts.front();
}

}  // namespace samesum::testing_support
