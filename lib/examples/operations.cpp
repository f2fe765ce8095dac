// Every operation that has one result, the two results of moments, and an index.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <vector>

int main() {
  std::vector<float> x{3, -4, 12, 1}, y{2, 1, 0.5f, -4};

  // By the default method, exact where there is one, in the format of the elements.
  std::printf("mean %g, norm %g, product %g\n", samesum::mean(x), samesum::norm(x), samesum::prod(x));
  std::printf("dot %g, logsumexp %.6g\n", samesum::dot(x, y), samesum::logsumexp(x));
  std::printf("largest %g, at index %d\n", samesum::max(x), static_cast<int>(samesum::argmax(x)));
  auto [mean, variance] = samesum::moments(x, {.ddof = 1});
  std::printf("mean %g, variance %g\n", mean, variance);

  // By a name that the compiler checks.
  float dot = samesum::reduce<"dot/tree/kahan">(x, y);
  // By a name that is known at run time.
  samesum::Number squares = samesum::reduce("squared_norm/pairwise", x);
  std::printf("dot %g, sum of squares %g\n", dot, squares.to_double());

  // The results of a layout, here the rows of a matrix, with bounds on their errors.
  for (const samesum::Estimate& row : samesum::estimate("tree", x, samesum::Layout::rows(2, 2)))
    std::printf("row: %g, off by at most %.1g\n", row.value.to_double(), row.bound);
}
