// A reduction that is cut into parts and finishes to the bits of the undivided call.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  std::vector<float> x(100000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(i + 1);
  std::span<const float> all{x};

  // Another machine has the elements from 37000 on, and sends its partial as bytes.
  samesum::Partial right{"tree/kahan/fp32", 37000};
  right.add(all.subspan(37000));
  std::vector<std::byte> bytes = right.serialise();

  // This one takes in its elements in portions of any size, then merges with its neighbour.
  samesum::Partial left{"tree/kahan/fp32"};
  for (std::size_t i = 0; i < 37000; i += 1000) left.add(all.subspan(i, 1000));
  left.merge(samesum::Partial::deserialise(bytes, left.method()));

  std::printf("in parts   %.9g, from %zu bytes\n", left.finish().to_double(), bytes.size());
  std::printf("undivided  %.9g\n", samesum::reduce("tree/kahan/fp32", x).to_double());

  // Exact states may be merged in any order. They need no positions, and serve all formats at once.
  samesum::Exact sum = samesum::accumulate(all.subspan(37000));
  sum.merge(samesum::accumulate(all.first(37000)));
  std::printf("exact      %.17g, from %zu bytes\n", sum.result<double>(), sum.serialise().size());
}
