// Masks and missing values: elements that take no part are as if absent.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <samesum/samesum.hpp>
#include <vector>

int main() {
  std::vector<double> price{1e16, 1, NAN, 1, -1e16};
  std::vector<std::uint8_t> sold{1, 1, 1, 0, 1};  // or an array of bool

  std::printf("all       %g\n", samesum::sum(price));
  std::printf("no NaN    %g\n", samesum::sum(price, {.skip_nan = true}));
  std::printf("sold      %g\n", samesum::sum(price, {.where = sold, .skip_nan = true}));
  std::printf("cheapest  %g\n", samesum::min(price, {.where = sold, .skip_nan = true}));
  std::printf("mean      %g\n", samesum::mean(price, {.skip_nan = true}));
}
