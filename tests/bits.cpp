/// Prints the bits of every recipe over a few arrays: the output must be the same from every compiler,
/// optimisation level and vector width.
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "samesum/backend/cpu/leaf.hpp"
#include "samesum/reading.hpp"
#include "samesum/recipe.hpp"

using namespace samesum;

/// Either sign, 24 binades, from the generator's integers alone.
static std::vector<float> data(std::size_t n) {
  std::mt19937_64 random{n};
  std::vector<float> x(n);
  for (float& e : x) {
    const std::uint64_t bits = random();
    const double magnitude =
        static_cast<double>(bits >> 32) * 0x1p-32 * power_of_two(static_cast<int>(bits % 24) - 16);
    e = convert<float>(bits & 32 ? -magnitude : magnitude);
  }
  return x;
}

template <class Order, template <class> class A, class F> void print(const std::vector<float>& x) {
  using Shape = typename Order::Shape;
  using State = A<Scalar<F>>;
  const auto literal = read<State>(Shape{}, x.size(), [&](std::size_t i) { return Scalar<F>::of(x[i]); });
  std::vector<State> leaves;
  for (std::size_t k = 0; k < Shape::leaves(x.size()); ++k) {
    const std::size_t begin = k * Shape::leaf;
    leaves.push_back(
        cpu::Leaf<Shape, A, F, float>::sum(x.data() + begin, std::min(x.size() - begin, Shape::leaf)));
  }
  const auto bits = [](const State& state) {
    return static_cast<unsigned long long>(to_bits(to_format<F>(state.result())));
  };
  std::printf("%s %zu %llx %llx\n", recipe_name(Order::name, State::name, Format<F>::name).c_str(), x.size(),
              bits(*literal), bits(merge_by_stride_doubling(leaves)));
}

int main() {
  for (const std::size_t n : {1, 7, 130, 2049, 33'000, 100'003})
    for_each_order_and_accumulator([x = data(n)]<class Order, template <class> class A>() {
      Formats::for_each([&]<class F>() { print<Order, A, F>(x); });
    });
}
