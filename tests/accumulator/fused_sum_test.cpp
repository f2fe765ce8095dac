/// Tests the model of matrix units on sums that can be checked by hand, and against exact arithmetic.
#include "samesum/accumulator/fused_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "samesum/accumulator/dyadic.hpp"

namespace samesum::fused_sum {
namespace {

constexpr int n = 16;

/// Sixteen products of fp16 as words.
struct Products {
  std::array<std::uint32_t, n / 2> a{}, b{};
  Products& set(int k, double x, double y) {
    a[std::size_t(k / 2)] |= std::uint32_t(fp16{x}.bits) << (k % 2 * 16);
    b[std::size_t(k / 2)] |= std::uint32_t(fp16{y}.bits) << (k % 2 * 16);
    return *this;
  }
};

float sum_of(const Products& p, float c, const FusedSum& parameters = {}) {
  return from_bits<float>(fused_dot<element::fp16, float, n>(p.a.data(), p.b.data(), to_bits(c), parameters));
}

FusedSum with(auto member, auto value) {
  FusedSum p;
  p.*member = value;
  return p;
}

TEST(AFusedSum, KeepsBitsBelowTheLargestExponent) {
  for (const int bits : {24, 25, 26}) {
    const FusedSum p = with(&FusedSum::fraction_bits, bits);
    const auto left = [&](int e) {
      return sum_of(
          Products{}.set(0, 1, 1).set(1, -1, 1).set(2, std::ldexp(1, e / 2), std::ldexp(1, e - e / 2)), 0, p);
    };
    EXPECT_EQ(left(-bits), std::ldexp(1.f, -bits));
    EXPECT_EQ(left(-bits - 1), 0);
  }
}

TEST(AFusedSum, CutsEachTermBeforeItAdds) {
  // 3/2 units of the last bit that is kept, twice, with either sign
  const double unit = std::ldexp(1, -12);
  for (const double sign : {1., -1.}) {
    const Products p = Products{}
                           .set(0, 1, 1)
                           .set(1, -1, 1)
                           .set(2, 1.5 * unit, sign * unit / 2)
                           .set(3, 1.5 * unit, sign * unit / 2);
    const auto units = [&](Cut cut) { return std::ldexp(sum_of(p, 0, with(&FusedSum::alignment, cut)), 25); };
    EXPECT_EQ(units(Cut::toward_zero), sign * 2);
    EXPECT_EQ(units(Cut::nearest_even), sign * 4);
    EXPECT_EQ(units(Cut::down), sign > 0 ? 2 : -4);
  }
}

TEST(AFusedSum, RoundsItsResultOnce) {
  const auto rounded = [](double odd, double part, Cut cut) {
    const Products p = Products{}
                           .set(0, 1, 1)
                           .set(1, std::ldexp(odd, -12), std::ldexp(1, -11))
                           .set(2, std::ldexp(part, -12), std::ldexp(1, -11));
    return std::ldexp(sum_of(p, 0, with(&FusedSum::result, cut)) - 1, 23);
  };
  EXPECT_EQ(rounded(0, 0.75, Cut::toward_zero), 0);
  EXPECT_EQ(rounded(0, 0.75, Cut::nearest_even), 1);
  EXPECT_EQ(rounded(0, 0.5, Cut::nearest_even), 0);
  EXPECT_EQ(rounded(1, 0.5, Cut::nearest_even), 2);
}

TEST(AFusedSum, AlignsToTheExponentOfProductsAsDefined) {
  // 2.25 - 2.25 and 2^-25: a product of 2 or more may count with the next exponent.
  const Products p =
      Products{}.set(0, 1.5, 1.5).set(1, -1.5, 1.5).set(2, std::ldexp(1, -12), std::ldexp(1, -13));
  EXPECT_EQ(sum_of(p, 0, with(&FusedSum::product_exponent, ProductExponent::sum)), 0x1p-25f);
  EXPECT_EQ(sum_of(p, 0, with(&FusedSum::product_exponent, ProductExponent::carry)), 0);
  EXPECT_EQ(sum_of(p, 0, with(&FusedSum::product_exponent, ProductExponent::leading_bit)), 0);
}

TEST(AFusedSum, TakesItsGroupsInTurn) {
  // While 1 and -1 cancel, 2^-30 is lost if it is in their group, or between them.
  const auto survives = [](FusedSum p, int k) {
    return sum_of(Products{}.set(0, 1, 1).set(4, -1, 1).set(k, std::ldexp(1, -15), std::ldexp(1, -15)), 0,
                  p) != 0;
  };
  FusedSum p;
  EXPECT_FALSE(survives(p, 15));
  p.group = p.run = 8;
  EXPECT_FALSE(survives(p, 7));
  EXPECT_TRUE(survives(p, 8));
  p.is_reversed = true;
  EXPECT_FALSE(survives(p, 8));
  p.is_reversed = false;
  p.run = 2;  // 0 and 4 are in the first group, 2 and 6 in the second
  EXPECT_FALSE(survives(p, 1));
  EXPECT_TRUE(survives(p, 2));
}

TEST(AFusedSum, AddsTheAddendFirstOrLast) {
  const Products p = Products{}.set(0, 1, 1).set(1, std::ldexp(1, -12), std::ldexp(1, -12));
  EXPECT_EQ(sum_of(p, -1, {}), 0x1p-24f);
  EXPECT_EQ(sum_of(p, -1, with(&FusedSum::adds_last, true)), 0);  // 1 + 2^-24 was cut to 1
  EXPECT_EQ(sum_of(Products{}.set(0, 0x1p-12, 0x1.8p-12), 1, {}), 1);
  EXPECT_EQ(sum_of(Products{}.set(0, 0x1p-12, 0x1.8p-12), 1, with(&FusedSum::adds_last, true)), 1 + 0x1p-23f);
}

TEST(AFusedSum, HasTheSpecialValuesOfAnAddition) {
  const double infinity = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const auto inf = float(infinity);
  const auto bits = [](const Products& p, float c, const FusedSum& parameters = {}) {
    return to_bits(sum_of(p, c, parameters));
  };
  EXPECT_EQ(sum_of(Products{}.set(3, infinity, 2), 1), inf);
  EXPECT_EQ(sum_of(Products{}.set(3, infinity, -2), 1), -inf);
  EXPECT_EQ(sum_of(Products{}.set(3, 1, 1), -inf), -inf);
  EXPECT_EQ(bits(Products{}.set(3, infinity, 0), 1), 0x7fffffff);
  EXPECT_EQ(bits(Products{}.set(3, infinity, 1), -inf), 0x7fffffff);
  EXPECT_EQ(bits(Products{}.set(3, nan, 0), 1), 0x7fffffff);
  EXPECT_EQ(bits(Products{}, float(nan)), 0x7fffffff);
  EXPECT_EQ(bits(Products{}, -0.f), 0);
  Products minus_zeros;
  for (int k = 0; k < n; ++k) minus_zeros.set(k, -0., 1);
  EXPECT_EQ(bits(minus_zeros, -0.f), 0);
  const FusedSum signed_zero = with(&FusedSum::zero_sign, ZeroSign::negative_if_all_are);
  EXPECT_EQ(bits(minus_zeros, -0.f, signed_zero), 0x80000000);
  EXPECT_EQ(bits(minus_zeros, 0.f, signed_zero), 0);
}

TEST(AFusedSum, OverflowsToInfinityOrSaturates) {
  // 2^127 + 2^127 by bf16
  const std::array<std::uint32_t, 8> a{0x7f007f00}, b{0x3f803f80};
  const auto sum = [&](const FusedSum& p) {
    return fused_dot<element::bf16, float, n>(a.data(), b.data(), 0u, p);
  };
  EXPECT_EQ(sum({}), Format<float>::infinity);
  EXPECT_EQ(sum(with(&FusedSum::saturates, true)), Format<float>::infinity - 1);
}

TEST(AFusedSum, RoundsToFp16AndFromFp8) {
  FusedSum p;
  p.result_fraction_bits = 10;
  p.result = Cut::nearest_even;
  const auto half = [&](const Products& x) {
    return fused_dot<element::fp16, fp16, n>(x.a.data(), x.b.data(), fp16{1.}.bits, p);
  };
  EXPECT_EQ(half(Products{}.set(0, 0x1p-6, 0x1p-5)), fp16{1.}.bits);
  EXPECT_EQ(half(Products{}.set(0, 0x1.8p-5, 0x1p-5)), fp16{1 + 0x1p-9}.bits);
  EXPECT_EQ(half(Products{}.set(0, 32768, 2)), Format<fp16>::infinity);
  // fp8: 448² in e4m3, its NaN, its smallest number; an infinity of e5m2
  const auto product = [](auto format, std::uint32_t x, std::uint32_t y) {
    const std::array<std::uint32_t, 8> a{x}, b{y};
    FusedSum q;
    q.group = q.run = 32;
    return from_bits<float>(fused_dot<decltype(format), float, 32>(a.data(), b.data(), 0u, q));
  };
  EXPECT_EQ(product(element::e4m3{}, 0x7e, 0x7e), 448.f * 448.f);
  EXPECT_TRUE(std::isnan(product(element::e4m3{}, 0x7f, 0x38)));
  EXPECT_EQ(product(element::e4m3{}, 0x81, 0x38), -0x1p-9f);
  EXPECT_EQ(product(element::e5m2{}, 0x7c, 0x3c), std::numeric_limits<float>::infinity());
  EXPECT_EQ(product(element::e5m2{}, 0x01, 0x3c), 0x1p-16f);
}

TEST(AFusedSum, IgnoresBitsThatTf32LacksOrRoundsThem) {
  const std::array<std::uint32_t, 8> a{0x3f803000}, b{0x3f800000};  // 1 + 3/2 units of tf32
  FusedSum p;
  p.group = p.run = 8;
  const auto sum = [&] {
    return from_bits<float>(fused_dot<element::tf32, float, 8>(a.data(), b.data(), 0u, p));
  };
  EXPECT_EQ(sum(), 1 + 0x1p-10f);
  p.rounds_elements = true;
  EXPECT_EQ(sum(), 1 + 0x1p-9f);
}

TEST(SumsOfFp64AndBytes, AreFusedMultiplyAddsAndIntegers) {
  const double a[] = {1, 0x1p-53, 0x1p-53, -1}, b[] = {1, 1, 1, 1};
  EXPECT_EQ(fma_dot(a, b, 4, 0, false), 0);
  EXPECT_EQ(fma_dot(a, b, 4, 0, true), 0x1p-53 + 0x1p-53);
  const std::array<std::uint32_t, 8> bytes{0x80808080};
  EXPECT_EQ(byte_dot(bytes.data(), bytes.data(), 32, 5), 4 * 128 * 128 + 5u);
}

/// Random products within a few binades, and their exact sum with c.
struct RandomSum {
  Products products;
  std::array<double, n> x{};
  float c = 0;
  Dyadic exact;
  double largest = 0;
};
RandomSum random_sum(std::mt19937_64& random, int binades) {
  const auto number = [&] {
    const double m = double(1024 + random() % 1024) * (random() % 2 ? 1 : -1);
    return std::ldexp(m, -10 - int(random() % std::uint64_t(binades)));
  };
  RandomSum s;
  s.c = float(number());
  s.exact = Dyadic{double(s.c)};
  s.largest = std::abs(double(s.c));
  for (int k = 0; k < n; ++k) {
    const double a = number(), b = number();
    s.products.set(k, a, b);
    s.exact = s.exact + Dyadic{a * b};
    s.largest = std::max(s.largest, std::abs(a * b));
  }
  return s;
}

TEST(AFusedSum, IsTheRoundedExactSumIfNothingIsCut) {
  std::mt19937_64 random{1};
  FusedSum p;
  p.fraction_bits = 34;
  p.result = Cut::nearest_even;
  for (int i = 0; i < 2000; ++i) {
    const RandomSum s = random_sum(random, 6);
    ASSERT_EQ(to_bits(sum_of(s.products, s.c, p)),
              to_bits(s.exact.rounded_quotient(format_info<float>(), Dyadic{std::uint64_t{1}}).as<float>()));
  }
}

TEST(AFusedSum, LosesLessThanOneUnitPerTermBeforeItRounds) {
  std::mt19937_64 random{2};
  int cut = 0;
  for (int i = 0; i < 2000; ++i) {
    const RandomSum s = random_sum(random, 14);
    const double sum = sum_of(s.products, s.c), e = std::ilogb(s.largest);
    // the largest exponent is that of the largest term, or one less
    const double bound = (n + 1) * std::ldexp(1, int(e) - 25) + std::abs(sum) * 0x1p-23;
    const double error = (s.exact - Dyadic{sum})
                             .rounded_quotient(format_info<double>(), Dyadic{std::uint64_t{1}})
                             .as<double>();
    ASSERT_LE(std::abs(error), bound);
    cut += error != 0;
  }
  EXPECT_GT(cut, 1000);
}

TEST(AFusedSum, DoesNotDependOnTheOrderWithinAGroup) {
  std::mt19937_64 random{3};
  for (int i = 0; i < 500; ++i) {
    const RandomSum s = random_sum(random, 14);
    Products mirrored;
    for (int k = 0; k < n; ++k) {
      const auto at = [k](const auto& words) {
        return convert<double>(from_bits<fp16>(std::uint16_t(words[std::size_t(k / 2)] >> (k % 2 * 16))));
      };
      mirrored.set(n - 1 - k, at(s.products.a), at(s.products.b));
    }
    ASSERT_EQ(to_bits(sum_of(s.products, s.c)), to_bits(sum_of(mirrored, s.c)));
  }
}

}  // namespace
}  // namespace samesum::fused_sum
