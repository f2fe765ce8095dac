// Custom reducers: a hash that depends on the order of the elements, and the largest gap between neighbours.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <samesum/reducer.hpp>
#include <vector>

/// The hash of a polynomial: Σ x_i·B^(n-1-i) modulo 2^64.
struct PolynomialHash {
  static constexpr bool commutative = false;
  struct State {
    std::uint64_t hash, power;
  };
  State identity() const { return {0, 1}; }
  State map(std::uint32_t x, std::uint64_t) const { return {x, 0x9e3779b97f4a7c15}; }
  State combine(State a, State b) const { return {a.hash * b.power + b.hash, a.power * b.power}; }
  std::uint64_t finish(State s, std::uint64_t) const { return s.hash; }
};

/// The largest gap between neighbours: `map` also receives the index of the element.
struct LargestGap {
  static constexpr bool commutative = true;
  using State = float;
  const std::vector<float>& x;
  float identity() const { return 0; }
  float map(float e, std::uint64_t i) const { return i + 1 < x.size() ? std::fabs(x[i + 1] - e) : 0; }
  float combine(float a, float b) const { return a > b ? a : b; }
  float finish(float gap, std::uint64_t) const { return gap; }
};

int main() {
  std::vector<std::uint32_t> text(100000, 7);
  std::vector<float> x{1, 2, 7, 6.5f};
  const std::uint64_t hash = samesum::reduce<samesum::Blocked>(PolynomialHash{}, text);
  std::printf("%016llx\n", static_cast<unsigned long long>(hash));
  std::printf("%g\n", samesum::reduce(LargestGap{x}, x));
}
