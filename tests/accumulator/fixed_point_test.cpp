#include "samesum/accumulator/fixed_point.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "samesum/accumulator/exact.hpp"
#include "support.hpp"

namespace samesum {
namespace {
namespace fixed_point {

using Integer = boost::multiprecision::cpp_int;

/// A number numerator / denominator · 2^exponent.
struct Quotient {
  Integer numerator, denominator = 1;
  int exponent = 0;
};

Integer integer(Int128 x) { return (Integer{static_cast<std::int64_t>(x.word[1])} << 64) + x.word[0]; }

template <class F> Quotient exactly(F x) {
  const Decomposed d = decompose<F>(to_bits(x));
  const Integer significand = d.significand;
  return {d.negative ? Integer{-significand} : significand, 1, d.exponent};
}

/// The integer nearest to x·2^-grid, ties to even.
Integer to_integer(const Quotient& x, int grid) {
  Integer top = abs(x.numerator), bottom = x.denominator;
  x.exponent > grid ? top <<= x.exponent - grid : bottom <<= grid - x.exponent;
  Integer nearest = top / bottom;
  const Integer twice = (top - nearest * bottom) * 2;
  if (twice > bottom || (twice == bottom && (nearest & 1) != 0)) ++nearest;
  return x.numerator < 0 ? Integer{-nearest} : nearest;
}

/// ⌊log2 |x|⌋ of a number that is not zero.
int exponent(const Quotient& x) {
  Integer top = abs(x.numerator), bottom = x.denominator;
  const int apart = static_cast<int>(msb(top)) - static_cast<int>(msb(bottom));
  apart > 0 ? bottom <<= apart : top <<= -apart;
  return x.exponent + apart - (top < bottom ? 1 : 0);
}

template <class F> BitsOf<F> rounded(const Quotient& x) {
  if (x.numerator == 0) return 0;
  const int quantum = std::max(exponent(x) - Format<F>::precision + 1, Format<F>::min_quantum);
  const Integer kept = to_integer(x, quantum);
  if (kept == 0) return 0;
  return round_to_bits<F>(kept < 0, static_cast<std::uint64_t>(abs(kept)), quantum);
}

Quotient sum(const Quotient& a, const Quotient& b) {
  const int low = std::min(a.exponent, b.exponent);
  return {(a.numerator << (a.exponent - low)) + (b.numerator << (b.exponent - low)), 1, low};
}

/// A finite number of any magnitude, also subnormal.
template <class F> F any_number(std::mt19937_64& random) {
  for (;;) {
    auto bits = static_cast<BitsOf<F>>(random());
    if (random() % 8 == 0) bits = BitsOf<F>(bits & (Format<F>::sign_bit | (Format<F>::infinity >> 5)));
    if (random() % 16 == 0) bits = BitsOf<F>(bits >> (random() % Format<F>::width));
    if (BitsOf<F>(bits & ~Format<F>::sign_bit) < Format<F>::infinity) return from_bits<F>(bits);
  }
}
/// An integer of any length, one in four near a power of two.
Int128 any_integer(std::mt19937_64& random) {
  const bool negative = random() % 2 == 0;
  if (random() % 4 == 0) return Int128::of(negative, (Wide{1} << random() % 127) + Wide{random() % 3} - 1);
  return Int128::of(negative, (Wide{random()} << 63 | random()) >> random() % 127);
}

template <class F> class AFixedPoint : public testing_support::FormatTest<F> {};
using FixedPointFormats = testing::Types<fp16, bf16, fp32, fp64>;
TYPED_TEST_SUITE(AFixedPoint, FixedPointFormats);

TYPED_TEST(AFixedPoint, RoundsSumsOnce) {
  using F = TypeParam;
  std::mt19937_64 random{1};
  for (int i = 0; i < 20000; ++i) {
    const Int128 units = any_integer(random);
    const int grid =
        i % 2 ? static_cast<int>(random() % 2400) - 1300 : static_cast<int>(random() % 300) - 280;
    const std::uint64_t divisor = i % 3 == 0 ? 1 + random() % 100 : random() >> random() % 64 | 1;
    ASSERT_EQ(round_units<F>(units, grid), rounded<F>({integer(units), 1, grid}));
    ASSERT_EQ(round_units<F>(units, grid, divisor), rounded<F>({integer(units), divisor, grid}));
    F held = any_number<F>(random);
    if (i % 5 == 0) {  // nearly cancels
      held = from_bits<F>(round_units<F>(Int128::of(Wide{0} - units.wide()), grid));
      if (special_flags_of(held) != 0) held = F{};
    }
    const auto expected = rounded<F>(sum({integer(units), 1, grid}, exactly(held)));
    ASSERT_EQ((round_sum<F, false>(units, grid, held)), expected) << i;
    ASSERT_EQ((round_sum<F, false>(WideInteger<3>::of(units), grid, held)), expected) << i;
  }
}

TYPED_TEST(AFixedPoint, RoundsTermsToTheGridOnce) {
  using F = TypeParam;
  std::mt19937_64 random{2};
  for (int i = 0; i < testing_support::random_cases(40'000); ++i) {
    const F x = any_number<F>(random), y = any_number<F>(random);
    const Quotient a = exactly(x), b = exactly(y);
    const bool is_product = i % 2 == 1;
    const Quotient term = is_product ? Quotient{a.numerator * b.numerator, 1, a.exponent + b.exponent} : a;
    const int of_term = is_product ? exponent_of_product(x, y) : exponent_of(x);
    ASSERT_EQ(of_term, term.numerator == 0 ? no_exponent : exponent(term));
    const int grid = (term.numerator == 0 ? 0 : of_term) - static_cast<int>(random() % 130) + 3;
    const GridTerm on_grid = is_product ? product_to_grid(x, y, grid) : to_grid(x, grid);
    const Integer expected = to_integer(term, grid);
    int bits = 0;
    for (Integer power = 1; power < abs(expected); power *= 2) ++bits;
    if (bits > 126) {
      ASSERT_GT(on_grid.bits, 126);
    } else {
      ASSERT_EQ(on_grid.bits, bits);
      ASSERT_EQ(integer(on_grid.units), expected);
    }
  }
}

TEST(FoundGrids, NeverOverflowAndAreAsFineAsPossible) {
  for (const int word : {62, 126})
    for (const std::uint64_t n :
         {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1} << 40}) {
      const int grid = found_grid(7, n, word, -1074);
      const double largest = 0x1.fffffffffffffp7;
      GridSum one;
      one.add(largest, grid);
      EXPECT_LE(one.bits, most_term_bits(n));
      EXPECT_TRUE(one.units.magnitude().wide() <= (Wide{1} << word) / n);
      GridSum finer;
      finer.add(largest, grid - 1);
      EXPECT_TRUE(finer.bits > 126 || finer.units.magnitude().wide() * n > Wide{1} << word);
    }
  EXPECT_EQ(found_grid(-1000, 1, 126, -1074), -1074);
  EXPECT_EQ(found_grid(no_exponent, 5, 62, -149), -149);
}

TEST(AGridSum, KnowsSpecialTermsAndOverflow) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto sum = [](std::initializer_list<double> x) {
    GridSum s;
    for (const double element : x) s.add(element, 0);
    return s;
  };
  EXPECT_EQ(sum({1, infinity}).result<double>(0), to_bits(infinity));
  EXPECT_EQ(sum({1, -infinity}).result<double>(0), to_bits(-infinity));
  EXPECT_EQ(sum({infinity, -infinity}).result<double>(0), Format<double>::canonical_nan);
  EXPECT_EQ(sum({nan}).result<double>(0), Format<double>::canonical_nan);
  EXPECT_EQ(sum({-0.0}).result<double>(0), 0u);
  EXPECT_EQ(sum({-0.25}).result<double>(0), 0u);
  EXPECT_EQ(sum({1}).result_with<double>(0, -infinity), to_bits(-infinity));
  EXPECT_EQ(sum({}).result_with<double>(0, -0.0), 0u);
  GridSum product;
  product.add_product(infinity, 0.0, 0);
  EXPECT_EQ(product.flags, std::uint32_t{Exact::seen_nan});
  EXPECT_FALSE(sum({0x1p62}).overflows(1, 62));
  EXPECT_TRUE(sum({0x1p62, 1}).overflows(2, 62));
  EXPECT_FALSE(sum({0x1p62, 1, -1}).overflows(3, 62));
  EXPECT_TRUE(sum({0x1p126, -0x1p126}).overflows(2, 126));
  EXPECT_FALSE(sum({0x1p125, 0x1p125}).overflows(2, 126));
}

}  // namespace fixed_point
}  // namespace
}  // namespace samesum
