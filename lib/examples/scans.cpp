// Sums, and largest elements, of the first elements.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  std::vector<float> x{0.1f, 0.2f, 0.3f, 0.4f, 0.5f}, y(5);
  samesum::reduce(samesum::find("cumsum/prefix/plain/fp32"), x, samesum::Layout::vector(5), std::span{y});
  std::printf("%.9g, by sum %.9g\n", y[3], samesum::sum<"prefix/plain/fp32">(std::span{x}.first(4)));

  // Every prefix correctly rounded, and without the element itself.
  samesum::reduce(samesum::find("cumsum/exact/fp32"), x, samesum::Layout::vector(5), std::span{y},
                  {.exclusive = true});
  std::printf("%g %g %g %g %g\n", y[0], y[1], y[2], y[3], y[4]);

  // Along the columns of a matrix of two rows.
  std::vector<float> matrix{3, 1, 4, 1, 5, 9}, largest(6);
  samesum::reduce(samesum::find("cummax/fp32"), matrix, samesum::Layout::axis(1, 2, 3), std::span{largest});
  for (const float* row : {&largest[0], &largest[3]}) std::printf("%g %g %g\n", row[0], row[1], row[2]);
}
