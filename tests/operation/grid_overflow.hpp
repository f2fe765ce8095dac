/// Calls on a given grid that some of their sums overflow: which results become NaN, and what is reported.
#pragma once

#include "operation/by_key_support.hpp"
#include "operation/rolling_support.hpp"

namespace samesum::testing_support {

/// The results of a call as bits, and whether it reported that a sum overflows the grid.
struct Outcome {
  Bits bits;
  bool overflows = false;
  bool operator==(const Outcome&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  for (const std::uint64_t bits : o.bits) out << std::hex << bits << " ";
  return out << std::dec << (o.overflows ? "(overflows)" : "");
}

inline Outcome outcome(const Method& m, const Array& x, const Layout& layout, const Options& options,
                       const std::vector<std::int32_t>& keys = {}, std::size_t bins = 0) {
  const Values values = x.values();
  const std::size_t size = m.takes_keys               ? bins * layout.inner
                           : m.has_result_per_element ? values.size
                                                      : layout.results();
  return with_format(*m.format, [&]<class F>() {
    std::vector<F> out(size, from_bits<F>(BitsOf<F>(0x5a5a)));
    Call call{.method = &m, .x = values, .layout = layout, .out = std::span{out}, .options = options};
    if (m.inputs == 2) call.y = values;
    if (m.takes_keys) call.keys = keys;
    Outcome o;
    try {
      run(call);
    } catch (const std::overflow_error&) {
      o.overflows = true;
    }
    for (const F result : out) o.bits.push_back(to_bits(result));
    return o;
  });
}

/// Six elements, of which sums and terms are just inside or outside of what a word on the grid 1 holds.
inline std::vector<std::vector<double>> elements_beside_the_grid() {
  std::vector<std::vector<double>> all;
  for (const int exponent : {60, 61, 62, 63, 123, 124, 125, 126}) {
    const double b = std::ldexp(1, exponent);
    for (const std::vector<double>& x : {std::vector<double>{b, b, 1, INFINITY, -b, 1},
                                         {b, 1, 1, b, -b, NAN},
                                         {1, 1, b, -INFINITY, b, b},
                                         {b, b, INFINITY, b, -b, -INFINITY},
                                         {b, 1, 1, 1, 1, 1},
                                         {-b, -b, -b, b, b, b}})
      all.push_back(x);
  }
  return all;
}

/// Expects each method on a grid to write and to report what its reference does, for all layouts, scans,
/// windows and keys, with flags and without. Only one of `step` calls is made.
inline void expect_outcomes_of_the_reference(std::string_view backend, int step) {
  int calls = 0;
  const std::vector<std::int32_t> keys{0, 0, 1, 0, 3, 1};
  const std::uint8_t flags[][6] = {
      {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 0}, {1, 0, 1, 1, 0, 1}, {0, 1, 1, 1, 1, 1}};
  for (const Method& m : methods()) {
    if (m.backend != backend || !m.takes_grid) continue;
    for (const FormatInfo& input : formats) {
      if (!m.accepts(input) || input.bytes < 4 || m.format->bytes < 4) continue;
      for (const std::vector<double>& elements : elements_beside_the_grid()) {
        const Array x{input, elements};
        for (const Layout& layout : {Layout::vector(6), Layout::rows(2, 3), Layout::axis(1, 3, 2)}) {
          if (!m.accepts(input, layout) || (m.takes_keys && layout.outer > 1)) continue;
          const std::vector<std::int32_t> some{keys.begin(),
                                               keys.begin() + static_cast<std::ptrdiff_t>(layout.n)};
          const auto expect_same = [&](Options options, const char* what) {
            if (calls++ % step != 0) return;
            options.grid = 0;
            EXPECT_EQ(outcome(m, x, layout, options, some, 5),
                      outcome(reference_of(m), x, layout, options, some, 5))
                << m.name << " of " << input.name << ", 6 elements from " << elements[0] << " " << elements[1]
                << " " << elements[2] << " on, " << layout.outer << " x " << layout.n << " x " << layout.inner
                << what;
          };
          if (m.takes_window) {
            expect_same({.window = 3, .min_periods = 1}, ", windows");
            continue;
          }
          expect_same({}, "");
          expect_same({.skip_nan = true}, ", without NaN");
          if (m.is_scan()) expect_same({.exclusive = true}, ", exclusive");
          if (m.takes_keys && by_key::can_combine(m)) expect_same({.combine = true}, ", combined");
          for (const auto& where : flags) {
            expect_same({.where = Mask{where, 6}}, ", some elements");
            if (m.is_scan()) expect_same({.exclusive = true, .where = Mask{where, 6}}, ", some, exclusive");
          }
        }
      }
    }
  }
}

}  // namespace samesum::testing_support
