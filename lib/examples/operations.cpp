// Every operation that has one result, the two results of moments, and an index.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  std::vector<float> x{3, -4, 12, 1}, y{2, 1, 0.5f, -4};
  for (const char* name :
       {"sum/exact", "mean/tree/plain", "sum_of_magnitudes/tree/kahan", "squared_norm/exact", "norm/tree",
        "prod/pairwise", "logsumexp/tree", "min", "max"})
    std::printf("%-29s %.6g\n", name, samesum::reduce(name, x).to_double());
  std::printf("%-29s %.6g\n", "dot/exact", samesum::reduce("dot/exact", x, y).to_double());
  std::printf("%-29s %d\n", "argmax", static_cast<int>(samesum::reduce_to_index("argmax", x)));

  std::vector<float> moments(2);
  samesum::reduce(samesum::find("moments/exact/fp32"), x, samesum::Layout::vector(4), std::span{moments},
                  {.ddof = 1});
  std::printf("%-29s mean %g, variance %g\n", "moments/exact", moments[0], moments[1]);
}
