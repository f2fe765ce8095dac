// Softmax of the rows of a matrix.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  std::vector<float> x{1, 2, 3, 1001, 1002, 1003}, y(6);
  const samesum::Method& softmax = samesum::find("softmax/tree/plain/fp32");
  samesum::reduce(softmax, x, samesum::Layout::rows(2, 3), std::span{y});
  for (const float* row : {&y[0], &y[3]}) std::printf("%.6f %.6f %.6f\n", row[0], row[1], row[2]);
}
