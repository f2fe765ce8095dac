/// Golden bits: a few sums by every order and accumulator, of data made from integers. A change breaks users
/// who compare results of two versions; see lib/DECISIONS.md before you change anything here.
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

constexpr std::size_t length = 100'003;  ///< many leaves, the last one partial

/// Returns an integer that looks random and is the same on every platform.
std::uint64_t mixed(std::size_t i) { return (i + 1) * 0x9e3779b97f4a7c15u; }

/// Returns a number in [-1, 1).
double uniform_at(std::size_t i) {
  return static_cast<double>(static_cast<std::int64_t>(mixed(i)) >> 11) * 0x1p-52;
}

/// The inputs, in the order of the columns of `golden`: numbers over ten binades; numbers over twice as many
/// binades as the format has digits, of which all but the small ones cancel, so that no accumulator gets all
/// bits right; positive numbers, whose sums stagnate in 16 bits.
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

/// Returns a digest of many short sums whose terms are often half an ulp or far smaller, so that roundings
/// tie.
std::uint64_t digest_of_ties(const Method& m) {
  const FormatInfo& format = input_of(m);
  std::uint64_t digest = 0;
  for (std::size_t k = 0; k < 2000; ++k) {
    std::vector<double> x(2 + k % 9);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint64_t random = mixed(16 * k + i) >> 32;
      const double part = power_of_two(-static_cast<int>(random % 3) * format.precision);
      x[i] = (random & 64 ? -part : part) * static_cast<double>(1 + random / 128 % 3);
    }
    digest = digest * 0x9e3779b97f4a7c15u + m(Array{format, x}.values()).bits;
  }
  return digest;
}

struct Golden {
  const char* name;
  std::uint64_t bits[std::size(inputs)];
  std::uint64_t ties;
};
constexpr Golden golden[] = {
    {"serial/plain/fp16", {0x3ec0, 0xb1f1, 0x5800}, 0x6ac164f15d762cc8},
    {"serial/kahan/fp16", {0x3f68, 0x1a20, 0x69ea}, 0xf51f15bace974fbf},
    {"serial/neumaier/fp16", {0x3f5a, 0x9780, 0x5c00}, 0x76c7a6d714631fa7},
    {"serial/double_word/fp16", {0x3f71, 0x8028, 0x69ea}, 0x1401391e37693a43},
    {"tree/plain/fp16", {0x3ec0, 0xa400, 0x69ea}, 0x88d1302f11d14536},
    {"tree/kahan/fp16", {0x3f8b, 0x1f90, 0x69ea}, 0x8b6380cb0b42beff},
    {"tree/neumaier/fp16", {0x3f71, 0x0200, 0x69ea}, 0x8b6380cb0b42beff},
    {"tree/double_word/fp16", {0x3f71, 0x00d8, 0x69ea}, 0xc5b83979a2ee85d2},
    {"pairwise/plain/fp16", {0x3ee8, 0xa780, 0x69ea}, 0x88d1302f11d14536},
    {"pairwise/kahan/fp16", {0x3f71, 0x0200, 0x69ea}, 0x8b6380cb0b42beff},
    {"pairwise/neumaier/fp16", {0x3f71, 0x0200, 0x69ea}, 0x8b6380cb0b42beff},
    {"pairwise/double_word/fp16", {0x3f71, 0x8008, 0x69ea}, 0xc5b83979a2ee85d2},
    {"serial/plain/bf16", {0x3fcc, 0x408c, 0x4180}, 0x5dea7ffd99148b6c},
    {"serial/kahan/bf16", {0xc05c, 0xbcb2, 0x453b}, 0x4e69295bdb70bae3},
    {"serial/neumaier/bf16", {0x3fed, 0x3f60, 0x4200}, 0x60ca1f95161cf227},
    {"serial/double_word/bf16", {0x3fe3, 0xbaba, 0x453b}, 0xfe03b1dc39230cc3},
    {"tree/plain/bf16", {0xc04a, 0x3d90, 0x453d}, 0x171641f7692201da},
    {"tree/kahan/bf16", {0x3fa8, 0xbc28, 0x453d}, 0x7565f9890cfc917f},
    {"tree/neumaier/bf16", {0x3fe4, 0xbb80, 0x453d}, 0x7565f9890cfc917f},
    {"tree/double_word/bf16", {0x3fe3, 0xb9cc, 0x453d}, 0xafbab237a4a85852},
    {"pairwise/plain/bf16", {0x4048, 0x3df0, 0x453d}, 0x171641f7692201da},
    {"pairwise/kahan/bf16", {0x3fe3, 0x3a80, 0x453d}, 0x7565f9890cfc917f},
    {"pairwise/neumaier/bf16", {0x3fe3, 0x3a80, 0x453d}, 0x7565f9890cfc917f},
    {"pairwise/double_word/bf16", {0x3fe3, 0x3a3e, 0x453d}, 0xafbab237a4a85852},
    {"serial/plain/fp32", {0x3fe516ed, 0x36eda000, 0x453d36b8}, 0xd219557dfaff58ec},
    {"serial/kahan/fp32", {0x3fe516b3, 0xb5020000, 0x453d36b8}, 0x39d69c63c9fe1123},
    {"serial/neumaier/fp32", {0x3fe516a3, 0x2d700000, 0x453d36b8}, 0x3b5422c5cc1e5de7},
    {"serial/double_word/fp32", {0x3fe516a3, 0x29f79e35, 0x453d36b8}, 0xd88db50cef247883},
    {"tree/plain/fp32", {0x3fe516f0, 0xb5000000, 0x453d36b8}, 0x71b43a75dd73965a},
    {"tree/kahan/fp32", {0x3fe516b9, 0x352b7b40, 0x453d36b8}, 0x4feffcb9c2fdfd3f},
    {"tree/neumaier/fp32", {0x3fe516a3, 0x00000000, 0x453d36b8}, 0x4feffcb9c2fdfd3f},
    {"tree/double_word/fp32", {0x3fe516a3, 0x2a5e0000, 0x453d36b8}, 0x8a44b5685aa9c412},
    {"pairwise/plain/fp32", {0x3fe51730, 0x35c00000, 0x453d36b8}, 0x71b43a75dd73965a},
    {"pairwise/kahan/fp32", {0x3fe516a3, 0x2a000000, 0x453d36b8}, 0x4feffcb9c2fdfd3f},
    {"pairwise/neumaier/fp32", {0x3fe516a3, 0x2a000000, 0x453d36b8}, 0x4feffcb9c2fdfd3f},
    {"pairwise/double_word/fp32", {0x3fe516a3, 0x28200000, 0x453d36b8}, 0x8a44b5685aa9c412},
    {"serial/plain/fp64", {0x3ffca2d47c74b6a7, 0xbd0adfee70000000, 0x40a7a6d700000000}, 0xfd930950087f58ec},
    {"serial/kahan/fp64", {0x3ffca2d47c74be0e, 0x3cbc0a3200000000, 0x40a7a6d700000000}, 0x06bbf405c03e1123},
    {"serial/neumaier/fp64",
     {0x3ffca2d47c74bdbc, 0x39f8000000000000, 0x40a7a6d700000000},
     0x38a1652837de5de7},
    {"serial/double_word/fp64",
     {0x3ffca2d47c74bdbc, 0x39abb9aee0000000, 0x40a7a6d700000000},
     0xd5daf76f5ae47883},
    {"tree/plain/fp64", {0x3ffca2d47c74be40, 0x3ce4000000000000, 0x40a7a6d700000000}, 0x066798d061f3965a},
    {"tree/kahan/fp64", {0x3ffca2d47c74be0c, 0xbcb2785a8b7628b0, 0x40a7a6d700000000}, 0x4d3d3f1c2ebdfd3f},
    {"tree/neumaier/fp64", {0x3ffca2d47c74bdbc, 0xb9a0000000000000, 0x40a7a6d700000000}, 0x4d3d3f1c2ebdfd3f},
    {"tree/double_word/fp64",
     {0x3ffca2d47c74bdbc, 0xb98b000000000000, 0x40a7a6d700000000},
     0x8791f7cac669c412},
    {"pairwise/plain/fp64", {0x3ffca2d47c74bdc8, 0xbcd4000000000000, 0x40a7a6d700000000}, 0x066798d061f3965a},
    {"pairwise/kahan/fp64", {0x3ffca2d47c74bdbc, 0x0000000000000000, 0x40a7a6d700000000}, 0x4d3d3f1c2ebdfd3f},
    {"pairwise/neumaier/fp64",
     {0x3ffca2d47c74bdbc, 0x0000000000000000, 0x40a7a6d700000000},
     0x4d3d3f1c2ebdfd3f},
    {"pairwise/double_word/fp64",
     {0x3ffca2d47c74bdbc, 0xb96c000000000000, 0x40a7a6d700000000},
     0x8791f7cac669c412},
    {"canonical16/plain/fp16", {0x3f52, 0x1c00, 0x69ea}, 0x39686072dac52265},
    {"canonical16/kahan/fp16", {0x3f71, 0x0080, 0x69ea}, 0xb547afec01bf8501},
    {"canonical16/neumaier/fp16", {0x3f71, 0x0080, 0x69ea}, 0xb547afec01bf8501},
    {"canonical16/double_word/fp16", {0x3f71, 0x0002, 0x69ea}, 0xe148e1c5cf67c36c},
    {"canonical128/plain/fp16", {0x3f1c, 0x9c00, 0x69ea}, 0x39686072dac52265},
    {"canonical128/kahan/fp16", {0x3f71, 0x8100, 0x69ea}, 0xb547afec01bf8501},
    {"canonical128/neumaier/fp16", {0x3f71, 0x8100, 0x69ea}, 0xb547afec01bf8501},
    {"canonical128/double_word/fp16", {0x3f71, 0x800a, 0x69ea}, 0xe148e1c5cf67c36c},
    {"canonical16/plain/bf16", {0x3f8a, 0xbd80, 0x453e}, 0x821beed47ed17831},
    {"canonical16/kahan/bf16", {0x3fe2, 0x3a80, 0x453d}, 0x9f4a28aa03795781},
    {"canonical16/neumaier/bf16", {0x3fe2, 0x3a80, 0x453d}, 0x9f4a28aa03795781},
    {"canonical16/double_word/bf16", {0x3fe3, 0x3890, 0x453d}, 0xcb4b5a83d12195ec},
    {"canonical128/plain/bf16", {0x4052, 0x3e00, 0x453e}, 0x821beed47ed17831},
    {"canonical128/kahan/bf16", {0x3fe4, 0x3a80, 0x453d}, 0x9f4a28aa03795781},
    {"canonical128/neumaier/bf16", {0x3fe4, 0x3a80, 0x453d}, 0x9f4a28aa03795781},
    {"canonical128/double_word/bf16", {0x3fe3, 0x3a12, 0x453d}, 0xcb4b5a83d12195ec},
    {"canonical16/plain/fp32", {0x3fe516ea, 0x35a80000, 0x453d36b8}, 0x2b24fc3054396511},
    {"canonical16/kahan/fp32", {0x3fe516a3, 0xaa800000, 0x453d36b8}, 0x79d42bdab97ac341},
    {"canonical16/neumaier/fp32", {0x3fe516a3, 0xaa800000, 0x453d36b8}, 0x79d42bdab97ac341},
    {"canonical16/double_word/fp32", {0x3fe516a3, 0xa94e0000, 0x453d36b8}, 0xa5d55db4872301ac},
    {"canonical128/plain/fp32", {0x3fe51724, 0x35e00000, 0x453d36b8}, 0x2b24fc3054396511},
    {"canonical128/kahan/fp32", {0x3fe516a3, 0xaa800000, 0x453d36b8}, 0x79d42bdab97ac341},
    {"canonical128/neumaier/fp32", {0x3fe516a3, 0xaa800000, 0x453d36b8}, 0x79d42bdab97ac341},
    {"canonical128/double_word/fp32", {0x3fe516a3, 0x29c00000, 0x453d36b8}, 0xa5d55db4872301ac},
    {"canonical16/plain/fp64",
     {0x3ffca2d47c74bd9a, 0x0000000000000000, 0x40a7a6d700000000},
     0x2722f49961196511},
    {"canonical16/kahan/fp64",
     {0x3ffca2d47c74bdbc, 0x39a8000000000000, 0x40a7a6d700000000},
     0x77216e3d253ac341},
    {"canonical16/neumaier/fp64",
     {0x3ffca2d47c74bdbc, 0x39a8000000000000, 0x40a7a6d700000000},
     0x77216e3d253ac341},
    {"canonical16/double_word/fp64",
     {0x3ffca2d47c74bdbc, 0x39a0000000000000, 0x40a7a6d700000000},
     0xa322a016f2e301ac},
    {"canonical128/plain/fp64",
     {0x3ffca2d47c74bdc8, 0xbcf4000000000000, 0x40a7a6d700000000},
     0x2722f49961196511},
    {"canonical128/kahan/fp64",
     {0x3ffca2d47c74bdbc, 0x0000000000000000, 0x40a7a6d700000000},
     0x77216e3d253ac341},
    {"canonical128/neumaier/fp64",
     {0x3ffca2d47c74bdbc, 0x0000000000000000, 0x40a7a6d700000000},
     0x77216e3d253ac341},
    {"canonical128/double_word/fp64",
     {0x3ffca2d47c74bdbc, 0x3968000000000000, 0x40a7a6d700000000},
     0xa322a016f2e301ac},
    {"prefix/plain/fp16", {0x3f9a, 0x2040, 0x69ea}, 0x414bdf8bc5562535},
    {"prefix/kahan/fp16", {0x3f81, 0x1b20, 0x69ea}, 0xae2d79cc75b994d3},
    {"prefix/neumaier/fp16", {0x3f71, 0x0000, 0x69ea}, 0x7889520de70ca089},
    {"prefix/double_word/fp16", {0x3f71, 0x0041, 0x69ea}, 0xe148e1c5cf67c36c},
    {"prefix/plain/bf16", {0x4000, 0x3f06, 0x453d}, 0xb06e02c7258b62ad},
    {"prefix/kahan/bf16", {0x3fd3, 0x3c80, 0x453d}, 0x4cb7c5287d1d9563},
    {"prefix/neumaier/bf16", {0x3fe3, 0x0000, 0x453d}, 0x628bcacbe8c67309},
    {"prefix/double_word/bf16", {0x3fe3, 0x3a97, 0x453d}, 0xcb4b5a83d12195ec},
    {"prefix/plain/fp32", {0x3fe516c2, 0xb5400000, 0x453d36b8}, 0x0415760ca76bfd0d},
    {"prefix/kahan/fp32", {0x3fe5168b, 0x333cda48, 0x453d36b8}, 0xa013c1054e539723},
    {"prefix/neumaier/fp32", {0x3fe516a3, 0xa9800000, 0x453d36b8}, 0x3d15cdfc9ec7dec9},
    {"prefix/double_word/fp32", {0x3fe516a3, 0xa9640000, 0x453d36b8}, 0xa5d55db4872301ac},
    {"prefix/plain/fp64", {0x3ffca2d47c74be2a, 0x3cb2000000000000, 0x40a7a6d700000000}, 0x902d162429cbfd0d},
    {"prefix/kahan/fp64", {0x3ffca2d47c74bdbd, 0xbcb0c1a9b95f48bd, 0x40a7a6d700000000}, 0x57a8e21448139723},
    {"prefix/neumaier/fp64",
     {0x3ffca2d47c74bdbc, 0x39b0000000000000, 0x40a7a6d700000000},
     0x3a63105f0a87dec9},
    {"prefix/double_word/fp64",
     {0x3ffca2d47c74bdbc, 0x3997200000000000, 0x40a7a6d700000000},
     0xa322a016f2e301ac},
    {"exact/fp16", {0x3f71, 0x8005, 0x69ea}, 0xd3cc49b9c4359390},
    {"exact/bf16", {0x3fe3, 0x3688, 0x453d}, 0xbdcec277c5ef6610},
    {"exact/fp32", {0x3fe516a3, 0x27944b30, 0x453d36b8}, 0x9858c5a87bf0d1d0},
    {"exact/fp64", {0x3ffca2d47c74bdbc, 0x3945a0f5d95c28a1, 0x40a7a6d700000000}, 0x95a6080ae7b0d1d0},
    {"fixed_point/fp16", {0x3f71, 0x8005, 0x69ea}, 0xd3cc49b9c4359390},
    {"fixed_point/bf16", {0x3fe3, 0x3688, 0x453d}, 0xbdcec277c5ef6610},
    {"fixed_point/fp32", {0x3fe516a3, 0x00000000, 0x453d36b8}, 0x9858c5a87bf0d1d0},
    {"fixed_point/fp64", {0x3ffca2d47c74bdbc, 0x3938000000000000, 0x40a7a6d700000000}, 0x95a6080ae7b0d1d0},
    {"hopper/fp32", {0x3fee2c00, 0xb5000000, 0x453d36b8}, 0xe9f29370fbecf109},
};

TEST(TheFrozenOrders, HaveTheirGoldenBits) {
  for (const Golden& g : golden) {
    const Method& m = find(g.name);
    for (std::size_t i = 0; i < std::size(inputs); ++i)
      EXPECT_EQ(m(golden_data(input_of(m), inputs[i]).values()).bits, g.bits[i]) << g.name << ", input " << i;
    EXPECT_EQ(digest_of_ties(m), g.ties) << g.name;
  }
}

TEST(TheFrozenOrders, AllHaveGoldenBits) {
  for (const Method* m : sums_of("cpu", Promise::everywhere))
    EXPECT_TRUE(std::ranges::any_of(golden, [m](const Golden& g) { return g.name == short_name(*m); }))
        << m->name;
}

// A few inputs suffice if the bits depend on the order: no two orders agree on all of them.
TEST(TheFrozenOrders, DifferOnTheGoldenInputs) {
  for (const Golden& a : golden)
    for (const Golden& b : golden) {
      const Method &of_a = find(a.name), &of_b = find(b.name);
      if (of_a.accumulator == "plain" && of_b.accumulator == "plain" && of_a.format == of_b.format &&
          of_a.order != of_b.order) {
        EXPECT_FALSE(std::ranges::equal(a.bits, b.bits)) << a.name << " and " << b.name;
      }
    }
}

}  // namespace
}  // namespace samesum
