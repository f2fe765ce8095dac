/// Exact dot products, means and variances are correctly rounded for every condition number. The truth is
/// computed in rational numbers.
#include <random>

#include "operation/rational.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

struct Pair {
  std::vector<double> x, y;
  Rational dot;
  double condition;
};

/// Generates a dot product of a given condition by algorithm 6.1 of Ogita, Rump and Oishi 2005 ("GenDot"):
/// large products first, then products that cancel more and more of the sum.
Pair generated(std::size_t n, double log2_condition, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const std::vector<double> u = uniform(2 * n, seed);
  Pair p{{}, {}, 0, 0};
  Rational sizes = 0;
  const auto add = [&](double x, double y) {
    p.x.push_back(x);
    p.y.push_back(y);
    p.dot += Rational{x} * Rational{y};
    sizes += magnitude_of(Rational{x} * Rational{y});
  };
  const int half = static_cast<int>(log2_condition / 2);
  for (std::size_t i = 0; i < n / 2; ++i) {
    const int e = i == 0 ? half : static_cast<int>(random() % static_cast<std::uint64_t>(half + 1));
    add(std::ldexp(u[2 * i], e), std::ldexp(u[2 * i + 1], e));
  }
  for (std::size_t i = n / 2; i < n; ++i) {
    const int e = half - static_cast<int>(static_cast<std::size_t>(half) * (i - n / 2) / (n - n / 2 - 1));
    const double x = std::ldexp(u[2 * i], e);
    add(x, Rational{(Rational{std::ldexp(u[2 * i + 1], e)} - p.dot) / Rational{x}}.convert_to<double>());
  }
  p.condition = p.dot == 0 ? INFINITY : (2 * sizes / magnitude_of(p.dot)).convert_to<double>();
  return p;
}

/// The result of a method, which must be the same on all backends.
template <class F> F reduced(const std::string& name, Values x, Values y = {}) {
  const auto on = [&](const std::string& backend) {
    const std::string full = name + "@" + backend;
    return (y.is_given() ? reduce(full, x, y) : reduce(full, x)).template as<F>();
  };
  const F result = on("cpu");
  for (const std::string& backend : present_backends())
    EXPECT_EQ(to_bits(on(backend)), to_bits(result)) << name << "@" << backend;
  return result;
}

template <class F>
F dot(const std::string& name, const std::vector<double>& x, const std::vector<double>& y) {
  const Array a{format_info<fp64>(), x}, b{format_info<fp64>(), y};
  return reduced<F>(name, a.values(), b.values());
}

TEST(AnExactDotProduct, IsCorrectlyRoundedForEveryCondition) {
  double most = 0;
  for (const double log10_condition : {1.0, 8.0, 16.0, 24.0, 32.0, 40.0})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Pair p = generated(100, log10_condition * 3.33, seed);
      most = std::max(most, p.condition);
      EXPECT_TRUE(is_nearest(dot<fp64>("dot/exact/fp64", p.x, p.y), p.dot)) << p.condition;
      EXPECT_TRUE(is_nearest(dot<fp32>("dot/exact/fp32", p.x, p.y), p.dot)) << p.condition;
    }
  EXPECT_GT(most, 1e38);
}

TEST(AnExactDotProduct, IsCorrectForProductsBeyondTheRangeOfDoubles) {
  const std::vector<double> x{0x1p1000, 3e-200, 0x1p1000, 0x1p-1074},
      y{0x1p1000, 7e-200, -0x1p1000, 0x1p-1074};
  Rational truth = 0;
  for (std::size_t i = 0; i < x.size(); ++i) truth += Rational{x[i]} * Rational{y[i]};
  EXPECT_EQ(dot<fp64>("dot/exact/fp64", x, y), 0) << "2.1e-399 is nearest to 0";
  std::vector<double> more_x = x, more_y = y;
  more_x.push_back(0x1p-540);
  more_y.push_back(0x1p-530);
  EXPECT_TRUE(is_nearest(dot<fp64>("dot/exact/fp64", more_x, more_y),
                         truth + Rational{0x1p-540} * Rational{0x1p-530}));
  EXPECT_EQ(dot<fp64>("dot/exact/fp64", {0x1p1000, 1}, {0x1p1000, 1}), INFINITY);
  EXPECT_EQ(dot<fp64>("dot/exact/fp64", {-0.0}, {5}), 0);
  EXPECT_TRUE(std::signbit(dot<fp64>("dot/exact/fp64", {-0.0}, {5})));
  EXPECT_TRUE(std::isnan(dot<fp64>("dot/exact/fp64", {INFINITY, 1}, {0, 1})));
  EXPECT_EQ(dot<fp64>("dot/exact/fp64", {INFINITY, 1}, {-2, 1}), -INFINITY);
  EXPECT_EQ(dot<fp64>("dot/exact/fp64", {}, {}), 0);
}

using Numbers = std::vector<double>;

TEST(AnExactMean, IsRoundedOnceAfterTheDivision) {
  for (const std::size_t n : {1, 2, 3, 7, 1000, 4099}) {
    const std::vector<double> x = wide(n, 200, n);
    Rational sum = 0;
    for (const double e : x) sum += Rational{e};
    const Array a{format_info<fp64>(), x};
    EXPECT_TRUE(is_nearest(reduced<fp64>("mean/exact/fp64", a.values()), Rational{sum / static_cast<int>(n)}))
        << n;
    EXPECT_TRUE(is_nearest(reduced<bf16>("mean/exact/bf16", a.values()), Rational{sum / static_cast<int>(n)}))
        << n;
  }
  EXPECT_EQ(reduced<fp64>("mean/exact/fp64", Numbers{0x1p1023, 0x1p1023, 0x1p1023}), 0x1p1023)
      << "although the sum overflows";
  EXPECT_EQ(reduced<fp64>("mean/exact/fp64", Numbers{0x1p-1074, 0, 0}), 0);
  EXPECT_EQ(reduced<fp64>("mean/exact/fp64", Numbers{0x1p-1074, 0x1p-1074, 0}), 0x1p-1074);
  EXPECT_TRUE(std::isnan(reduced<fp64>("mean/exact/fp64", Numbers{})));
  EXPECT_EQ(reduced<fp64>("mean/exact/fp64", Numbers{INFINITY, 1}), INFINITY);
}

/// n numbers of two magnitudes, 2^e and up to 2^80 times as much, of which nearly half are the opposites of
/// others.
std::vector<double> cancelling(std::size_t n, int e, int highest, std::uint64_t seed) {
  std::vector<double> x = wide(n, 24, seed);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = i > n / 2 ? -x[i - n / 2] : std::ldexp(x[i], i % 7 == 3 ? std::min(e + 80, highest) : e);
  return x;
}

TEST(ExactSumsAndMeansOfRowsAndColumns, AreNearestAtEveryMagnitude) {
  SAMESUM_UNSANITIZED("it tests correct rounding");
  constexpr std::size_t count = 3;
  Formats::for_each([&]<class F>() {
    const int lowest = Format<F>::min_quantum, highest = Format<F>::max_exponent - 14;
    for (int e = lowest; e <= highest; e += (highest - lowest) / 20)
      for (const std::size_t n : {1, 2, 7, 64, 65}) {
        const auto seed = static_cast<std::uint64_t>(e - lowest);
        const Array x{format_info<F>(), cancelling(count * n, e, highest, seed)};
        const std::span<const F> elements = x.values().template as<F>();
        for (const bool in_rows : {true, false})
          for (const char* operation : {"sum", "mean"}) {
            const std::string name = std::string{operation} + "/exact/" + std::string{Format<F>::name} + "@";
            const Layout layout = in_rows ? Layout::rows(count, n) : Layout::axis(1, n, count);
            const Bits results = reduce_all(find(name + "cpu"), x.values(), {}, layout);
            for (const std::string& backend : present_backends())
              EXPECT_EQ(reduce_all(find(name + backend), x.values(), {}, layout), results) << backend;
            for (std::size_t at = 0; at < count; ++at) {
              Rational truth = 0;
              for (std::size_t i = 0; i < n; ++i)
                truth += Rational{convert<double>(elements[in_rows ? at * n + i : i * count + at])};
              if (*operation == 'm') truth /= static_cast<int>(n);
              EXPECT_TRUE(is_nearest(from_bits<F>(static_cast<BitsOf<F>>(results[at])), truth))
                  << operation << " of " << n << " " << Format<F>::name << " like 2^" << e << ", result "
                  << at;
            }
          }
      }
  });
}

TEST(ExactMoments, AreRoundedOnceEach) {
  std::vector<double> large = uniform(1000, 4), tiny = uniform(50, 5), mixed = wide(500, 300, 6),
                      near = uniform(700, 7);
  for (double& e : large) e = 1e15 + std::floor(8 * e);
  for (double& e : near) e += 1e8;
  for (double& e : tiny) e *= 0x1p-600;
  for (const auto& x : {large, tiny, mixed, near, wide(300, 2040, 8),
                        std::vector<double>{1e308, -1e308, 1e308}, std::vector<double>{5, 5, 5}}) {
    const auto n = static_cast<int>(x.size());
    Rational sum = 0, squares = 0;
    for (const double e : x) {
      sum += Rational{e};
      squares += Rational{e} * Rational{e};
    }
    std::vector<double> two(2);
    for (const int ddof : {0, 1})
      for (const std::string& backend : present_backends()) {
        reduce(find("moments/exact/fp64@" + backend), x, Layout::vector(x.size()), std::span{two},
               {.ddof = static_cast<double>(ddof)});
        EXPECT_TRUE(is_nearest(two[0], Rational{sum / n}));
        EXPECT_TRUE(is_nearest(two[1], Rational{(squares - sum * sum / n) / (n - ddof)})) << two[1];
      }
  }
}

TEST(AVariance, IsNaNIfDdofIsAtLeastTheNumberOfElements) {
  const std::vector<double> x{1, 2, 4};
  for (const char* name : {"moments/exact/fp64@", "moments/tree/fp64@"})
    for (const std::string& backend : present_backends())
      for (const double ddof : {3.0, 4.0, 0x1p64, 1e30, static_cast<double>(INFINITY)}) {
        std::vector<double> two(2);
        reduce(find(name + backend), x, Layout::vector(3), std::span{two}, {.ddof = ddof});
        EXPECT_TRUE(std::isnan(two[1])) << name << backend << ", " << ddof;
      }
}

TEST(ExactSquaresAndMagnitudes, AreCorrectlyRounded) {
  SAMESUM_UNSANITIZED("it tests correct rounding");
  const std::vector<double> x = wide(3000, 1500, 8);
  Rational squares = 0, sizes = 0;
  for (const double e : x) {
    squares += Rational{e} * Rational{e};
    sizes += magnitude_of(Rational{e});
  }
  EXPECT_TRUE(is_nearest(reduced<fp64>("squared_norm/exact/fp64", x), squares));
  EXPECT_TRUE(is_nearest(reduced<fp64>("sum_of_magnitudes/exact/fp64", x), sizes));
}

}  // namespace
}  // namespace samesum
