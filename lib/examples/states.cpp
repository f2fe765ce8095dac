// Partial sums that are filled in parts, shipped as bytes, and merged.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <span>
#include <vector>

int main() {
  std::vector<float> x{1e30f, 1.5f, -1e30f, 0.25f};
  std::span<const float> all{x};

  // Two machines sum a part each and send their states.
  std::vector<std::byte> here = samesum::accumulate(all.first(1)).serialise();
  std::vector<std::byte> there = samesum::accumulate(all.subspan(1)).serialise();

  samesum::Exact total;
  total.merge(samesum::Exact::deserialise(there));  // in any order
  total.merge(samesum::Exact::deserialise(here));
  std::printf("exact  %g, from %zu bytes each\n", total.result<double>(), here.size());

  // A compensated state is smaller. Its bits depend on what was merged with what, and in which order.
  samesum::State left{"kahan/fp32"}, right{"kahan/fp32"};
  left.add(all.first(2));
  right.add(all.subspan(2));
  left.merge(right);
  std::printf("kahan  %g, from %zu bytes each\n", left.result().to_double(), right.serialise().size());
}
