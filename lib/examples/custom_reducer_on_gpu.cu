// A custom reducer on a GPU, with the bits of the CPU.
#include <cstdint>
#include <cstdio>
#include <samesum/reducer.cuh>

struct PolynomialHash {
  static constexpr bool commutative = false;
  struct State {
    std::uint64_t hash, power;
  };
  SAMESUM_HD State identity() const { return {0, 1}; }
  SAMESUM_HD State map(std::uint32_t x, std::uint64_t) const { return {x, 0x9e3779b97f4a7c15}; }
  SAMESUM_HD State combine(State a, State b) const { return {a.hash * b.power + b.hash, a.power * b.power}; }
  SAMESUM_HD std::uint64_t finish(State s, std::uint64_t) const { return s.hash; }
};

int main() {
  constexpr std::size_t n = 100000;
  std::uint32_t* text;
  std::uint64_t* hash;
  cudaMallocManaged(&text, n * sizeof *text);
  cudaMallocManaged(&hash, sizeof *hash);
  for (std::size_t i = 0; i < n; ++i) text[i] = 7;
  samesum::gpu::reduce<samesum::Blocked>(PolynomialHash{}, text, n, hash);
  cudaDeviceSynchronize();
  const std::uint64_t on_cpu = samesum::reduce<samesum::Blocked>(PolynomialHash{}, std::span{text, n});
  std::printf("%s\n", *hash == on_cpu ? "the same" : "different");
}
