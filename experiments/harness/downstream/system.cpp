#include <cmath>

#include "harness/dataset.hpp"
#include "harness/downstream/downstream.hpp"

namespace samesum::harness {

/// The eigenvalues are 4 - 2 cos(a) - 2 cos(b), where a and b are multiples of pi / (width + 1) and pi /
/// (height + 1); the largest is 8 minus the smallest.
System poisson(int width, int height) {
  const auto least_of = [](int points) {  // 2 - 2 cos(a) = (2 sin(a / 2))^2
    const double s = 2 * sine_of_quarter(1.0 / (points + 1));
    return s * s;
  };
  const double least = least_of(width) + least_of(height);
  const int n = width * height;
  System s{"poisson", n, (8 - least) / least, {}, std::vector<double>(static_cast<std::size_t>(n), 4)};
  for (int i = 0; i < n; ++i) {
    if (i >= width) s.below.push_back({i, i - width});
    if (i % width > 0) s.below.push_back({i, i - 1});
  }
  return s;
}

System graded(int n, int levels) {
  System s{"graded", n, std::ldexp(1.0, levels - 1), {}, {}};
  for (int i = 0; i < n; ++i) s.diagonal.push_back(std::ldexp(1.0, -(i % levels)));
  return s;
}

}  // namespace samesum::harness
