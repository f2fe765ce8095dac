/// The frozen bits: a few sums of integers-only data, by every order and accumulator. A change of any of them
/// breaks whoever compares results of two versions; see lib/DECISIONS.md before touching this.
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

/// 100 003 numbers over ten binades: many leaves, and a ragged end.
Array golden_data(const FormatInfo& format) {
  std::vector<double> x(100'003);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    x[i] =
        static_cast<double>(static_cast<std::int64_t>(z) >> 11) * power_of_two(static_cast<int>(i % 10) - 60);
  }
  return {format, x};
}

struct Golden {
  const char* recipe;
  std::uint64_t bits;
};
constexpr Golden golden[] = {
    {"serial/plain/fp16", 0x3ec0},
    {"tree/plain/fp16", 0x3ec0},
    {"pairwise/plain/fp16", 0x3ee8},
    {"serial/plain/bf16", 0x3fcc},
    {"serial/kahan/bf16", 0xc05c},
    {"serial/neumaier/bf16", 0x3fed},
    {"serial/double_word/bf16", 0x3fe3},
    {"tree/plain/bf16", 0xc04a},
    {"tree/kahan/bf16", 0x3fa8},
    {"tree/neumaier/bf16", 0x3fe4},
    {"tree/double_word/bf16", 0x3fe3},
    {"pairwise/plain/bf16", 0x4048},
    {"pairwise/kahan/bf16", 0x3fe3},
    {"pairwise/neumaier/bf16", 0x3fe3},
    {"pairwise/double_word/bf16", 0x3fe3},
    {"serial/plain/fp32", 0x3fe516ed},
    {"serial/kahan/fp32", 0x3fe516b3},
    {"tree/plain/fp32", 0x3fe516f0},
    {"tree/kahan/fp32", 0x3fe516b9},
    {"pairwise/plain/fp32", 0x3fe51730},
    {"pairwise/kahan/fp32", 0x3fe516a3},
    {"serial/plain/fp64", 0x3ffca2d47c74b6a7},
    {"tree/plain/fp64", 0x3ffca2d47c74be40},
    {"pairwise/plain/fp64", 0x3ffca2d47c74bdc8},
    {"exact/fp32", 0x3fe516a3},
};

TEST(TheFrozenOrders, StillGiveTheBitsThatTheyAlwaysGave) {
  for (const Golden& g : golden) {
    const Variant& v = find(g.recipe);
    EXPECT_EQ(v(golden_data(*v.format).values()).bits, g.bits) << g.recipe;
  }
}

TEST(TheFrozenOrders, AreAllPinned) {
  Orders::for_each([]<class Order>() {
    if (Order::promise < Promise::everywhere) return;
    EXPECT_TRUE(std::ranges::any_of(golden, [](const Golden& g) {
      return find(g.recipe).order == Order::name;
    })) << Order::name;
  });
}

}  // namespace
}  // namespace samesum
