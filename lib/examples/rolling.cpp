// Sums, variances and largest elements of moving windows.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  std::vector<double> x{1e16, 1, 1, 1, 5}, y(5);
  const samesum::Layout all = samesum::Layout::vector(5);

  // Each window is summed as if alone: 1e16 leaves no trace when it has left.
  samesum::reduce(samesum::find("rolling_sum/exact/fp64"), x, all, std::span{y}, {.window = 2});
  std::printf("%g %g %g %g %g\n", y[0], y[1], y[2], y[3], y[4]);

  // Windows of three around each element; at the ends two are enough.
  samesum::reduce(samesum::find("rolling_max/fp64"), x, all, std::span{y},
                  {.window = 3, .centred = true, .min_periods = 2});
  std::printf("%g %g %g %g %g\n", y[0], y[1], y[2], y[3], y[4]);

  samesum::reduce(samesum::find("rolling_var/exact/fp64"), x, all, std::span{y}, {.ddof = 1, .window = 3});
  std::printf("%.17g %g\n", y[4], y[3]);
}
