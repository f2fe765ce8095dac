#include "harness/truth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <random>

#include "cases.hpp"

namespace samesum::harness {
namespace {

using samesum::testing::Array;
using samesum::testing::Case;
using ::testing::IsNan;

/// A floating-point type wide enough that no sum in this file is rounded.
using Wide = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<2400, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;

Wide to_wide(const BigInteger& x) { return ldexp(Wide{x}, exact_unit); }

template <class F> F random_finite(std::mt19937_64& random) {
  for (;;) {
    const F x = from_bits<F>(static_cast<BitsOf<F>>(random()));
    if (is_finite(Number::of(x))) return x;
  }
}

/// Returns a short random array; most have much cancellation, ties and subnormals.
template <class F> std::vector<F> random_array(std::mt19937_64& random) {
  std::vector<F> x(random() % 12);
  for (F& element : x) {
    element = random_finite<F>(random);
    const auto style = random() % 4;
    const BitsOf<F> kept =
        static_cast<BitsOf<F>>(~BitsOf<F>{0} << (Format<F>::precision - 1 - int(random() % 3)));
    if (style == 0)
      element = from_bits<F>(static_cast<BitsOf<F>>(to_bits(element) & kept));  // few bits: ties
    if (style == 1) element = from_bits<F>(static_cast<BitsOf<F>>(to_bits(element) & ~Format<F>::infinity));
    if (style == 2 && &element != x.data())
      element = from_bits<F>(static_cast<BitsOf<F>>(to_bits(x.front()) ^ Format<F>::sign_bit));
  }
  return x;
}

/// Returns the magnitude `steps` places after x. The bits of the magnitudes of a format are consecutive
/// integers.
Number neighbour(Number x, std::int64_t steps) {
  return {x.format, x.bits + static_cast<std::uint64_t>(steps)};
}

Number magnitude(Number x) { return {x.format, x.bits & ~x.format->sign_bit}; }

/// Checks rounding to nearest, ties to even, without rounding anything: no neighbour is nearer, and a
/// neighbour at the same distance is odd. Infinity counts as the number that follows the largest finite one.
void expect_nearest(const BigInteger& sum, Number rounded) {
  const FormatInfo& format = *rounded.format;
  const BigInteger past_the_end = BigInteger{1} << (format.max_exponent + 1 - exact_unit);
  const auto value = [&](Number x) { return x.bits == format.infinity ? past_the_end : exact_value(x); };
  const BigInteger target = abs(sum);
  const Number at = magnitude(rounded);
  const BigInteger distance = abs(value(at) - target);
  EXPECT_TRUE(sum == 0 || (sum < 0) == ((rounded.bits & format.sign_bit) != 0));
  if (at.bits == format.infinity && target >= past_the_end) return;
  for (const int step : {-1, 1}) {
    if ((step < 0 && at.bits == 0) || (step > 0 && at.bits == format.infinity)) continue;
    const BigInteger other = abs(value(neighbour(at, step)) - target);
    EXPECT_LE(distance, other);
    EXPECT_TRUE(distance != other || at.bits % 2 == 0) << "a tie goes to the even neighbour";
  }
}

template <class F> class TruthOf : public ::testing::Test {};
using AllFormats = ::testing::Types<fp16, bf16, fp32, fp64>;
TYPED_TEST_SUITE(TruthOf, AllFormats);

TYPED_TEST(TruthOf, RandomArraysIsTheSumInABinaryFloatOf2400Bits) {
  std::mt19937_64 random{1};
  for (int i = 0; i < 20000; ++i) {
    const auto x = random_array<TypeParam>(random);
    Wide sum = 0, magnitudes = 0;
    for (const TypeParam element : x) {
      const double value = Number::of(element).to_double();
      sum += value;
      magnitudes += std::abs(value);
    }
    const Truth truth{x};
    ASSERT_TRUE(to_wide(truth.value()) == sum);
    ASSERT_TRUE(to_wide(truth.magnitudes()) == magnitudes);
  }
}

TYPED_TEST(TruthOf, ALongArrayIsTheSumInABinaryFloatOf2400Bits) {
  std::mt19937_64 random{2};
  std::vector<TypeParam> x(100000);
  std::generate(x.begin(), x.end(), [&] { return random_finite<TypeParam>(random); });
  Wide sum = 0;
  for (const TypeParam element : x) sum += Number::of(element).to_double();
  EXPECT_TRUE(to_wide(Truth{x}.value()) == sum);
}

TYPED_TEST(TruthOf, PortionsIsThatOfTheWhole) {
  std::mt19937_64 random{5};
  for (int i = 0; i < 1000; ++i) {
    const auto x = random_array<TypeParam>(random);
    const Truth whole{x};
    Truth portions;
    for (std::size_t first = 0, n; first < x.size(); first += n) {
      n = std::min<std::size_t>(1 + random() % 7, x.size() - first);
      portions.add(std::span{x}.subspan(first, n));
    }
    EXPECT_EQ(portions.size(), whole.size());
    EXPECT_EQ(portions.value(), whole.value());
    EXPECT_EQ(portions.magnitudes(), whole.magnitudes());
    EXPECT_EQ(portions.rounded(format_info<fp64>()), whole.rounded(format_info<fp64>()));
  }
}

TYPED_TEST(TruthOf, ManyEqualElementsOverflowsNoBucket) {
  const TypeParam largest = convert<TypeParam>(Format<TypeParam>::max_finite);
  const std::vector<TypeParam> x(1 << 20, largest);
  const Truth truth{x};
  EXPECT_EQ(truth.value(), exact_value(Number::of(largest)) << 20);
  EXPECT_EQ(truth.magnitudes(), truth.value());
}

TYPED_TEST(TruthOf, RandomArraysIsRoundedToNearestInEveryFormat) {
  std::mt19937_64 random{3};
  for (int i = 0; i < 20000; ++i) {
    const auto x = random_array<TypeParam>(random);
    const Truth truth{x};
    for (const FormatInfo& format : formats) expect_nearest(truth.value(), truth.rounded(format));
  }
}

TYPED_TEST(TruthOf, ASingleElementIsThatElement) {
  std::mt19937_64 random{4};
  for (int i = 0; i < 20000; ++i) {
    const std::vector<TypeParam> x{random_finite<TypeParam>(random)};
    ASSERT_EQ(Truth{x}.rounded(format_info<TypeParam>()), Number::of(x[0]));
    ASSERT_EQ(Truth{x}.error_of(Number::of(x[0])).absolute, 0);
  }
}

class TruthOfCase : public ::testing::TestWithParam<Case> {};

TEST_P(TruthOfCase, IsTheKnownAnswer) {
  const Array array = GetParam().array();
  const Number expected = GetParam().expected();
  const Truth truth{array.values()};
  EXPECT_EQ(truth.rounded(*expected.format), expected)
      << truth.rounded(*expected.format).to_double() << " is not " << expected.to_double();
  EXPECT_LE(truth.error_of(expected).ulps, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Cases, TruthOfCase, ::testing::ValuesIn(samesum::testing::cases()));

// --- rounding to another format than the input's -------------------------------------------------

struct Conversion {
  std::string name;
  std::vector<double> x;
  const FormatInfo* to;
  double sum;
};
std::ostream& operator<<(std::ostream& out, const Conversion& c) { return out << c.name; }

class TruthIn : public ::testing::TestWithParam<Conversion> {};

TEST_P(TruthIn, IsRoundedOnce) {
  const Array array{format_info<fp64>(), GetParam().x};
  EXPECT_EQ(Truth{array.values()}.rounded(*GetParam().to).to_double(), GetParam().sum);
}

INSTANTIATE_TEST_SUITE_P(
    AnotherFormat, TruthIn,
    ::testing::Values(
        Conversion{"a tie in fp32 broken below the last bit of fp64",
                   {1, 0x1p-24, 0x1p-80},
                   &format_info<fp32>(),
                   1 + 0x1p-23},
        Conversion{
            "a tie in fp16 that fp32 would create", {1, 0x1p-11, 0x1p-40}, &format_info<fp16>(), 1 + 0x1p-10},
        Conversion{
            "a tie in bf16 that fp32 would create", {1, 0x1p-8, 0x1p-40}, &format_info<bf16>(), 1 + 0x1p-7},
        Conversion{"half of the smallest fp32", {0x1p-150}, &format_info<fp32>(), 0},
        Conversion{
            "more than half of the smallest fp32", {0x1p-150, 0x1p-1074}, &format_info<fp32>(), 0x1p-149},
        Conversion{"far below the smallest fp16", {-0x1p-1074}, &format_info<fp16>(), 0},
        Conversion{"65519.999 in fp16", {65519, 0.999}, &format_info<fp16>(), 65504},
        Conversion{"65520 in fp16", {65520}, &format_info<fp16>(), HUGE_VAL},
        Conversion{"half an ulp beyond the largest fp32", {0x1.ffffffp127}, &format_info<fp32>(), HUGE_VAL}));

// --- errors --------------------------------------------------------------------------------------

TEST(AnErrorInUlps, IsMeasuredFromTheUnroundedSum) {
  const std::vector<double> x{1, 0x1p-54};
  EXPECT_EQ(Truth{x}.error_of(Number::of(1.0)).ulps, 0.25);
  EXPECT_EQ(Truth{x}.error_of(Number::of(1 + 0x1p-52)).ulps, 0.75);
  EXPECT_EQ(Truth{x}.error_of(Number::of(1.0f)).ulps, 0x1p-31);
}

TEST(AnErrorInUlps, CountsSmallestSubnormalsNearZero) {
  const std::vector<float> x{1, 0x1p-149f, -1};
  EXPECT_EQ(Truth{x}.error_of(Number::of(0.0f)).ulps, 1);
  EXPECT_EQ(Truth{x}.error_of(Number::of(0x1p-126f)).ulps, 0x1p23 - 1);
  const std::vector<float> zero{1, -1};
  EXPECT_EQ(Truth{zero}.error_of(Number::of(fp16{0x1p-24f})).ulps, 1);
}

TEST(AnErrorInUlps, CountsUlpsOfTheRoundedSum) {
  const std::vector<double> x{2, -0x1p-54};  // rounds to 2, whose ulp is twice that of the numbers below
  EXPECT_EQ(Truth{x}.error_of(Number::of(2.0)).ulps, 0.125);
}

TEST(ARelativeError, IsInfiniteOnlyWhereTheSumIsZeroAndTheResultIsNot) {
  const std::vector<double> x{3, -3};
  EXPECT_EQ(Truth{x}.error_of(Number::of(0.0)).relative, 0);
  EXPECT_EQ(Truth{x}.error_of(Number::of(-0.0)).relative, 0);
  EXPECT_EQ(Truth{x}.error_of(Number::of(1e-300)).relative, HUGE_VAL);
  const std::vector<double> y{4};
  EXPECT_EQ(Truth{y}.error_of(Number::of(5.0)).relative, 0.25);
}

TEST(AnAbsoluteError, IsRoundedUp) {
  const std::vector<double> x{0x1p53, 1, 0x1p-40};
  EXPECT_EQ(Truth{x}.error_of(Number::of(0.0)).absolute, 0x1p53 + 2);
  EXPECT_EQ((Truth{std::vector<double>{1, 0x1p-1074}}.error_of(Number::of(0.0)).absolute), 1 + 0x1p-52);
}

TEST(TheErrorForASpecialValue, IsZeroIfTheResultIsEqualAndInfiniteOtherwise) {
  const std::vector<double> x{HUGE_VAL, 1};
  const Truth truth{x};
  EXPECT_EQ(truth.error_of(Number::of(HUGE_VAL)).absolute, 0);
  for (const double other : {-HUGE_VAL, std::nan(""), 1.0}) {
    EXPECT_EQ(truth.error_of(Number::of(other)).ulps, HUGE_VAL);
    EXPECT_FALSE(truth.within(1e300, Number::of(other)));
  }
  EXPECT_TRUE(truth.within(0, Number::of(HUGE_VAL)));
}

TEST(TheErrorOfACorrectOverflow, IsZeroUlpsAndAnInfiniteDistance) {
  const std::vector<fp16> x(2, fp16{40000.0});
  const Error error = Truth{x}.error_of(Number::of(fp16{HUGE_VAL}));
  EXPECT_EQ(error.ulps, 0);
  EXPECT_EQ(error.absolute, HUGE_VAL);
  EXPECT_EQ(Truth{x}.error_of(Number::of(80000.0f)).absolute, 0);
}

TEST(Within, ComparesWithoutRounding) {
  const std::vector<double> x{1, 0x1p-60};
  const Truth truth{x};
  EXPECT_TRUE(truth.within(0x1p-60, Number::of(1.0)));
  EXPECT_FALSE(truth.within(std::nextafter(0x1p-60, 0), Number::of(1.0)));
  EXPECT_TRUE(truth.within(HUGE_VAL, Number::of(std::nan(""))));
  EXPECT_FALSE(truth.within(std::nan(""), Number::of(1.0)));
  EXPECT_FALSE(truth.within(1, Number::of(HUGE_VAL)));
}

// --- other properties ------------------------------------------------------------------------------

TEST(Condition, IsTheSumOfMagnitudesOverTheMagnitudeOfTheSum) {
  EXPECT_EQ((Truth{std::vector<double>{3, -1}}.condition()), 2);
  EXPECT_EQ((Truth{std::vector<double>{-1, -2}}.condition()), 1);
  EXPECT_EQ((Truth{std::vector<double>{1e300, -1e300, 1e-300}}.condition()), HUGE_VAL)
      << "2e600 exceeds the range of fp64";
  EXPECT_EQ((Truth{std::vector<double>{1, -1}}.condition()), HUGE_VAL);
  EXPECT_THAT((Truth{std::vector<double>{0, -0.0}}.condition()), IsNan());
  EXPECT_THAT((Truth{std::vector<double>{}}.condition()), IsNan());
  EXPECT_THAT((Truth{std::vector<double>{HUGE_VAL}}.condition()), IsNan());
}

TEST(SumOfMagnitudes, IsRoundedUp) {
  EXPECT_EQ((Truth{std::vector<double>{1, -0x1p-60}}.magnitudes_rounded_up()), 1 + 0x1p-52);
  EXPECT_EQ((Truth{std::vector<double>{1, -2}}.magnitudes_rounded_up()), 3);
  EXPECT_EQ((Truth{std::vector<double>{1.7e308, -1.7e308}}.magnitudes_rounded_up()), HUGE_VAL);
  EXPECT_EQ((Truth{std::vector<double>{HUGE_VAL}}.magnitudes_rounded_up()), HUGE_VAL);
  EXPECT_EQ((Truth{std::vector<double>{}}.magnitudes_rounded_up()), 0);
}

TEST(Truth, CountsElementsThatAreNotFinite) {
  const Truth truth{std::vector<float>{1, NAN, -INFINITY, -NAN, INFINITY, INFINITY}};
  EXPECT_EQ(truth.nans(), 2u);
  EXPECT_EQ(truth.infinities(), 3u);
  EXPECT_EQ(truth.size(), 6u);
  EXPECT_EQ(to_wide(truth.value()), 1);
}

TEST(AQuotient, IsCorrectlyRounded) {
  std::mt19937_64 random{5};
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t a = random() >> 11 >> (random() % 50), b = (random() >> 11 >> (random() % 50)) + 1;
    ASSERT_EQ(quotient(a, b), static_cast<double>(a) / static_cast<double>(b)) << a << " / " << b;
  }
  EXPECT_EQ(quotient(BigInteger{1} << 3000, 1), HUGE_VAL);
  EXPECT_EQ(quotient(3, BigInteger{1} << 1075), 0x1p-1073) << "a tie between subnormals goes to the even one";
  EXPECT_EQ(quotient(1, BigInteger{1} << 3000), 0);
}

TEST(EveryNumberOf16Bits, HasItsExactValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    for (const FormatInfo* format : {&format_info<fp16>(), &format_info<bf16>()}) {
      const Number x{format, bits};
      ASSERT_TRUE(!is_finite(x) || to_wide(exact_value(x)) == x.to_double());
    }
}

}  // namespace
}  // namespace samesum::harness
