#include "samesum/accumulator/dyadic.hpp"

#include <gtest/gtest.h>

#include <random>

namespace samesum {
namespace {

/// The number after the finite number of F with these bits, as if exponents had no end.
template <class F> Dyadic after(BitsOf<F> bits) {
  if (bits + 1 < Format<F>::infinity) return Dyadic{convert<double>(from_bits<F>(BitsOf<F>(bits + 1)))};
  return Dyadic{power_of_two(Format<F>::max_exponent - 1)} * Dyadic{std::uint64_t{2}};
}
/// Twice the number half way between a finite number of F and the next one.
template <class F> Dyadic twice_half_way(BitsOf<F> bits) {
  return Dyadic{convert<double>(from_bits<F>(bits))} + after<F>(bits);
}

/// Expects the bits to be those of the number of F that is nearest to x, ties to even. is_above(y) compares x
/// with half of y: it returns whether that is smaller, and is_equal(y) whether it is x.
template <class F, class IsAbove, class IsEqual>
void expect_nearest(BitsOf<F> bits, IsAbove is_above, IsEqual is_equal) {
  ASSERT_LE(bits, Format<F>::infinity);
  if (bits < Format<F>::infinity) {
    const Dyadic above = twice_half_way<F>(bits);
    ASSERT_FALSE(is_above(above));
    if (is_equal(above)) {
      ASSERT_EQ(bits % 2, 0);
    }
  }
  if (bits > 0) {
    const auto below = BitsOf<F>(bits - 1);
    const Dyadic half_way = twice_half_way<F>(below);
    ASSERT_TRUE(is_above(half_way) || is_equal(half_way));
    if (is_equal(half_way)) {
      ASSERT_EQ(bits % 2, 0);
    }
  }
}

template <class F> void expect_nearest_quotient(const Dyadic& a, const Dyadic& b) {
  const Dyadic twice = a * Dyadic{std::uint64_t{2}}, minus_a = Dyadic{} - a, minus_b = Dyadic{} - b;
  const auto bits = [](const Dyadic& x, const Dyadic& y) {
    return x.rounded_quotient(format_info<F>(), y).template as<F>();
  };
  const auto result = to_bits(bits(a, b));
  expect_nearest<F>(
      result, [&](const Dyadic& y) { return (twice - y * b).is_positive(); },
      [&](const Dyadic& y) { return (twice - y * b).is_zero(); });
  EXPECT_EQ(to_bits(bits(minus_a, minus_b)), result);
  EXPECT_EQ(to_bits(bits(minus_a, b)), result | Format<F>::sign_bit);
  EXPECT_EQ(to_bits(bits(a, minus_b)), result | Format<F>::sign_bit);
}
template <class F> void expect_nearest_ratio(const Dyadic& a, const Dyadic& b) {
  const Dyadic square = a * a * Dyadic{std::uint64_t{4}};
  const auto result = to_bits(a.rounded_ratio_to_root(format_info<F>(), b).template as<F>());
  expect_nearest<F>(
      result, [&](const Dyadic& y) { return (square - y * y * b).is_positive(); },
      [&](const Dyadic& y) { return (square - y * y * b).is_zero(); });
}

/// Positive numbers of up to five words, with runs of equal bits. Quotients of two have exponents of F or
/// near.
class Numbers {
 public:
  Dyadic next() {
    std::vector<std::uint64_t> words(1 + random_() % 5);
    for (std::uint64_t& word : words)
      word = random_() % 3 == 0 ? (random_() % 2 ? 0 : ~std::uint64_t{0}) : random_();
    words.back() = words.back() >> random_() % 64 | 1;
    return {false, words, static_cast<std::int64_t>(random_() % 5) - 2};
  }
  template <class F> Dyadic scale() {
    constexpr int low = Format<F>::min_quantum - 70, high = Format<F>::max_exponent + 70;
    const int exponent = low + static_cast<int>(random_() % static_cast<unsigned>(high - low)),
              half = exponent / 2;
    return Dyadic{power_of_two(half)} * Dyadic{power_of_two(exponent - half)};
  }
  template <class F> BitsOf<F> finite() { return static_cast<BitsOf<F>>(random_() % Format<F>::infinity); }

 private:
  std::mt19937_64 random_{1};
};

TEST(AQuotientOfDyadicNumbers, IsRoundedToNearestWithTiesToEven) {
  Numbers numbers;
  for (int i = 0; i < 500; ++i)
    Formats::for_each([&]<class F>() {
      const Dyadic b = numbers.next();
      expect_nearest_quotient<F>(numbers.next() * numbers.scale<F>(), b);
      expect_nearest_quotient<F>(numbers.next(), b * numbers.scale<F>());
      const Dyadic tie = twice_half_way<F>(numbers.finite<F>()) * b * Dyadic{0.5};
      expect_nearest_quotient<F>(tie, b);
      expect_nearest_quotient<F>(tie + Dyadic{0x1p-700} * Dyadic{0x1p-700}, b);
      expect_nearest_quotient<F>(tie - Dyadic{0x1p-700} * Dyadic{0x1p-700}, b);
    });
}

TEST(ARatioToARoot, IsRoundedToNearestWithTiesToEven) {
  Numbers numbers;
  for (int i = 0; i < 500; ++i)
    Formats::for_each([&]<class F>() {
      const Dyadic b = numbers.next();
      expect_nearest_ratio<F>(numbers.next() * numbers.scale<F>(), b);
      const Dyadic tie = twice_half_way<F>(numbers.finite<F>()) * b * Dyadic{0.5};
      expect_nearest_ratio<F>(tie, b * b);
      expect_nearest_ratio<F>(tie + Dyadic{0x1p-700} * Dyadic{0x1p-700}, b * b);
    });
}

TEST(DyadicNumbers, AreAddedAndMultipliedExactly) {
  Numbers numbers;
  for (int i = 0; i < 500; ++i) {
    const Dyadic a = numbers.next(), b = numbers.next() * numbers.scale<fp64>(), c = numbers.next();
    EXPECT_TRUE(((a + b) * c - a * c - b * c).is_zero());
    EXPECT_TRUE(((a - b) * (a + b) - (a * a - b * b)).is_zero());
    EXPECT_TRUE((a + b - b - a).is_zero());
    EXPECT_TRUE((a + b).is_positive());
    EXPECT_NE((a - b).is_positive(), (b - a).is_positive() || (a - b).is_zero());
  }
}

TEST(DyadicNumbers, AreExactAndCopiedWithAnyNumberOfWords) {
  const FormatInfo& format = format_info<fp64>();
  const Dyadic one{std::uint64_t{1}}, factor{~std::uint64_t{0} - 2};
  Dyadic power = one, copy;
  for (int words = 0; words < 40; ++words) {
    const Dyadic next = power + one;
    copy = next;
    EXPECT_TRUE((copy * copy - power * power - power - copy).is_zero()) << words;
    EXPECT_EQ((copy - power).rounded_quotient(format, one).bits, to_bits(1.0)) << words;
    EXPECT_EQ((power * factor).rounded_quotient(format, power).bits, to_bits(0x1p64)) << words;
    EXPECT_EQ((power * factor).rounded_ratio_to_root(format, power * power).bits, to_bits(0x1p64)) << words;
    power = Dyadic{power * factor};
    copy = one;
    EXPECT_TRUE((copy - one).is_zero());
  }
}

TEST(DyadicNumbers, AreConvertedFromDigitsAndDoubles) {
  const std::int64_t digits[] = {-3, std::int64_t{1} << 61, 0, -(std::int64_t{1} << 40), 5};
  for (const std::int64_t exponent : {-1074, -1075, -33, 0, 17, 64}) {
    Dyadic sum;
    for (std::size_t i = 0; i < std::size(digits); ++i)
      sum = sum +
            Dyadic{static_cast<double>(digits[i])} *
                (Dyadic{power_of_two(static_cast<int>(exponent / 2) + 16 * static_cast<int>(i))} *
                 Dyadic{power_of_two(static_cast<int>(exponent - exponent / 2) + 16 * static_cast<int>(i))});
    EXPECT_TRUE((Dyadic{digits, exponent} - sum).is_zero()) << exponent;
  }
  EXPECT_TRUE((Dyadic{-3.0} + Dyadic{std::uint64_t{3}}).is_zero());
  EXPECT_TRUE(Dyadic{-0.0}.is_zero());
  EXPECT_TRUE(Dyadic{0x1p-1074}.is_positive());
}

}  // namespace
}  // namespace samesum
