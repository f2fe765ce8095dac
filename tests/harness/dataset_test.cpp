#include "harness/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <thread>

#include "harness/names.hpp"
#include "harness/truth.hpp"
#include "support.hpp"

namespace samesum::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Array;

const Dataset& named(const std::string& name) { return *datasets_matching(name).at(0); }

std::vector<double> as_doubles(const Column& column) {
  return with_format(*column.format, [&]<class F>() {
    std::vector<double> x;
    for (const F element : column.values().as<F>()) x.push_back(convert<double>(element));
    return x;
  });
}

std::vector<double> make(const std::string& name, const FormatInfo& format, std::size_t n,
                         std::uint64_t seed = 1) {
  return as_doubles(named(name).make(format, n, seed));
}

double condition_of(const Column& column) { return Truth{column.values()}.condition(); }

/// Calls visit(data, format) for every data set and every format that it fits.
void for_each_pair(auto visit) {
  for (const Dataset& data : datasets())
    for (const FormatInfo& format : formats)
      if (data.fits(format)) visit(data, format);
}

// --- the same bits on every machine --------------------------------------------------------------

/// Returns the FNV-1a hash of the bytes of a column.
std::uint64_t hash(const Column& column) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const std::byte byte : column.bytes) h = (h ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return h;
}

/// Hashes of 1001 elements with seed 1 in fp16, bf16, fp32 and fp64; 0 if the data set does not fit the
/// format.
const std::map<std::string, std::array<std::uint64_t, 4>> golden{
    {"uniform", {0x084b0f97dff5b69b, 0x7367bfd3feff3eef, 0x3d12738db86c6262, 0xe0e7ff5901ef5fac}},
    {"uniform +-1", {0x8390702935bb6237, 0x37736cf9f9f01a9d, 0xc8a260445065cac7, 0x948e39793d37e7f0}},
    {"normal", {0x00c6cbeb9c48397a, 0x8dfbd43bf0c6bca3, 0xe69968f786fd70b9, 0x5e0eaed44ebcef22}},
    {"one outlier", {0xf266540db232cdb7, 0xac41dfd0b46220d7, 0x5bdc91914ce7eadd, 0x22c3db96a66952fa}},
    {"outliers", {0xd9fcc2be8f1b5aaa, 0x81b684109833e968, 0xc0144099133849be, 0x6ff2f41acb560fcb}},
    {"around 1000", {0xe554b6f591635e24, 0x41669871841ddc2b, 0x0b29a8b56bfe6888, 0x7687aae09eafd554}},
    {"log-normal", {0, 0xa672606502d6ae2b, 0xe2786c1ef45a6ff7, 0xd97daff75c8f5e4d}},
    {"60 binades", {0x07475ff90007c29e, 0x366509b7b700d5b9, 0x4aa58aaf2c1423e6, 0xb0a2622fbfed4f98}},
    {"arbitrary bits", {0x25118d48d3fb8efe, 0x9c0215eea606790e, 0xf550f55e34eea2ec, 0x2a9e083cb52f9b7f}},
    {"near 1", {0x85ba4a4d46e3684f, 0x5e90ff13646e019c, 0x21ad42488dffc597, 0x64b7798974c10c8a}},
    {"ones", {0xccd35924ee7b7d39, 0x8a63f1d0bd6c4700, 0xc8cc79d9746fced8, 0x4d116e8c1064bb38}},
    {"1/i", {0x8d1fcd4919025d2d, 0x2576b35951a3f981, 0x4abd822c43665b47, 0x3ff456eb54ce5b15}},
    {"(-1)^i/i", {0xd09407affd5423ad, 0x6503c3a221a71a01, 0x7767bf632d7e4ec7, 0x9b9118a690230495}},
    {"sine", {0xdbc2f2027eebb1a1, 0x61e3e8daf91e89e1, 0x833641372fc72a21, 0x30ab36b50d522991}},
    {"one big", {0x471d7923e034b6a2, 0xcf7cceb97a7c50d6, 0xbda09bc60feac636, 0xbf1a516ecbfaeaca}},
    {"N then -1", {0x8f5d9bcd5a355c22, 0x12f0b1a36fe9f5c2, 0x1a47664af980f1a3, 0x671358d1d56de63a}},
    {"ascending", {0x23ec6245496fc627, 0xdba072e6757ea503, 0x6d8c9b95931a86be, 0x4582f84810bb2bb8}},
    {"descending", {0x7dfe76593800d37f, 0x75d0483cdca5d0e3, 0xd0fc6e347ec664d2, 0xa796e71b359d9a28}},
    {"kappa 1e4", {0xdfcc1eed8fbd9f72, 0x1e170dbf7157e781, 0x438883b9437d2d0f, 0xc6343e2bbe501516}},
    {"kappa 1e8", {0, 0x65e975de8e6d5199, 0xb78cf12bc15a2a15, 0x8b196178ae3fd44f}},
    {"kappa 1e16", {0, 0xc9a36128984eaf2b, 0xc5cd83e26d12b016, 0x17661cad0df4150c}},
};

TEST(EveryDataset, HasItsGoldenBits) {
  for (const Dataset& data : datasets()) {
    std::array<std::uint64_t, 4> bits{};
    for (const FormatInfo& format : formats)
      if (data.fits(format)) bits[format.index] = hash(data.make(format, 1001, 1));
    ASSERT_TRUE(golden.contains(data.name)) << data.name << " has no golden bits";
    EXPECT_EQ(bits, golden.at(data.name)) << data.name;
  }
  EXPECT_EQ(golden.size(), datasets().size());
}

TEST(EveryDataset, HasTheRequestedNumberOfFiniteElements) {
  for_each_pair([](const Dataset& data, const FormatInfo& format) {
    for (const std::size_t n : {0, 1, 2, 3, 4, 5, 15, 16, 17, 4097, 70000}) {
      const Column column = data.make(format, n, 3);
      EXPECT_EQ(column.format, &format);
      EXPECT_EQ(column.size(), n);
      EXPECT_TRUE(Truth{column.values()}.finite()) << data.name << ' ' << format.name << ' ' << n;
    }
  });
}

TEST(EveryDataset, DependsOnItsSeedIfAndOnlyIfItIsRandom) {
  const std::set<std::string> fixed{"ones", "1/i", "(-1)^i/i", "sine", "N then -1"};
  for_each_pair([&](const Dataset& data, const FormatInfo& format) {
    const auto bits = [&](std::uint64_t seed) { return hash(data.make(format, 1000, seed)); };
    EXPECT_EQ(bits(1), bits(1));
    const bool rounds_to_1000 = data.name == "around 1000" && format.bytes == 2;
    EXPECT_EQ(bits(1) == bits(2), fixed.contains(data.name) || rounds_to_1000) << data.name;
  });
}

TEST(EveryDataset, HasAUniqueNameAndADescriptionOfOneLine) {
  std::set<std::string> names;
  for (const Dataset& data : datasets()) {
    EXPECT_TRUE(names.insert(data.name).second) << data.name;
    EXPECT_EQ(datasets_matching(data.name), std::vector<const Dataset*>{&data})
        << "its name selects it alone";
    EXPECT_THAT(datasets_in_words(), HasSubstr("\n  " + data.name + " "));
    EXPECT_THAT(datasets_in_words(), HasSubstr(" " + data.meaning));
    EXPECT_LE(data.meaning.size(), 65u);
    EXPECT_LT(data.name.size(), 15u);
  }
}

TEST(Generators, ReachTheirConditionNumbers) {
  constexpr std::size_t n = 1024;
  for (const FormatInfo* f : {&format_info<fp32>(), &format_info<fp64>()})
    for (const double condition : {1.0, 1e2, 1e4, 1e6}) {
      std::vector<double> x(n), y(n);
      const auto expect_near = [&](const std::string& operation, const Truth& truth) {
        EXPECT_LE(condition / 3, truth.condition()) << operation << ' ' << f->name;
        EXPECT_LE(truth.condition(), 3 * condition) << operation << ' ' << f->name;
      };
      generate_dot(x, y, *f, condition, 1);
      const Column a = column_of(*f, x), b = column_of(*f, y);
      expect_near("dot", Truth::of("dot", a.values(), b.values()));
      generate_offset(x, condition, 1);
      expect_near("moments", Truth::of("moments", column_of(*f, x).values(), {}, 1));
      generate_logarithm(x, condition, 1);
      expect_near("logsumexp", Truth::of("logsumexp", column_of(*f, x).values()));
    }
  std::vector<double> x(n), y(n);
  for (const double condition : {1e16, 1e40}) {
    generate_dot(x, y, format_info<fp32>(), condition, 2);
    const double found = Truth::of("dot", column_of(format_info<fp32>(), x).values(),
                                   column_of(format_info<fp32>(), y).values())
                             .condition();
    EXPECT_TRUE(condition / 3 <= found && found <= 3 * condition) << found;
  }
}

TEST(Generators, HaveTheirGoldenBits) {
  const std::uint64_t bits[][3] = {{0x075fdf736ee9c600, 0x5a117004164ea053, 0x3fc5dd57c25d37cb},
                                   {0xc77d003d62d2efb2, 0xecca38a889413e2a, 0x26e7d746cd6de6a0},
                                   {0x609768803e205cec, 0x23161a1cf5a867b1, 0x5ac7fa1efc860947},
                                   {0xb03f9927eae43873, 0x2233efe4c119945c, 0xccff635739668a46}};
  for (const FormatInfo& format : formats) {
    std::vector<double> sum(1001), x(1001), y(1001);
    generate_sum_of_any_condition(sum, format, 1e5, 1);
    generate_dot(x, y, format, 1e5, 1);
    EXPECT_THAT(bits[format.index], ElementsAre(hash(column_of(format, sum)), hash(column_of(format, x)),
                                                hash(column_of(format, y))))
        << format.name;
  }
}

TEST(Datasets, AreChosenByGlobs) {
  EXPECT_EQ(datasets_matching("").size(), datasets().size());
  EXPECT_THAT(datasets_matching("sine,s*,ones"), ElementsAre(&named("sine"), &named("ones")));
  EXPECT_THROW(datasets_matching("sine,x*"), UsageError);
}

// --- known conditions ----------------------------------------------------------------------------

TEST(Data, OfOneSignHaveCondition1) {
  for (const FormatInfo& format : formats)
    for (const char* name : {"uniform", "ones", "1/i", "one big", "ascending", "descending"})
      for (const std::size_t n : {100, 65536})
        EXPECT_EQ(condition_of(named(name).make(format, n, 1)), 1) << name << ' ' << format.name;
}

TEST(ASine, SumsToZeroAndHasTheValuesOfASine) {
  for (const FormatInfo& format : formats)
    for (const std::size_t n : {3, 4, 5, 1000, 1001, 65536}) {
      const Column column = named("sine").make(format, n, 1);
      EXPECT_EQ(Truth{column.values()}.value(), 0);
      EXPECT_EQ(condition_of(column), HUGE_VAL) << n;
      const std::vector<double> x = as_doubles(column);
      for (std::size_t i = 0; i < n; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
        ASSERT_NEAR(x[i], std::sin(angle), format.unit_roundoff + 1e-15) << i << " of " << n;
      }
    }
}

TEST(NThenMinus1, HasCondition2NMinus1) {
  for (const FormatInfo& format : formats)
    for (std::size_t n = 1; n <= std::size_t{1} << 20; n *= 4)
      EXPECT_EQ(condition_of(named("N then -1").make(format, n, 1)), static_cast<double>(2 * n - 1)) << n;
  EXPECT_EQ(condition_of(named("N then -1").make(format_info<fp32>(), 1001, 1)), 2001);
  // The largest bf16 up to 1001 is 1000.
  EXPECT_EQ(condition_of(named("N then -1").make(format_info<bf16>(), 1001, 1)), 1999);
  EXPECT_THAT(make("N then -1", format_info<fp32>(), 4), ElementsAre(4, -1, -1, -1));
}

TEST(TheHarmonicSeries, IsCorrectlyRoundedAndAlternatesOnDemand) {
  for (const FormatInfo& format : formats) {
    const std::vector<double> plain = make("1/i", format, 2000), signs = make("(-1)^i/i", format, 2000);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      // x is nearest to 1/(i+1) if (i+1)x is within (i+1) half quanta of 1; long double holds the product.
      const long double k = static_cast<long double>(i + 1);
      const double half = plain[i] * format.unit_roundoff;
      ASSERT_LE(std::abs(k * static_cast<long double>(plain[i]) - 1), k * static_cast<long double>(half));
      ASSERT_EQ(signs[i], i % 2 == 0 ? -plain[i] : plain[i]);
    }
  }
}

TEST(OneBig, AbsorbsWhatIsAddedToIt) {
  for (const FormatInfo& format : formats) {
    std::vector<double> x = make("one big", format, 1000);
    const auto big = std::ranges::max_element(x);
    EXPECT_EQ(*big, 2 / format.unit_roundoff);
    x.erase(big);
    EXPECT_LT(std::ranges::max(x), 2) << "half an ulp of the big element";
  }
}

TEST(Outliers, AreEach65537thNormalElementTimesAPowerOfTwo) {
  for (const FormatInfo& format : formats) {
    const std::size_t n = 200'000;
    const std::vector<double> x = make("outliers", format, n), z = make("normal", format, n);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < n; ++i)
      if (x[i] != z[i]) places.push_back(i);
    ASSERT_THAT(places.size(), ::testing::AnyOf(3, 4));
    for (std::size_t k = 0; k < places.size(); ++k) {
      EXPECT_EQ(places[k] - places[0], k * 65537);
      EXPECT_EQ(x[places[k]], z[places[k]] * (format.max_exponent == 15 ? 4096 : 16384)) << format.name;
    }
    EXPECT_NE(make("outliers", format, 100), make("normal", format, 100)) << "short arrays have one, too";
  }
}

TEST(NumbersAround1000, HaveItsMeanAndAStandardDeviationOf0001) {
  const std::vector<double> x = make("around 1000", format_info<fp64>(), 10'000);
  double sum = 0, squares = 0;
  for (const double e : x) sum += e - 1000, squares += (e - 1000) * (e - 1000);
  EXPECT_NEAR(sum / 1e4, 0, 5e-5);
  EXPECT_NEAR(std::sqrt(squares / 1e4), 1e-3, 5e-5);
}

TEST(SortedData, ArePermutationsOfTheUniformOnes) {
  for (const FormatInfo& format : formats) {
    std::vector<double> up = make("ascending", format, 5000, 7), down = make("descending", format, 5000, 7),
                        source = make("uniform", format, 5000, 7);
    EXPECT_TRUE(std::ranges::is_sorted(up));
    EXPECT_TRUE(std::ranges::is_sorted(down, std::greater{}));
    EXPECT_FALSE(std::ranges::is_sorted(source));
    std::ranges::sort(source);
    EXPECT_EQ(up, source);
    std::ranges::reverse(down);
    EXPECT_EQ(down, source);
  }
}

// --- a prescribed condition ----------------------------------------------------------------------

TEST(AGeneratedSum, HasTheRequestedConditionWithinAFactorOf3) {
  for (const FormatInfo& format : formats)
    for (const double condition : {1e2, 1e4, 1e8, 1e12, 1e16, 1e24, 1e30})
      for (const std::size_t n : {64, 65, 100, 1000, 30001})
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
          if (std::log2(condition) > format.max_exponent) continue;
          std::vector<double> x(n);
          generate_sum(x, format, condition, seed);
          const Array array{format, x};
          const double ratio = Truth{array.values()}.condition() / condition;
          EXPECT_TRUE(1 / 3.0 <= ratio && ratio <= 3)
              << condition << ' ' << format.name << ' ' << n << ": " << ratio;
        }
}

TEST(AGeneratedSum, HasElementsOfItsFormat) {
  for_each_pair([](const Dataset& data, const FormatInfo& format) {
    if (!data.name.starts_with("kappa")) return;
    for (const std::size_t n : {1, 2, 16, 1000}) {
      std::vector<double> x(n);
      data.fill(x, format, 1);
      EXPECT_EQ(as_doubles(data.make(format, n, 1)), x) << "rounding would change the condition";
    }
  });
}

TEST(AGeneratedSum, ReachesAConditionBeyondItsPrecisionWithFewElements) {
  EXPECT_NEAR(condition_of(named("kappa 1e16").make(format_info<fp64>(), 16, 1)), 1e16, 1e15);
  EXPECT_NEAR(condition_of(named("kappa 1e4").make(format_info<fp16>(), 16, 1)), 1e4, 1e3);
}

TEST(ASumOfAnyCondition, HasTheRequestedConditionWithinAFactorOf3) {
  for (const FormatInfo& format : formats)
    for (const double condition : {1.0, 2.0, 1e2, 1e5, 1e9, 1e12, 1e20, 1e30, 1e40})
      for (const std::size_t n : {64, 100, 1000, 30001})
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
          if (format.max_exponent < 16 && condition > 1e12) continue;
          std::vector<double> x(n);
          generate_sum_of_any_condition(x, format, condition, seed);
          const Column column = column_of(format, x);
          EXPECT_EQ(as_doubles(column), x) << "rounding would change the condition";
          const double ratio = condition_of(column) / condition;
          EXPECT_TRUE(1 / 3.0 <= ratio && ratio <= 3)
              << condition << ' ' << format.name << ' ' << n << ": " << ratio;
        }
}

TEST(ASumOfAnyCondition, HasElementsOfOneSignOnlyForCondition1) {
  const auto negative = [](double condition) {
    std::vector<double> x(100);
    generate_sum_of_any_condition(x, format_info<fp32>(), condition, 1);
    return std::ranges::count_if(x, [](double e) { return e < 0; });
  };
  EXPECT_EQ(negative(1), 0);
  EXPECT_GT(negative(100), 20);
}

TEST(ASumOfAnyCondition, DoesNotOverflowInFp16) {
  std::vector<double> x(1000);
  generate_sum_of_any_condition(x, format_info<fp16>(), 1e7, 1);
  double magnitudes = 0;
  for (const double e : x) magnitudes += std::abs(e);
  EXPECT_LT(magnitudes, format_info<fp16>().max_finite);
  EXPECT_NE(x, std::vector<double>(1000));
}

// --- distributions -------------------------------------------------------------------------------

double mean(const std::vector<double>& x, auto f) {
  double sum = 0;
  for (const double e : x) sum += f(e);
  return sum / static_cast<double>(x.size());
}

/// Five standard deviations of the mean of 2^20 numbers of variance 1.
constexpr double tolerance = 5.0 / 1024;

TEST(NormalData, HaveTheMomentsAndTailsOfTheNormalDistribution) {
  const std::vector<double> x = make("normal", format_info<fp64>(), std::size_t{1} << 20);
  EXPECT_NEAR(mean(x, [](double e) { return e; }), 0, tolerance);
  EXPECT_NEAR(mean(x, [](double e) { return e * e; }), 1, tolerance * std::sqrt(2.0));
  EXPECT_NEAR(mean(x, [](double e) { return e * e * e; }), 0, tolerance * std::sqrt(15.0));
  EXPECT_NEAR(mean(x, [](double e) { return e * e * e * e; }), 3, tolerance * std::sqrt(96.0));
  for (const double edge : {0.1, 0.5, 1.0, 1.5, 2.0, 3.0}) {
    const double share = std::erfc(edge / std::numbers::sqrt2);
    EXPECT_NEAR(mean(x, [&](double e) { return std::abs(e) > edge; }), share, tolerance * std::sqrt(share));
  }
}

/// They are kept, as far as they are likely to be wanted again.
TEST(NormalData, DoNotDependOnWhatWasMadeBefore) {
  const Dataset& normal = named("normal");
  const auto made = [&](std::vector<std::pair<std::size_t, std::uint64_t>> lengths_and_seeds) {
    Column last;
    std::thread{[&] {
      for (const auto& [n, seed] : lengths_and_seeds) last = normal.make(format_info<fp64>(), n, seed);
    }}.join();
    return last.bytes;
  };
  constexpr std::size_t many = (std::size_t{1} << 20) + 100;
  const std::vector<std::byte> all = made({{many, 1}});
  EXPECT_EQ(made({{1000, 1}, {10, 2}, {2000, 1}, {10, 1}, {many, 1}}), all);
  EXPECT_EQ(made({{2000, 1}, {1000, 1}}), std::vector(all.begin(), all.begin() + 8000));
}

TEST(UniformData, FillTheirInterval) {
  for (const FormatInfo& format : formats) {
    const std::vector<double> one = make("uniform", format, std::size_t{1} << 20),
                              two = make("uniform +-1", format, std::size_t{1} << 20);
    EXPECT_NEAR(mean(one, [](double e) { return e; }), 0.5 - format.unit_roundoff / 2, tolerance / 3);
    EXPECT_NEAR(mean(two, [](double e) { return e; }), 0, tolerance * 2 / 3);
    EXPECT_NEAR(mean(two, [](double e) { return std::abs(e); }), 0.5 - format.unit_roundoff / 2,
                tolerance / 3);
    for (const double e : one) ASSERT_TRUE(0 <= e && e < 1);
    for (const double e : two) ASSERT_TRUE(-1 < e && e < 1);
  }
}

TEST(DataOfSixtyBinades, AreLogUniform) {
  const std::vector<double> x = make("60 binades", format_info<fp64>(), std::size_t{1} << 20);
  std::map<int, double> shares;
  for (const double e : x) shares[std::ilogb(e)] += 0x1p-20;
  EXPECT_EQ(shares.size(), 60u);
  EXPECT_EQ(shares.begin()->first, -60);
  for (const auto& [binade, share] : shares) EXPECT_NEAR(share, 1 / 60.0, tolerance / std::sqrt(60.0));
  EXPECT_NEAR(mean(x, [](double e) { return std::scalbn(std::abs(e), -std::ilogb(e)); }),
              1 / std::numbers::ln2, tolerance / 3);
  EXPECT_NEAR(mean(x, [](double e) { return e > 0; }), 0.5, tolerance / 2);
  for (const double e : make("60 binades", format_info<fp16>(), 10000)) ASSERT_GE(std::abs(e), 0x1p-24);
}

// --- awkward data ----------------------------------------------------------------------------------

TEST(OneOutlier, IsOneElementAboutTwoTo14TimesAsLargeAsTheOthers) {
  for (const FormatInfo& format : formats) {
    std::vector<double> x(5000);
    named("one outlier").fill(x, format, 3);
    std::ranges::sort(x, {}, [](double e) { return std::abs(e); });
    EXPECT_GE(std::abs(x.back()), 0x1p14);
    EXPECT_LT(std::abs(x.back()), 0x1p15);
    EXPECT_LT(std::abs(x[x.size() - 2]), 8);
  }
}

TEST(LogNormalData, AreTheExponentialsOfNormalOnesWithDeviation3) {
  std::vector<double> x(20'000), z(x.size());
  named("log-normal").fill(x, format_info<fp64>(), 3);
  named("normal").fill(z, format_info<fp64>(), 3);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i] / std::exp(3 * z[i]), 1, 0x1p-49)
        << 3 * z[i];  // within units of the last place of the argument
  EXPECT_FALSE(named("log-normal").fits(format_info<fp16>()));
}

}  // namespace
}  // namespace samesum::harness
