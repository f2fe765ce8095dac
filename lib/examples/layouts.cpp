// Rows, columns and segments of an array.
#include <cstdint>
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  std::vector<float> matrix{1, 2, 3, 10, 20, 30}, rows(2), columns(3), segments(3);
  const std::vector<std::uint64_t> offsets{0, 1, 1, 6};  // one element, none, five
  const samesum::Method& sum = samesum::find("sum/pairwise/plain/fp32");
  samesum::reduce(sum, matrix, samesum::Layout::rows(2, 3), std::span{rows});
  samesum::reduce(sum, matrix, samesum::Layout::axis(1, 2, 3), std::span{columns});
  samesum::reduce(sum, matrix, samesum::Layout::segments(offsets.data(), 3), std::span{segments});
  std::printf("rows      %g %g\n", rows[0], rows[1]);
  std::printf("columns   %g %g %g\n", columns[0], columns[1], columns[2]);
  std::printf("segments  %g %g %g\n", segments[0], segments[1], segments[2]);
}
