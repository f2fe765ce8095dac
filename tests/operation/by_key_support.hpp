/// Cases for operations by key, and their results as bits.
#pragma once

#include <algorithm>

#include "operation/reduction_support.hpp"

namespace samesum::by_key {

using namespace testing_support;

/// Returns the methods by key of a backend, without those that add in order of arrival.
inline std::vector<const Method*> methods_by_key(std::string_view backend) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == backend && m.takes_keys && m.promise >= Promise::everywhere) chosen.push_back(&m);
  return chosen;
}

/// Keys of one of the three types.
class KeyArray {
 public:
  KeyArray(const std::vector<std::size_t>& keys, KeyFormat format) : format_{format}, size_{keys.size()} {
    with_key_format(format, [&]<class K>() {
      memory_.resize(size_ * sizeof(K) / 8 + 1);
      for (std::size_t i = 0; i < size_; ++i)
        reinterpret_cast<K*>(memory_.data())[i] = static_cast<K>(keys[i]);
    });
  }
  Keys keys() const { return {format_, memory_.data(), size_}; }

 private:
  KeyFormat format_;
  std::size_t size_;
  std::vector<std::uint64_t> memory_;
};

/// A call: n rows of `inner` elements, with keys below `bins`.
struct Case {
  std::string name;
  std::vector<std::size_t> keys;
  std::size_t bins, inner;
  std::vector<double> x;  ///< keys.size() * inner elements
};

/// Returns the results, as bits, of a call whose `out` holds `held` (as elements of the results' format) if
/// results are combined.
inline Bits reduced(const Method& m, const Case& c, const Array& x, KeyFormat format, Options options = {},
                    const std::vector<double>& held = {}) {
  const KeyArray keys{c.keys, format};
  const Layout layout = Layout::axis(1, c.keys.size(), m.inputs == 0 ? 1 : c.inner);
  const std::size_t results = c.bins * layout.inner;
  Bits bits;
  if (m.returns_index) {
    std::vector<std::int64_t> out(results, -77);
    for (std::size_t i = 0; options.combine && i < results; ++i) out[i] = static_cast<std::int64_t>(3 * i);
    reduce(m, x.values(), keys.keys(), layout, std::span{out}, options);
    bits.assign(out.begin(), out.end());
    return bits;
  }
  with_format(*m.format, [&]<class F>() {
    std::vector<F> out(results, from_bits<F>(BitsOf<F>(0x5a5a)));
    for (std::size_t i = 0; options.combine && i < results; ++i) out[i] = convert<F>(held[i % held.size()]);
    reduce(m, x.values(), keys.keys(), layout, std::span{out}, options);
    bits.reserve(results);
    for (const F result : out) bits.push_back(to_bits(result));
  });
  return bits;
}

/// Rounds the elements of a case to the input format of a method; a count has none.
inline Array elements_of(const Case& c, const Method& m, const FormatInfo& input) {
  return {input, m.inputs == 0 ? std::vector<double>{} : c.x};
}
inline Bits reduced(const Method& m, const Case& c, const FormatInfo& input, KeyFormat format,
                    Options options = {}, const std::vector<double>& held = {}) {
  return reduced(m, c, elements_of(c, m, input), format, options, held);
}

inline bool can_combine(const Method& m) { return m.operation != "scatter_mean"; }

inline std::vector<std::size_t> random_keys(std::size_t n, std::size_t bins, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<std::size_t> keys(n);
  for (std::size_t& key : keys) key = random() % bins;
  return keys;
}

/// What `out` may hold: ordinary and special numbers.
inline std::vector<double> held_numbers() {
  return {-0.0, 1.5, 0.0, -3.25, INFINITY, NAN, 0x1p-140, -NAN, 65504};
}

/// Elements that are awkward together or alone.
inline std::vector<std::vector<double>> awkward_elements(std::size_t n) {
  std::vector<double> special = uniform(n, 9), zeros(n, -0.0), subnormal = uniform(n, 4), large(n, 0x1.fp127),
                      halves(n, 60000.0);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 11 == 3) special[i] = i % 2 ? INFINITY : -INFINITY;
    if (i % 17 == 5) special[i] = NAN;
    if (i % 23 == 7) zeros[i] = 0.0;
    subnormal[i] *= i % 3 == 0 ? 0x1p-1060 : i % 3 == 1 ? 0x1p-140 : 0x1p-20;
    if (i % 5 == 2) large[i] = -large[i];
  }
  return {uniform(n, 1), wide(n, 20, 2), wide(n, 110, 3), special, zeros, subnormal, large, halves};
}

inline std::vector<Case> made_cases() {
  std::vector<Case> all;
  for (const std::size_t n : {0, 1, 2, 3, 17, 683, 2047, 2048, 2049, 6000})
    for (const std::size_t bins : {1, 2, 13, 700}) {
      std::vector<std::size_t> random = random_keys(n, bins, n + bins), sorted = random, reversed;
      std::ranges::sort(sorted);
      reversed.assign(sorted.rbegin(), sorted.rend());
      const auto add = [&](const char* name, const std::vector<std::size_t>& keys) {
        all.push_back(
            {std::string{name} + " keys, n = " + std::to_string(n) + ", " + std::to_string(bins) + " results",
             keys, bins, 1, uniform(n, n)});
      };
      add("random", random);
      if (n != 17 && n != 2049 && n != 6000) continue;  // the others show what depends on the length
      add("sorted", sorted);
      add("reversed", reversed);
      add("equal", std::vector<std::size_t>(n, bins - 1));
    }
  for (const std::size_t inner : {2, 3, 8, 128, 3000})
    all.push_back({"rows of " + std::to_string(inner), random_keys(60, 9, inner), 9, inner,
                   wide(60 * inner, 12, inner)});
  int i = 0;
  for (const std::vector<double>& x : awkward_elements(5000)) {
    const std::string name = "awkward elements " + std::to_string(i++);
    all.push_back({name, random_keys(5000, 40, 5), 40, 1, x});
    all.push_back({name + " of many keys", random_keys(5000, 4000, 6), 4000, 1, x});
    all.push_back({name + " in rows", random_keys(1000, 7, 7), 7, 5, x});
  }
  return all;
}
/// Returns all cases, which are made once.
inline const std::vector<Case>& cases() {
  static const std::vector<Case> all = made_cases();
  return all;
}

}  // namespace samesum::by_key
