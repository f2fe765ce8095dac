#include <cmath>
#include <cstdlib>

#include "support.hpp"

namespace samesum {
namespace {

template <class F> class SmallFormat : public ::testing::Test {};
using SmallFormats = ::testing::Types<fp16, bf16>;
TYPED_TEST_SUITE(SmallFormat, SmallFormats);

/// Returns the value that 16 bits encode, by the formula of IEEE 754-2019, §3.4.
template <class F> double spelled(unsigned bits) {
  constexpr int fraction_bits = Format<F>::precision - 1;
  const int field = static_cast<int>((bits & 0x7fff) >> fraction_bits);
  const double fraction =
      static_cast<double>(bits & ((1u << fraction_bits) - 1)) * power_of_two(-fraction_bits);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (field == 2 * Format<F>::max_exponent + 1)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return field == 0 ? sign * fraction * power_of_two(Format<F>::min_exponent)
                    : sign * (1 + fraction) * power_of_two(field - Format<F>::max_exponent);
}

TYPED_TEST(SmallFormat, WidensEachOfItsValuesExactlyAndConvertsBack) {
  using F = TypeParam;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const F x = from_bits<F>(static_cast<std::uint16_t>(bits));
    const double expected = spelled<F>(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(convert<double>(x)) && std::isnan(convert<float>(x)));
      EXPECT_EQ(convert<F>(convert<float>(x)).bits, Format<F>::canonical_nan);
    } else {
      ASSERT_EQ(to_bits(convert<double>(x)), to_bits(expected)) << bits;
      ASSERT_EQ(to_bits(convert<float>(x)), to_bits(static_cast<float>(expected))) << bits;
      ASSERT_EQ(convert<F>(expected).bits, bits);
      ASSERT_EQ(convert<F>(static_cast<float>(expected)).bits, bits);
      ASSERT_EQ(to_bits(static_cast<double>(x)), to_bits(expected));
    }
  }
}

TYPED_TEST(SmallFormat, RoundsToNearestWithTiesToEvenBetweenAllNeighbours) {
  using F = TypeParam;
  // Between each two neighbours the cases are: just above the lower one, just below the middle, the middle,
  // just above the middle. The neighbour above the largest finite value is the number that would follow it.
  for (unsigned bits = 0; bits < Format<F>::infinity; ++bits) {
    const double low = spelled<F>(bits);
    const double high =
        bits + 1u == Format<F>::infinity ? power_of_two(Format<F>::max_exponent) * 2 : spelled<F>(bits + 1);
    const double middle = (low + high) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    const struct {
      double x;
      unsigned expected;
    } cases[] = {{std::nextafter(low, high), bits},
                 {std::nextafter(middle, low), bits},
                 {middle, even},
                 {std::nextafter(middle, high), bits + 1}};
    for (const auto& c : cases) {
      ASSERT_EQ(convert<F>(c.x).bits, c.expected) << c.x;
      ASSERT_EQ(convert<F>(-c.x).bits, c.expected | 0x8000) << -c.x;
    }
    const float middle_as_float = static_cast<float>(middle);
    ASSERT_EQ(convert<F>(middle_as_float).bits, even);
    ASSERT_EQ(convert<F>(std::nextafter(middle_as_float, 0.0f)).bits, bits);
    ASSERT_EQ(convert<F>(std::nextafter(middle_as_float, std::numeric_limits<float>::infinity())).bits,
              bits + 1);
  }
}

TYPED_TEST(SmallFormat, DoesNotRoundADoubleTwice) {
  using F = TypeParam;
  // The number exceeds a tie by less than a float can represent; rounding to float first would make it a tie.
  const double tie = 1 + Format<F>::unit_roundoff;
  EXPECT_EQ(convert<double>(convert<F>(tie)), 1);
  EXPECT_EQ(convert<double>(convert<F>(tie + 0x1p-40)), 1 + 2 * Format<F>::unit_roundoff);
}

TEST(Fp32, RoundsFromDoubleAsTheProcessorDoes) {
  std::mt19937_64 random{1};
  for (int i = 0; i < testing_support::random_cases(1'000'000); ++i) {
    const double x = from_bits<double>(random());
    if (std::isnan(x)) continue;
    ASSERT_EQ(to_bits(convert<float>(x)), to_bits(static_cast<float>(x))) << x;
    const double near =
        static_cast<double>(from_bits<float>(static_cast<std::uint32_t>(random()))) * (1 + 0x1p-24);
    if (std::isnan(near)) continue;
    ASSERT_EQ(to_bits(convert<float>(near)), to_bits(static_cast<float>(near))) << near;
  }
}

TEST(AFormat, HasTheConstantsOfIeee754) {
  EXPECT_EQ(Format<fp16>::max_finite, 65504);
  EXPECT_EQ(Format<fp16>::smallest_subnormal, 0x1p-24);
  EXPECT_EQ(Format<bf16>::smallest_subnormal, 0x1p-133);
  EXPECT_EQ(Format<fp32>::max_finite, std::numeric_limits<float>::max());
  EXPECT_EQ(Format<fp32>::smallest_subnormal, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(Format<fp64>::max_finite, std::numeric_limits<double>::max());
  EXPECT_EQ(Format<fp64>::smallest_subnormal, std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(Format<fp16>::canonical_nan, 0x7e00);
  EXPECT_EQ(Format<bf16>::canonical_nan, 0x7fc0);
  EXPECT_EQ(Format<fp32>::canonical_nan, 0x7fc00000u);
  EXPECT_EQ(Format<fp64>::canonical_nan, 0x7ff8000000000000u);
}

// --- vector arithmetic compared with the integer definitions -----------------------------------------------

/// Expects packs, which load and round four neighbours at once, to give the bits of convert, which uses
/// integers.
template <class F, class T> void expect_loads_like_convert(const std::vector<T>& x) {
  for (std::size_t i = 0; i + 4 <= x.size(); i += 4) {
    const auto pack = Pack<F, 4>::load(&x[i]);
    for (std::size_t l = 0; l < 4; ++l) {
      const F expected = convert<F>(x[i + l]);
      const F actual = to_format<F>(Scalar<F>{pack.v[l]});
      const F scalar = to_format<F>(Scalar<F>::of(x[i + l]));
      if (is_nan_bits<F>(to_bits(expected))) {
        ASSERT_TRUE(is_nan_bits<F>(to_bits(actual)) && is_nan_bits<F>(to_bits(scalar)));
      } else {
        ASSERT_EQ(to_bits(actual), to_bits(expected)) << convert<double>(x[i + l]);
        ASSERT_EQ(to_bits(scalar), to_bits(expected)) << convert<double>(x[i + l]);
      }
    }
  }
}

/// Returns random bits, with all exponents, NaN and infinities, and numbers near ties of the 16-bit formats.
template <class T> std::vector<T> awkward() {
  std::mt19937_64 random{3};
  std::vector<T> x;
  for (int i = 0; i < testing_support::random_cases(200'000); ++i)
    x.push_back(from_bits<T>(static_cast<BitsOf<T>>(random())));
  for (int i = 0; i < testing_support::random_cases(200'000); ++i) {
    const double small = convert<double>(from_bits<fp16>(static_cast<std::uint16_t>(random())));
    const double shift = static_cast<double>(random() % 8) * Format<fp16>::unit_roundoff / 4;
    const double scale = power_of_two(static_cast<int>(random() % 60) - 30);
    const double tiny = static_cast<double>(random() % 3) - 1;
    if (std::isfinite(small))
      x.push_back(convert<T>(small * (1 + shift) * (random() % 2 ? 1 : scale) * (1 + tiny * 0x1p-50)));
  }
  x.resize(x.size() / 4 * 4);
  return x;
}

TEST(APack, LoadsEveryFormatIntoEveryFormatLikeConvert) {
  Formats::for_each([]<class T>() {
    const std::vector<T> x = awkward<T>();
    Formats::for_each([&]<class F>() { expect_loads_like_convert<F>(x); });
  });
}

TYPED_TEST(SmallFormat, AddsAndSubtractsWithOneRounding) {
  using F = TypeParam;
  std::mt19937_64 random{4};
  for (int i = 0; i < testing_support::random_cases(1'000'000); ++i) {
    const F a = from_bits<F>(static_cast<std::uint16_t>(random())),
            b = from_bits<F>(static_cast<std::uint16_t>(random()));
    const double x = convert<double>(a), y = convert<double>(b);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    // A double holds the sum of any two fp16 numbers. For bf16 it does if the exponents are close; other
    // pairs are skipped.
    if (std::is_same_v<F, bf16> && x != 0 && y != 0 && std::abs(std::ilogb(x) - std::ilogb(y)) > 40) continue;
    ASSERT_EQ(to_format<F>(Scalar<F>::of(a) + Scalar<F>::of(b)).bits, convert<F>(x + y).bits)
        << x << " + " << y;
    ASSERT_EQ(to_format<F>(Scalar<F>::of(a) - Scalar<F>::of(b)).bits, convert<F>(x - y).bits)
        << x << " - " << y;
  }
}

TEST(AllFloats, RoundTo16BitsLikeConvert) {
  if (std::getenv("SAMESUM_LONG_TESTS") == nullptr)
    GTEST_SKIP() << "2^32 floats take minutes; set SAMESUM_LONG_TESTS=1 (a sample is tested above)";
  std::vector<float> x(1 << 16);
  for (std::uint64_t high = 0; high < 0x10000; ++high) {
    for (std::uint64_t low = 0; low < 0x10000; ++low)
      x[low] = from_bits<float>(static_cast<std::uint32_t>(high << 16 | low));
    expect_loads_like_convert<fp16>(x);
    expect_loads_like_convert<bf16>(x);
  }
}

}  // namespace
}  // namespace samesum
