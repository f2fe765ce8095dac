// Sums of the values that share a key: a histogram with weights, and the sales of each day.
#include <cstdint>
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  const std::vector<std::uint32_t> keys{2, 0, 2, 1, 2};
  const std::vector<float> x{1e8f, 0.5f, 1, 4, -1e8f};
  const samesum::Layout one_each = samesum::Layout::vector(5);
  std::vector<float> exact(4), in_turn(4);
  samesum::reduce(samesum::find("scatter_add/exact/fp32"), x, keys, one_each, std::span{exact});
  samesum::reduce(samesum::find("scatter_add/serial/plain/fp32"), x, keys, one_each, std::span{in_turn});
  std::printf("exact   %g %g %g %g\n", exact[0], exact[1], exact[2], exact[3]);
  std::printf("serial  %g %g %g %g\n", in_turn[0], in_turn[1], in_turn[2], in_turn[3]);

  // What `out` holds takes part. A key without elements keeps it.
  std::vector<float> largest{3, 3, 3, 3};
  samesum::reduce(samesum::find("scatter_max/fp32"), x, keys, one_each, std::span{largest},
                  {.combine = true});
  std::printf("largest %g %g %g %g\n", largest[0], largest[1], largest[2], largest[3]);

  // Runs of equal keys, for every operation.
  const std::vector<std::int64_t> days{20260102, 20260102, 20260105};
  const std::vector<double> sales{10, 20, 5};
  const auto means = samesum::reduce_by_key<double>(samesum::find("mean/exact/fp64"), sales, days);
  for (std::size_t i = 0; i < means.keys.size(); ++i)
    std::printf("%lld %g\n", static_cast<long long>(means.keys[i]), means.results[i]);
}
