/// The frozen bits: a few sums of integers-only data, by every order and accumulator. A change of any of them
/// breaks whoever compares results of two versions; see lib/DECISIONS.md before touching this.
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

constexpr std::size_t length = 100'003;  ///< many leaves, and a ragged end

/// An integer that looks random, the same everywhere.
std::uint64_t mixed(std::size_t i) { return (i + 1) * 0x9e3779b97f4a7c15u; }

/// In [-1, 1).
double uniform_at(std::size_t i) {
  return static_cast<double>(static_cast<std::int64_t>(mixed(i)) >> 11) * 0x1p-52;
}

/// The inputs, in the order of a golden row: numbers over ten binades; numbers that cancel, but for the small
/// ones among twice as many binades as the format has digits, so that no accumulator is right about all bits;
/// positive ones, which stagnate in 16 bits.
using Input = double (*)(const FormatInfo& format, std::size_t i);
constexpr Input inputs[] = {
    [](const FormatInfo&, std::size_t i) {
      return uniform_at(i) * power_of_two(static_cast<int>(i % 10) - 8);
    },
    [](const FormatInfo& format, std::size_t i) {
      const std::size_t half = length / 2, first = i < half ? i : i - half;
      const int binades = 2 * format.precision + 4,
                binade = static_cast<int>(mixed(first + length) % unsigned(binades));
      const double x = uniform_at(first) * power_of_two(-binade);
      return i < half ? x : binade < binades - 4 && first < half ? -x : 0;
    },
    [](const FormatInfo&, std::size_t i) { return 0x1p-6 + static_cast<double>(mixed(i) >> 60) * 0x1p-9; }};

Array golden_data(const FormatInfo& format, Input input) {
  std::vector<double> x(length);
  for (std::size_t i = 0; i < length; ++i) x[i] = input(format, i);
  return {format, x};
}

struct Golden {
  const char* recipe;
  std::uint64_t bits[std::size(inputs)];
};
constexpr Golden golden[] = {
    {"serial/plain/fp16", {0x3ec0, 0xb1f1, 0x5800}},
    {"serial/kahan/fp16", {0x3f68, 0x1a20, 0x69ea}},
    {"serial/neumaier/fp16", {0x3f5a, 0x9780, 0x5c00}},
    {"serial/double_word/fp16", {0x3f71, 0x8028, 0x69ea}},
    {"tree/plain/fp16", {0x3ec0, 0xa400, 0x69ea}},
    {"tree/kahan/fp16", {0x3f8b, 0x1f90, 0x69ea}},
    {"tree/neumaier/fp16", {0x3f71, 0x0200, 0x69ea}},
    {"tree/double_word/fp16", {0x3f71, 0x00d8, 0x69ea}},
    {"pairwise/plain/fp16", {0x3ee8, 0xa780, 0x69ea}},
    {"pairwise/kahan/fp16", {0x3f71, 0x0200, 0x69ea}},
    {"pairwise/neumaier/fp16", {0x3f71, 0x0200, 0x69ea}},
    {"pairwise/double_word/fp16", {0x3f71, 0x8008, 0x69ea}},
    {"serial/plain/bf16", {0x3fcc, 0x408c, 0x4180}},
    {"serial/kahan/bf16", {0xc05c, 0xbcb2, 0x453b}},
    {"serial/neumaier/bf16", {0x3fed, 0x3f60, 0x4200}},
    {"serial/double_word/bf16", {0x3fe3, 0xbaba, 0x453b}},
    {"tree/plain/bf16", {0xc04a, 0x3d90, 0x453d}},
    {"tree/kahan/bf16", {0x3fa8, 0xbc28, 0x453d}},
    {"tree/neumaier/bf16", {0x3fe4, 0xbb80, 0x453d}},
    {"tree/double_word/bf16", {0x3fe3, 0xb9cc, 0x453d}},
    {"pairwise/plain/bf16", {0x4048, 0x3df0, 0x453d}},
    {"pairwise/kahan/bf16", {0x3fe3, 0x3a80, 0x453d}},
    {"pairwise/neumaier/bf16", {0x3fe3, 0x3a80, 0x453d}},
    {"pairwise/double_word/bf16", {0x3fe3, 0x3a3e, 0x453d}},
    {"serial/plain/fp32", {0x3fe516ed, 0x36eda000, 0x453d36b8}},
    {"serial/kahan/fp32", {0x3fe516b3, 0xb5020000, 0x453d36b8}},
    {"serial/neumaier/fp32", {0x3fe516a3, 0x2d700000, 0x453d36b8}},
    {"serial/double_word/fp32", {0x3fe516a3, 0x29f79e35, 0x453d36b8}},
    {"tree/plain/fp32", {0x3fe516f0, 0xb5000000, 0x453d36b8}},
    {"tree/kahan/fp32", {0x3fe516b9, 0x352b7b40, 0x453d36b8}},
    {"tree/neumaier/fp32", {0x3fe516a3, 0x00000000, 0x453d36b8}},
    {"tree/double_word/fp32", {0x3fe516a3, 0x2a5e0000, 0x453d36b8}},
    {"pairwise/plain/fp32", {0x3fe51730, 0x35c00000, 0x453d36b8}},
    {"pairwise/kahan/fp32", {0x3fe516a3, 0x2a000000, 0x453d36b8}},
    {"pairwise/neumaier/fp32", {0x3fe516a3, 0x2a000000, 0x453d36b8}},
    {"pairwise/double_word/fp32", {0x3fe516a3, 0x28200000, 0x453d36b8}},
    {"serial/plain/fp64", {0x3ffca2d47c74b6a7, 0xbd0adfee70000000, 0x40a7a6d700000000}},
    {"serial/kahan/fp64", {0x3ffca2d47c74be0e, 0x3cbc0a3200000000, 0x40a7a6d700000000}},
    {"serial/neumaier/fp64", {0x3ffca2d47c74bdbc, 0x39f8000000000000, 0x40a7a6d700000000}},
    {"serial/double_word/fp64", {0x3ffca2d47c74bdbc, 0x39abb9aee0000000, 0x40a7a6d700000000}},
    {"tree/plain/fp64", {0x3ffca2d47c74be40, 0x3ce4000000000000, 0x40a7a6d700000000}},
    {"tree/kahan/fp64", {0x3ffca2d47c74be0c, 0xbcb2785a8b7628b0, 0x40a7a6d700000000}},
    {"tree/neumaier/fp64", {0x3ffca2d47c74bdbc, 0xb9a0000000000000, 0x40a7a6d700000000}},
    {"tree/double_word/fp64", {0x3ffca2d47c74bdbc, 0xb98b000000000000, 0x40a7a6d700000000}},
    {"pairwise/plain/fp64", {0x3ffca2d47c74bdc8, 0xbcd4000000000000, 0x40a7a6d700000000}},
    {"pairwise/kahan/fp64", {0x3ffca2d47c74bdbc, 0x0000000000000000, 0x40a7a6d700000000}},
    {"pairwise/neumaier/fp64", {0x3ffca2d47c74bdbc, 0x0000000000000000, 0x40a7a6d700000000}},
    {"pairwise/double_word/fp64", {0x3ffca2d47c74bdbc, 0xb96c000000000000, 0x40a7a6d700000000}},
    {"exact/fp16", {0x3f71, 0x8005, 0x69ea}},
    {"exact/bf16", {0x3fe3, 0x3688, 0x453d}},
    {"exact/fp32", {0x3fe516a3, 0x27944b30, 0x453d36b8}},
    {"exact/fp64", {0x3ffca2d47c74bdbc, 0x3945a0f5d95c28a1, 0x40a7a6d700000000}},
};

TEST(TheFrozenOrders, StillGiveTheBitsThatTheyAlwaysGave) {
  for (const Golden& g : golden) {
    const Variant& v = find(g.recipe);
    for (std::size_t i = 0; i < std::size(inputs); ++i)
      EXPECT_EQ(v(golden_data(*v.format, inputs[i]).values()).bits, g.bits[i]) << g.recipe << ", input " << i;
  }
}

TEST(TheFrozenOrders, AreAllPinned) {
  for (const Variant* v : variants_of("cpu", Promise::everywhere))
    EXPECT_TRUE(std::ranges::any_of(golden, [v](const Golden& g) { return g.recipe == recipe_of(*v); }))
        << v->name;
}

// Few inputs suffice if the bits depend on the order: no two orders agree on all of them.
TEST(TheFrozenOrders, AreToldApartByTheGoldenInputs) {
  for (const Golden& a : golden)
    for (const Golden& b : golden) {
      const Variant &of_a = find(a.recipe), &of_b = find(b.recipe);
      if (of_a.accumulator == "plain" && of_b.accumulator == "plain" && of_a.format == of_b.format &&
          of_a.order != of_b.order) {
        EXPECT_FALSE(std::ranges::equal(a.bits, b.bits)) << a.recipe << " and " << b.recipe;
      }
    }
}

}  // namespace
}  // namespace samesum
