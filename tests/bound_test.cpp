#include "samesum/bound/bound.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <map>

#include "cases.hpp"
#include "harness/truth.hpp"
#include "known_sums.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using harness::Truth;
using Real = boost::multiprecision::cpp_bin_float_50;

struct Tally {
  int finite = 0, infinite = 0;
};

void expect_within(const Truth& truth, double bound, Number result, const std::string& what, Tally& tally) {
  if (!truth.finite()) return;
  std::isfinite(bound) ? ++tally.finite : ++tally.infinite;
  EXPECT_TRUE(truth.within(bound, result))
      << what << ": " << ::testing::PrintToString(result) << " has an error of "
      << truth.error_of(result).absolute << ", the bound is " << bound;
}

class TheBoundOfEverySum : public ::testing::TestWithParam<const Method*> {
 protected:
  const Method& m = *GetParam();
  Tally tally;
  void expect_within_bound(const KnownSum& sum) {
    const Values x = sum.x.values();
    if (!m.accepts(*x.format)) return;
    const Number result = m(x);
    expect_within(sum.truth, m.bound(*x.format, x.size, result, sum.truth.magnitudes_rounded_up()), result,
                  sum.name + ", n = " + std::to_string(x.size) + ", " + std::string{x.format->name}, tally);
  }
};
INSTANTIATE_TEST_SUITE_P(Cpu, TheBoundOfEverySum, ::testing::ValuesIn(sums_of("cpu")), test_name);

std::vector<KnownSum> of_datasets(const FormatInfo& format, std::size_t n) {
  std::vector<KnownSum> all;
  for (const Dataset& d : datasets(n)) all.push_back({d.name, {format, d.x}});
  return all;
}

TEST_P(TheBoundOfEverySum, HoldsOnEveryKindOfDataAndInput) {
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {1, 2, 3, 10, 100, 1000, 3000, 40'000})
      for (const KnownSum& sum : known_sums<of_datasets>(input, n)) expect_within_bound(sum);
  RecordProperty("finite", tally.finite);
  RecordProperty("infinite", tally.infinite);
  EXPECT_GT(tally.finite, 100) << "the bound is infinite for most data";
}

std::vector<KnownSum> of_cases(const FormatInfo& format, std::size_t) {
  std::vector<KnownSum> all;
  for (const testing::Case& c : testing::cases())
    if (c.format == &format) all.push_back({c.name, c.array()});
  return all;
}

TEST_P(TheBoundOfEverySum, HoldsOnTheKnownCases) {
  for (const FormatInfo& format : formats)
    for (const KnownSum& sum : known_sums<of_cases>(format, 0)) expect_within_bound(sum);
}

/// Small integers times powers of two, whose rounding errors add up most easily.
std::vector<KnownSum> of_few_bits(const FormatInfo& format, std::size_t count) {
  std::mt19937_64 random{11};
  std::vector<KnownSum> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> x(1 + random() % 12);
    for (double& e : x) {
      const double integer = static_cast<double>(random() % 512) - 256;
      e = integer * power_of_two(static_cast<int>(random() % 10) - 5);
    }
    all.push_back({::testing::PrintToString(x), {format, x}});
  }
  return all;
}

TEST_P(TheBoundOfEverySum, HoldsOn3000ShortSumsOfFewBits) {
  for (const KnownSum& sum : known_sums<of_few_bits>(input_of(m), 3000)) expect_within_bound(sum);
}

TEST(TheBound, IsCloseToTheLargestErrorFound) {
  // Hill climbing over short bf16 arrays attained these shares of each bound, apart from the last rounding.
  // The test fails if a bound becomes smaller or larger.
  const struct {
    const char* name;
    double attained;
    std::vector<double> x;
  } climbs[] = {
      {"serial/plain/bf16", 0.996, {0x1p-2, 0x1p+6}},
      {"serial/kahan/bf16",
       0.498,
       {-0x1.08p-1, -0x1.04p+2, 0x1.02p-6, -0x1.02p+3, -0x1.34p-7, -0x1.32p-5, 0x1.04p+2}},
      {"serial/neumaier/bf16", 0.249, {0x1.7ep+0, 0x1.06p-1, 0x1.fep+7}},
      {"serial/double_word/bf16", 0.164, {-0x1.02p-7, -0x1.04p-1, -0x1.cp+1}},
      {"pairwise/kahan/bf16", 0.048, {-0x1.32p-2, 0x1.a8p+0, -0x1.0cp+5, 0x1.16p-6}},
      {"pairwise/neumaier/bf16", 0.246, {-0x1.aap+2, -0x1.b4p+2, -0x1.7ep-12, -0x1.4cp+1}},
      {"pairwise/double_word/bf16",
       0.236,
       {0x1.88p+0, -0x1.9p+4, 0x1.acp-7, 0x1.0cp-5, -0x1.42p-7, -0x1.0cp+3, -0x1.46p-2}},
  };
  for (const auto& [name, attained, x] : climbs) {
    const Method& m = find(name);
    const Array array{*m.format, x};
    const Truth truth{array.values()};
    const Number result = m(array.values());
    const double bound = m.bound(*m.format, x.size(), result, truth.magnitudes_rounded_up());
    const double last = m.accumulator == "plain" ? 0 : std::abs(result.to_double()) * m.format->unit_roundoff;
    const double error = truth.error_of(result).absolute;
    EXPECT_LE(error, bound) << name;
    EXPECT_NEAR((error - last) / (bound - last), attained, 0.002) << name;
  }
}

TEST(TheBoundOfAnAccumulator, HoldsForMergesOfAnyShape) {
  std::mt19937_64 random{12};
  Tally tally;
  const auto check = [&]<template <class> class A, class F>() {
    using Sum = A<Scalar<F>>;
    struct Part {
      Sum sum;
      Height height;
    };
    std::vector<double> all;
    std::vector<Part> parts;
    bool rounds = false;
    for (std::size_t count = 1 + random() % 20; parts.size() < count;) {
      // Half of the parts have elements that the accumulator has to round first.
      const FormatInfo& given = random() % 2 ? format_info<F>() : formats[random() % formats.size()];
      const Array elements{given, wide(1 + random() % 40, static_cast<int>(1 + random() % 10), random())};
      rounds = rounds || !holds(format_info<F>(), given);
      parts.push_back({Sum{}, Serial::height(elements.values().size)});
      with_format(given, [&]<class T>() {
        for (const T& e : elements.values().as<T>()) {
          all.push_back(convert<double>(e));
          parts.back().sum.add(Scalar<F>::of(e));
        }
      });
    }
    while (parts.size() > 1) {
      std::swap(parts[random() % parts.size()], parts.front());
      Part &into = parts.front(), &from = parts.back();
      into.sum.merge(from.sum);
      into.height = {std::max(into.height.adds, from.height.adds),
                     std::max(into.height.merges, from.height.merges) + 1};
      parts.pop_back();
    }
    const Truth truth{all};
    const Number result = Number::of(to_format<F>(parts[0].sum.result()));
    const double bound =
        sum_bound(Sum::bound, rounds ? format_info<fp64>() : format_info<F>(), format_info<F>(), all.size(),
                  parts[0].height, truth.magnitudes_rounded_up(), result)
            .bound;
    expect_within(truth, bound, result, std::string{Sum::name}, tally);
  };
  for (int round = 0; round < 60; ++round)
    Accumulators::for_each([&]<template <class> class A>() {
      Formats::for_each([&]<class F>() { check.template operator()<A, F>(); });
    });
  EXPECT_GT(tally.finite, 500);
}

TEST(AnEstimate, ReturnsTheBitsOfTheMethodAndABoundThatHolds) {
  Tally tally;
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {0, 1, 5, 3000, 20'000})
      for (const Dataset& d : datasets(n)) {
        const Array x{input, d.x};
        const Truth truth{x.values()};
        for (const Method* m : sums_of("cpu", Promise::everywhere)) {
          if (!m->accepts(input)) continue;
          if (n > 3000 && &input != &input_of(*m)) continue;  // the others show the conversions
          const Estimate e = estimate(m->name, x.values());
          EXPECT_EQ(e.value, (*m)(x.values())) << m->name;
          EXPECT_GE(e.magnitudes, truth.magnitudes_rounded_up() * (1 - 0x1p-52));
          expect_within(truth, e.bound, e.value, m->name + ", " + d.name + ", n = " + std::to_string(n),
                        tally);
        }
      }
  EXPECT_GT(tally.finite, 1000);
}

TEST(AnEstimate, OfAPlainSumIsTighterThanTheAPrioriBound) {
  const Array x{format_info<fp32>(), uniform(20'000, 1)};
  const Method& m = find("tree/plain/fp32");
  const Estimate e = estimate(m.name, x.values());
  EXPECT_LT(e.bound, m.bound(format_info<fp32>(), 20'000, e.value, e.magnitudes) / 5);
}

TEST(AnEstimate, IsRefusedIfTheTreeIsNotFixed) {
  EXPECT_THROW(estimate("atomic/plain/fp32", std::vector<float>{1}), std::invalid_argument);
}

struct DatasetWithY {
  Dataset x;
  Array y;
};
/// Returns data for one and for two inputs; of fp64 also some whose products are not doubles.
std::vector<DatasetWithY> pairs_for(const FormatInfo& input, std::size_t n) {
  std::vector<DatasetWithY> all;
  for (Dataset& d : datasets(n)) all.push_back({std::move(d), {input, uniform(n, 19)}});
  if (&input == &format_info<fp64>())
    for (const int exponent : {-500, -525, -537, -545, -700, -1060}) {
      std::vector<double> x = wide(n, 10, 3), y = uniform(n, 19);
      for (double& e : x) e *= power_of_two(exponent);
      for (double& e : y) e *= power_of_two(exponent);
      all.push_back({{"numbers near 2^" + std::to_string(exponent), x}, {input, y}});
    }
  return all;
}

TEST(AnEstimate, OfAnotherOperationHasItsBitsAndABoundThatHolds) {
  int finite = 0, all = 0;
  for (const std::string operation : {"mean", "sum_of_magnitudes", "squared_norm", "dot", "norm"})
    for (const FormatInfo& input : formats)
      for (const std::size_t n : {1, 5, 3000})
        for (const auto& [d, y] : pairs_for(input, n)) {
          const Array x{input, d.x};
          const bool two = operation == "dot";
          // The truth with 50 digits, from the elements as given.
          Real sum = 0, magnitudes = 0;
          with_format(input, [&]<class F>() {
            for (std::size_t i = 0; i < n; ++i) {
              const Real a = convert<double>(x.values().as<F>()[i]),
                         b = convert<double>(y.values().as<F>()[i]);
              const Real term = two                                ? Real{a * b}
                                : operation == "mean"              ? a
                                : operation == "sum_of_magnitudes" ? Real{abs(a)}
                                                                   : Real{a * a};
              sum += term;
              magnitudes += two ? Real{abs(term)} : Real{abs(a)};
            }
          });
          const Real truth = operation == "mean"   ? Real{sum / n}
                             : operation == "norm" ? Real{sqrt(sum)}
                                                   : sum;
          for (const Method& m : methods(operation)) {
            if (m.backend != "cpu" || !m.accepts(input)) continue;
            const Estimate e = two ? estimate(m.name, x.values(), y.values()) : estimate(m.name, x.values());
            EXPECT_EQ(e.value, two ? m(x.values(), y.values()) : m(x.values())) << m.name;
            EXPECT_GE(Real{e.magnitudes}, magnitudes) << m.name;
            EXPECT_LE(Real{e.magnitudes}, magnitudes * (1 + 1e-11) + Real{1e-300}) << m.name;
            ++all;
            finite += std::isfinite(e.bound);
            if (std::isfinite(e.bound)) {
              EXPECT_LE(abs(truth - e.value.to_double()), Real{e.bound} + abs(truth) * Real{1e-45})
                  << m.name << " of " << input.name << ", " << d.name << ", n = " << n;
            }
          }
        }
  EXPECT_GT(10 * finite, 9 * all) << "the bound is infinite for many of the data";
}

TEST(AnEstimate, OfADotProductHasMagnitudesOfZeroOnlyIfAllProductsAreZero) {
  const std::vector<double> tiny{0x1p-1074, 0}, small{0x1p-600, 1}, zeros{0, 0};
  for (const Method& m : methods("dot")) {
    if (m.backend != "cpu" || !m.accepts(format_info<fp64>())) continue;
    for (const auto& [x, y] : {std::pair{tiny, tiny}, {tiny, small}, {small, {0x1p-600, 0}}}) {
      EXPECT_GT(estimate(m.name, x, y).magnitudes, 0) << m.name;
      EXPECT_LT(estimate(m.name, x, y).magnitudes, 0x1p-1070) << m.name;
    }
    EXPECT_EQ(estimate(m.name, zeros, small).magnitudes, 0) << m.name;
    EXPECT_EQ(estimate(m.name, tiny, zeros).magnitudes, 0) << m.name;
  }
}

TEST(AnEstimate, OfOtherOperationsIsNearTheErrorForOrdinaryData) {
  const Array x{format_info<fp32>(), uniform(20'000, 1)}, y{format_info<fp32>(), uniform(20'000, 2)};
  EXPECT_LT(estimate("dot/tree/kahan/fp32", x.values(), y.values()).bound, 1e-3);
  EXPECT_LT(estimate("dot/exact/fp32", x.values(), y.values()).bound, 1e-4);
  EXPECT_LT(estimate("norm/tree/fp32", x.values()).bound, 1e-3);
  EXPECT_LT(estimate("mean/tree/kahan/fp32", x.values()).bound, 1e-6);
  EXPECT_EQ(estimate("max/fp32", x.values()).bound, 0);
  EXPECT_EQ(estimate("max", x.values()).value, reduce("max/fp32", x.values()))
      << "a name without a format means that of the elements";
}

TEST(AnEstimate, IsRefusedForOtherThanOneResultAndForTheWrongNumberOfInputs) {
  const std::vector<float> x{1, 2, 3};
  EXPECT_THROW(estimate("argmax/fp32", x), std::invalid_argument);
  EXPECT_THROW(estimate("moments/tree/fp32", x), std::invalid_argument);
  EXPECT_THROW(estimate("softmax/exact/fp32", x), std::invalid_argument);
  EXPECT_THROW(estimate("dot/tree/plain/fp32", x), std::invalid_argument);
  EXPECT_THROW(estimate("norm/tree/fp32", x, x), std::invalid_argument);
  EXPECT_THROW(estimate("sum/tree/plain/fp32", x, x), std::invalid_argument);
}

// --- the probable bound --------------------------------------------------------------------------

/// The formulas of the docstrings, evaluated with 50 digits.
Real probable_gamma_of(Real k, Real u, Real nodes, Real failing) {
  const Real theta = sqrt(2 * log(2 * nodes / failing) * k) * u;
  return theta <= 0.5 ? theta / (1 - theta) : Real{std::numeric_limits<double>::infinity()};
}

Real probable_plain(Real h, Real u, std::size_t n, Real magnitudes, Real failing) {
  const auto first_order = [&](Real f) { return sqrt(2 * log(2 / f) * h) * u; };
  Real least = first_order(failing / 2) * (1 + probable_gamma_of(h, u, n - 1, failing / 2));
  if (h * u <= 0.5) least = std::min<Real>(least, first_order(failing) * exp((h - 1) * u));
  return least * magnitudes;
}

TEST(TheProbableBound, IsItsFormulaRoundedUp) {
  int finite = 0;
  for (const Method* m : sums_of("cpu"))
    for (const std::size_t n : {2, 30, 1000, 100'000, 10'000'000})
      for (const double probability : {0.01, 0.5, 0.9, 0.99, 1 - 0x1p-40}) {
        const double magnitudes = std::min(0.7 * static_cast<double>(n), m->format->max_finite / 8);
        const Number one = with_format(*m->format, []<class F>() { return Number::of(convert<F>(1.0)); });
        const double is = m->bound(input_of(*m), n, one, magnitudes, {.probability = probability});
        const double certain = m->bound(input_of(*m), n, one, magnitudes);
        const Real u = m->format->unit_roundoff, failing = 1 - Real{probability};
        const Height height = m->height(n);
        const Real h = height.total(), merges = height.merges;
        Real should = certain;
        if (m->accumulator == "plain") {
          should = std::min<Real>(should, probable_plain(h, u, n, magnitudes, failing));
        } else if (m->accumulator == "neumaier") {
          const Real sums = probable_gamma_of(h, u, n - 1, failing / 2);
          const Real corrections = probable_gamma_of(h + merges, u, 2 * (n - 1), failing / 2);
          should = std::min<Real>(should, u + sums * corrections * magnitudes);
        }
        if (!std::isfinite(is)) {
          EXPECT_GT(should, m->format->max_finite / 16) << m->name << ", n = " << n;
          continue;
        }
        ++finite;
        EXPECT_GE(Real{is}, should) << m->name << ", n = " << n << ", " << probability;
        EXPECT_LE(Real{is}, should * (1 + 0x1p-40)) << m->name << ", n = " << n << ", " << probability;
      }
  EXPECT_GT(finite, 500);
}

TEST(TheProbableBound, IsTheRigorousOneForProbability1AndForExactKahanAndDoubleWord) {
  for (const Method* m : sums_of("cpu"))
    for (const FormatInfo& input : formats)
      for (const std::size_t n : {0, 1, 2, 1000, 100'000}) {
        const Number one = with_format(*m->format, []<class F>() { return Number::of(convert<F>(1.0)); });
        const double certain = m->bound(input, n, one, 60);
        EXPECT_EQ(m->bound(input, n, one, 60, {.probability = 1}), certain) << m->name;
        if (m->accumulator != "plain" && m->accumulator != "neumaier") {
          EXPECT_EQ(m->bound(input, n, one, 60, {.probability = 0.5}), certain) << m->name;
        }
      }
}

TEST(TheProbableBound, GrowsWithProbabilityUpToTheRigorousOne) {
  int less = 0;
  for (const Method* m : sums_of("cpu"))
    for (const FormatInfo& input : formats)
      for (const std::size_t n : {1, 2, 10, 1000, 100'000, 100'000'000}) {
        const Number one = with_format(*m->format, []<class F>() { return Number::of(convert<F>(1.0)); });
        double last = 0;
        for (const double probability : {1e-300, 0.001, 0.3, 0.9, 0.99, 0.999999, 1 - 0x1p-53, 1.0}) {
          const double bound = m->bound(input, n, one, 60, {.probability = probability});
          EXPECT_GE(bound, last) << m->name << ", n = " << n << ", " << probability;
          last = bound;
          less += bound < m->bound(input, n, one, 60);
        }
      }
  EXPECT_GT(less, 500);
}

TEST(TheProbableBound, IsFarBelowTheRigorousOneForLongSumsOfFewBits) {
  const FormatInfo& format = format_info<fp16>();
  const Number one = Number::of(fp16{1.0f});
  const Method& serial = find("serial/plain/fp16");
  EXPECT_GT(serial.bound(format, 3000, one, 100), 100);
  EXPECT_LT(serial.bound(format, 3000, one, 100, {.probability = 0.99}), 12);
  EXPECT_EQ(serial.bound(format, 300'000, one, 100, {.probability = 0.99}),
            serial.bound(format, 300'000, one, 100));
}

TEST(TheProbableBound, IsBrokenByEqualElementsLongBeforeTheirSumStagnates) {
  const std::vector<float> x(1'000'000, 0.1f);
  const Truth truth{Values{x}};
  const Method& loop = find("serial/plain/fp32");
  const Number result = loop(Values{x});
  const double error = truth.error_of(result).absolute;
  const double bound =
      loop.bound(format_info<fp32>(), x.size(), result, truth.magnitudes_rounded_up(), {.probability = 0.99});
  EXPECT_EQ(std::floor(error / bound), 46) << "roundings in one binade all have the same sign";
  EXPECT_LT(static_cast<double>(x.size()) * format_info<fp32>().unit_roundoff, 0.06) << "nothing stagnates";
  EXPECT_TRUE(
      truth.within(loop.bound(format_info<fp32>(), x.size(), result, truth.magnitudes_rounded_up()), result));
}

TEST(TheProbableBound, IsRefusedForAnInvalidProbability) {
  const Number one = Number::of(1.0f);
  for (const char* name : {"tree/plain/fp32", "exact/fp32"})
    for (const double p : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()})
      EXPECT_THROW(find(name).bound(format_info<fp32>(), 2, one, 1, {.probability = p}),
                   std::invalid_argument)
          << p;
}

constexpr std::size_t positive_elements = 200;
std::vector<KnownSum> of_random_elements(const FormatInfo& format, std::size_t n) {
  std::vector<KnownSum> all;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<double> x = uniform(n, seed);
    if (n == positive_elements)
      for (double& e : x) e = std::abs(e);
    all.push_back({"", {format, x}});
  }
  return all;
}

TEST_P(TheBoundOfEverySum, HoldsWithItsProbabilityForRandomElements) {
  // The elements have random signs or, with few enough elements that no order stagnates, one sign. fp64
  // elements are rounded first.
  for (const FormatInfo* input : {&input_of(m), &format_info<fp64>()})
    for (const std::size_t n : {positive_elements, std::size_t{700}}) {
      const std::vector<KnownSum>& sums = known_sums<of_random_elements>(*input, n);
      if (!m.accepts(*input)) continue;
      std::map<double, int> within{{0.5, 0}, {0.99, 0}};
      for (const auto& [name, x, truth] : sums) {
        const Number result = m(x.values());
        const double magnitudes = truth.magnitudes_rounded_up();
        for (auto& [probability, count] : within)
          count += truth.within(m.bound(*input, n, result, magnitudes, {.probability = probability}), result);
      }
      for (const auto& [probability, count] : within)
        EXPECT_GE(count, probability * static_cast<double>(sums.size())) << input->name << ", n = " << n;
    }
}

TEST(Bounds, AreFiniteForEveryLengthUnlessSomethingMayOverflow) {
  // γ_k needs k·u < 1, for bf16 fewer than 256 additions in turn. Beyond that, other bounds replace it.
  for (const Method& m : methods("sum")) {
    if (m.accumulator == "fixed_point")
      continue;  // its bound grows with n, as the rounding of its terms does
    for (const std::size_t n : {1u, 255u, 256u, 257u, 1000u, 2000u, 100'000u, 10'000'000u, 3'000'000'000u}) {
      // In fp16 intermediate results must stay below 65504. Ten times Σ|x| does, up to about 10^5 additions.
      const double magnitudes = m.format->max_exponent > 15 ? 100
                                : n <= 100'000              ? 4000
                                                            : 1000.0 / static_cast<double>(n);
      const Number zero{m.format, 0};
      EXPECT_LE(m.bound(input_of(m), n, zero, magnitudes),
                magnitudes * (1 + 0x1p-40) + m.format->smallest_subnormal)
          << m.name << ", n = " << n;
    }
  }
  const Number one = Number::of(bf16{1.0f});
  const auto serial = [&](const char* name, std::size_t n) {
    return find(name).bound(format_info<bf16>(), n, one, 1);
  };
  EXPECT_NEAR(serial("serial/plain/bf16", 257), 1, 1e-9) << "(n - 1)u";
  EXPECT_NEAR(serial("serial/plain/bf16", 1000), 2, 1e-9) << "|result| + Σ|x|";
  EXPECT_NEAR(serial("serial/neumaier/bf16", 101), 0x1p-8 + 100 * 100 * 0x1p-16, 1e-9)
      << "u|result| + ((n-1)u)²";
  EXPECT_LT(serial("serial/kahan/bf16", 1500), 0.4);
  EXPECT_NEAR(serial("serial/kahan/bf16", 2000), 2, 1e-9);
  const FormatInfo& bf = format_info<bf16>();
  const Number result = Number::of(convert<bf16>(5000.0));
  EXPECT_NEAR(sum_bound(Kahan<Scalar<bf16>>::bound, bf, bf, 5000, {0, 5000}, 5000, result).bound,
              5000 + result.to_double(), 1e-3)
      << "for any shape of the merges";
}

TEST(Bounds, HoldForLongSerialSumsOfFewBits) {
  Tally tally;
  for (const char* accumulator : {"plain", "kahan", "neumaier", "double_word"})
    for (const FormatInfo* format : {&format_info<bf16>(), &format_info<fp16>()})
      for (const std::size_t n : {300u, 1000u, 2000u, 20'000u, 200'000u})
        for (const Dataset& d : datasets(n)) {
          const Method& m = find("serial/" + std::string{accumulator} + "/" + std::string{format->name});
          std::vector<double> small = d.x;
          for (double& x : small) x *= 0x1p-12;
          for (const std::vector<double>& x : {d.x, small}) {
            const Array array{*format, x};
            const Truth truth{array.values()};
            const Number result = m(array.values());
            const double bound = m.bound(*format, n, result, truth.magnitudes_rounded_up());
            expect_within(truth, bound, result, m.name + ", " + d.name + ", n = " + std::to_string(n), tally);
            const bool may_overflow = format->max_exponent == 15 && truth.magnitudes_rounded_up() > 5000;
            EXPECT_TRUE(std::isfinite(bound) || may_overflow) << m.name << ", " << d.name << ", n = " << n;
          }
        }
  EXPECT_GT(tally.finite, 700);
}

TEST(Bounds, AreInfiniteIfSomethingMayOverflow) {
  for (const char* name : {"tree/plain/fp16", "tree/kahan/fp16", "serial/double_word/fp16"}) {
    EXPECT_FALSE(std::isfinite(find(name).bound(format_info<fp16>(), 100, Number::of(fp16{1.0f}), 1e6)))
        << name;
    EXPECT_FALSE(
        std::isfinite(find(name).bound(format_info<fp16>(), 100, Number{&format_info<fp16>(), 0x7c00}, 1)));
  }
  EXPECT_TRUE(
      std::isfinite(find("tree/plain/fp16").bound(format_info<fp16>(), 100, Number::of(fp16{1.0f}), 60000)))
      << "no partial sum of a plain sum exceeds Σ|x| plus the error";
  EXPECT_FALSE(std::isfinite(
      find("exact/fp16").bound(format_info<fp32>(), 2, Number{&format_info<fp16>(), 0x7c00}, 1e6)));
}

TEST(Bounds, OfOneElementInItsOwnFormatAreZero) {
  for (const Method* m : sums_of("cpu"))
    if (!takes_no_order(m->accumulator)) {
      EXPECT_EQ(m->bound(*m->format, 1, Number{m->format, 0}, 1), 0) << m->name;
    }
}

}  // namespace
}  // namespace samesum
