/// Support for the tests of rolling operations: their methods, calls, and elements.
#pragma once

#include <cmath>

#include "operation/reduction_support.hpp"

namespace samesum::testing_support {

inline std::vector<const Method*> rolling_methods_of(std::string_view backend) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == backend && m.takes_window) chosen.push_back(&m);
  return chosen;
}

inline constexpr int grid_of_windows = -40;
inline Options on_grid_of_windows(const Method& m, Options options) {
  if (m.takes_grid) options.grid = grid_of_windows;
  return options;
}

inline Bits rolled(const Method& m, Values x, const Layout& layout, const Options& options,
                   std::size_t stride = 0) {
  return result_per_element(m, x, layout, on_grid_of_windows(m, options), stride);
}
inline Bits rolled(const Method& m, Values x, const Options& options) {
  return rolled(m, x, Layout::vector(x.size), options);
}

/// Elements of which no sum overflows the grid.
inline Array elements_for_windows(const Method& m, const FormatInfo& format, std::vector<double> x) {
  if (m.takes_grid)
    for (double& e : x)
      if (std::isfinite(e)) e = std::fmod(e, m.format == &format_info<fp64>() ? 0x1p70 : 0x1p8);
  return {format, x};
}

/// Elements with all that a window counts in and out.
inline std::vector<Dataset> data_with_specials(std::size_t n) {
  std::vector<Dataset> all = awkward_data(n);
  const std::vector<double> u = uniform(n, 91), v = wide(n, 30, 92), far = wide(n, 2000, 93);
  std::mt19937_64 random{94};
  const auto mixed = [&](unsigned one_in) {
    std::vector<double> x = v;
    for (double& e : x)
      if (random() % one_in == 0) {
        const double specials[] = {NAN,       INFINITY,   -INFINITY, -0.0,     0.0,
                                   0x1p-1074, -0x1p-1060, 0x1p1023,  -0x1p1023};
        e = specials[random() % std::size(specials)];
      }
    return x;
  };
  all.push_back({"rare specials", mixed(100)});
  all.push_back({"many specials", mixed(3)});
  all.push_back({"30 binades", v});
  all.push_back({"all exponents", far});
  std::vector<double> nans = u, zeros(n, -0.0), steps(n), tiny = u, ties(n), jumps = u, far_ties(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (random() % 4 == 0) nans[i] = NAN;
    if (random() % 9 == 0) zeros[i] = random() % 2 == 0 ? 0.0 : 1.0;
    steps[i] = static_cast<double>(i / 50 % 7);
    tiny[i] *= 0x1p-1050;
    // Sums end in ties of every format, which nothing but all bits decides, or cancel.
    const double last_places[] = {0x1p-8, 0x1p-11, 0x1p-24, 0x1p-52, 0x1p-53, -0x1p-11};
    ties[i] = (random() % 2 == 0 ? 1 : -1) + last_places[random() % 6];
    far_ties[i] = i % 400 == 0 ? 0x1p90 : ties[i];
    jumps[i] *= i / 300 % 2 == 0 ? 0x1p900 : 0x1p-500;
  }
  all.push_back({"a quarter NaN", nans});
  all.push_back({"mostly -0", zeros});
  all.push_back({"equal neighbours", steps});
  all.push_back({"subnormals of fp64", tiny});
  all.push_back({"ties", ties});
  all.push_back({"ties beside numbers that no window holds", far_ties});
  all.push_back({"jumps from large numbers to small ones", jumps});
  all.push_back({"0.1", std::vector<double>(n, 0.1)});
  return all;
}

}  // namespace samesum::testing_support
