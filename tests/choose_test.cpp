#include "samesum/catalogue/choose.hpp"

#include <cmath>
#include <map>

#include "harness/truth.hpp"
#include "samesum/catalogue/describe.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using harness::Truth;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// --- the reference definition -----------------------------------------------------------------------

/// Returns the bound relative to the sum. The bound is that of the smallest number R of the format with R >=
/// |sum| + bound(R); bisection finds R, since the bits of positive numbers have the order of the numbers.
double literal_bound(const Method& m, const Requirements& w, double magnitudes, double sum) {
  const FormatInfo& input = *find_format(w.input);
  const auto bound = [&](std::uint64_t bits) {
    return prior_bound(m, input, w.length, magnitudes, {m.format, bits}, w.probability);
  };
  std::uint64_t low = 0, high = m.format->infinity;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    const double value = Number{m.format, middle}.to_double();
    value >= sum + bound(middle) ? high = middle : low = middle + 1;
  }
  return bound(low) / sum;
}

double literal_bound(const Method& m, const Requirements& w) {
  const double magnitudes = w.magnitudes.value_or(static_cast<double>(w.length)),
               sum = magnitudes / w.condition;
  if (m.accumulator == "exact")
    return magnitudes > m.format->max_finite
               ? HUGE_VAL
               : std::max(m.format->unit_roundoff, m.format->smallest_subnormal / 2 / sum);
  return std::isfinite(literal_bound(m, w, magnitudes, magnitudes)) ? literal_bound(m, w, magnitudes, sum)
                                                                    : HUGE_VAL;
}

bool literally_meets(const Method& m, const Requirements& w) {
  const double magnitudes = w.magnitudes.value_or(static_cast<double>(w.length));
  const double sum = magnitudes / w.condition, u = find_format(w.input)->unit_roundoff;
  const double tolerance = w.relative_error ? *w.relative_error : *w.ulps * u;
  if (m.accumulator == "exact") {
    if (magnitudes > m.format->max_finite) return std::isinf(tolerance);
    const double normal = m.format->unit_roundoff * (w.ulps ? 0.5 : 1);
    return normal <= tolerance && m.format->smallest_subnormal / 2 <= tolerance * sum;
  }
  return literal_bound(m, w) <= tolerance;
}

/// Returns the seconds at the given length; between two measured lengths they are interpolated as a power of
/// n.
std::optional<double> literal_cost(const Method& m, const Requirements& w, std::span<const Cost> costs) {
  const double n = static_cast<double>(w.length);
  std::optional<Cost> below, above;
  for (const Cost& c : costs) {
    if (c.method != m.name || c.input != w.input) continue;
    // If a length has several costs, the last one counts.
    if (c.n <= w.length && (!below || c.n >= below->n)) below = c;
    if (c.n >= w.length && (!above || c.n <= above->n)) above = c;
  }
  if (!below && !above) return std::nullopt;
  if (!below) return above->seconds;
  const double first = static_cast<double>(below->n);
  if (!above) return below->seconds / first * n;
  if (above->n == below->n) return below->seconds;
  const double exponent =
      std::log2(above->seconds / below->seconds) / std::log2(static_cast<double>(above->n) / first);
  return below->seconds * std::exp2(exponent * std::log2(n / first));
}

/// Filters the methods and returns the cheapest; nullptr if none is left.
const Method* literal_choice(const Requirements& w, std::span<const Cost> costs) {
  std::multimap<std::tuple<bool, double, bool, int, std::uint64_t>, const Method*> fit;
  for (const Method& m : methods("sum")) {
    if (m.promise < w.promise || (w.backend.empty() ? m.backend == "reference" : m.backend != w.backend) ||
        !m.accepts(*find_format(w.input)))
      continue;
    if (!literally_meets(m, w)) continue;
    const auto cost = literal_cost(m, w, costs);
    fit.insert(
        {{!cost, cost.value_or(0), m.is_slow, m.operations_per_element, m.height(w.length).total()}, &m});
  }
  return fit.empty() ? nullptr : fit.begin()->second;
}

// --- 1000 random requirements ----------------------------------------------------------------------------

class Random {
 public:
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
  std::mt19937_64 random_{2026};
};

Requirements random_requirements(Random& random) {
  Requirements w;
  w.length = static_cast<std::size_t>(std::exp2(random.between(0, 36)));
  w.input = formats[random.below(formats.size())].name;
  w.promise = static_cast<Promise>(random.below(4));
  random.below(2) ? w.relative_error = std::exp2(random.between(-54, 1))
                  : w.ulps = std::exp2(random.between(-2, 30));
  w.condition = std::exp2(random.between(0, random.below(2) ? 30 : 2));
  w.backend = std::array<std::string_view, 4>{"", "", "cpu", "reference"}[random.below(4)];
  if (random.below(3) == 0) w.probability = std::array{0.5, 0.9, 0.99, 0.999999}[random.below(4)];
  const double most = static_cast<double>(w.length) * find_format(w.input)->max_finite;
  if (random.below(3) == 0)
    w.magnitudes =
        std::clamp(std::exp2(random.between(-40, 40)), find_format(w.input)->smallest_subnormal, most);
  return w;
}

/// Returns random costs for some methods at some lengths, so that no method is cheap everywhere.
std::vector<Cost> random_costs(Random& random) {
  std::vector<Cost> costs;
  for (const Method& m : methods("sum"))
    for (const FormatInfo& input : formats)
      for (std::size_t i = random.below(4); i > 0; --i)
        costs.push_back({m.name, input.name, static_cast<std::size_t>(std::exp2(random.between(0, 30))),
                         std::exp2(random.between(-20, 0))});
  return costs;
}

TEST(AChoice, EqualsThatOfBruteForceFor1000RandomRequirements) {
  Random random;
  int possible = 0;
  std::map<std::string, int> chosen;
  for (int i = 0; i < 1000; ++i) {
    const Requirements w = random_requirements(random);
    const std::vector<Cost> made = random_costs(random);
    const std::span<const Cost> costs = i % 2 ? std::span<const Cost>{made} : shipped_costs().costs;
    const Method* expected = literal_choice(w, costs);
    try {
      const Choice c = choose(w, costs);
      for (const Candidate& o : c.others) {
        const double literal = literal_bound(*o.method, w);
        EXPECT_TRUE(o.bound == literal || std::abs(o.bound / literal - 1) < 1e-9)
            << i << ": " << o.method->name;
      }
      EXPECT_EQ(c.best.method, expected) << i << ": " << c.best.method->name << " " << c.best.bound;
      ++chosen[c.best.method->name];
      ++possible;
    } catch (const NoSuitableMethod& e) {
      EXPECT_EQ(expected, nullptr) << i << ": " << e.what();
    }
  }
  EXPECT_GT(possible, 500);
  EXPECT_LT(possible, 1000);
  EXPECT_GT(chosen.size(), 20u) << "the requirements are too similar";
}

/// Returns random elements of one or both signs, over few or many binades.
std::vector<double> random_data(std::size_t n, Random& random) {
  const std::uint64_t seed = random.below(1'000'000);
  std::vector<double> x = random.below(2) ? uniform(n, seed) : wide(n, 12, seed);
  if (random.below(2))
    for (double& e : x) e = std::abs(e);
  return x;
}

/// Results that are subnormal doubles are off by up to half of the smallest one, unless they are sums of
/// doubles.
TEST(AChoice, CountsTheRoundingOfResultsThatAreSubnormal) {
  struct Tiny {
    const char* operation;
    std::size_t length;
    const char* input;
    double magnitudes, relative_error;
    bool is_possible;
  };
  constexpr double least = 0x1p-1074, u = 0x1p-53;
  for (const Tiny& t : {Tiny{"sum", 1, "fp64", least, u, true},
                        {"sum_of_magnitudes", 3, "fp64", 3 * least, u, true},
                        {"dot", 1, "fp64", 2 * least, 0.25, false},
                        {"dot", 1, "fp64", 2 * least, 0.51, true},
                        {"dot", 1, "fp64", 0x1p-1000, u, true},
                        {"dot", 1, "fp32", 0x1p-298, u, true},
                        {"squared_norm", 1, "fp64", 2 * least, 0.25, false},
                        {"squared_norm", 1, "fp64", 0x1p-1000, u, true},
                        {"mean", 2, "fp64", 0x1p-1060, 0x1p-14, false},
                        {"mean", 2, "fp64", 0x1p-1060, 0x1p-12, true},
                        {"mean", 3, "fp64", least, 1, false}}) {
    const Requirements w{.operation = t.operation,
                         .length = t.length,
                         .input = t.input,
                         .relative_error = t.relative_error,
                         .magnitudes = t.magnitudes};
    bool is_possible = true;
    try {
      EXPECT_LE(choose(w).best.bound, t.relative_error) << t.operation;
    } catch (const NoSuitableMethod&) {
      is_possible = false;
    }
    EXPECT_EQ(is_possible, t.is_possible) << t.operation << " of " << t.input << ", " << t.magnitudes;
  }
}

TEST(AChoice, KeepsItsToleranceOnRandomData) {
  Random random;
  int measured = 0, kept = 0;
  double nearest = 0, expected = 0;  // expected: number of probable tolerances that hold
  for (int i = 0; i < 1000; ++i) {
    Requirements w = random_requirements(random);
    w.length = static_cast<std::size_t>(std::exp2(random.between(0, 12)));
    const Array x{*find_format(w.input), random_data(w.length, random)};
    const Truth truth{x.values()};
    if (!std::isfinite(truth.condition())) continue;
    w.condition = truth.condition() * (1 + 1e-12);
    w.magnitudes = truth.magnitudes_rounded_up();
    try {
      const Method& m = *choose(w).best.method;
      const harness::Error error = truth.error_of(m(x.values()));
      const double allowed = w.ulps ? *w.ulps * truth.ulp(*find_format(w.input)) : *w.relative_error;
      const double seen = w.ulps ? error.absolute : error.relative;
      const bool keeps = seen <= allowed * (1 + 1e-12);
      nearest = std::max(nearest, seen / allowed);
      ++measured;
      if (w.probability < 1)
        kept += keeps, expected += w.probability;
      else
        EXPECT_TRUE(keeps) << m.name << ", n = " << w.length << ": " << seen << " > " << allowed;
    } catch (const NoSuitableMethod&) {
    }
  }
  EXPECT_GT(measured, 500);
  EXPECT_GT(expected, 100);
  EXPECT_GE(kept, expected);
  EXPECT_GT(nearest, 0.1)
      << "no error comes near its tolerance: the test would miss a bound that is too small";
}

double exactly(std::string_view operation, Values x, Values y) {
  const std::string name = std::string{operation} + "/exact/fp64";
  return (operation == "dot" ? reduce(name, x, y) : reduce(name, x)).to_double();
}

TEST(AChoice, KeepsItsToleranceForOtherOperations) {
  Random random;
  for (const char* operation : {"mean", "dot", "squared_norm", "sum_of_magnitudes", "norm", "max", "argmin"})
    for (int i = 0; i < 60; ++i) {
      Requirements w = random_requirements(random);
      w.operation = operation;
      w.length = 1 + random.below(3000);
      w.promise = Promise::everywhere;
      w.backend = "cpu";
      w.probability = 1;
      w.condition = 1;  // all elements are positive
      w.ulps = {};
      w.relative_error = std::exp2(random.between(-50, -5));
      std::vector<double> data = uniform(w.length, random.below(1000));
      for (double& e : data) e = std::abs(e) + 0.5;
      const Array x{*find_format(w.input), data};
      const double truth = w.operation == "norm" ? std::sqrt(exactly("squared_norm", x.values(), x.values()))
                           : w.operation == "max" || w.operation == "argmin"
                               ? 1
                               : exactly(operation, x.values(), x.values());
      w.magnitudes = truth * (1 + 1e-12) * (w.operation == "mean" ? static_cast<double>(w.length) : 1);
      try {
        const Candidate best = choose(w).best;
        EXPECT_LE(best.bound, *w.relative_error) << best.method->name;
        if (best.method->returns_index || w.operation == "max") {
          EXPECT_EQ(best.bound, 0) << best.method->name;
          continue;
        }
        const Method& m = *best.method;
        const double result = (m.inputs == 2 ? m(x.values(), x.values()) : m(x.values())).to_double();
        EXPECT_LE(std::abs(result / truth - 1), *w.relative_error * (1 + 1e-9) + 1e-15) << m.name;
      } catch (const NoSuitableMethod&) {
      }
    }
}

// --- reasons and messages ---------------------------------------------------------------------------

const Candidate& other(const Choice& c, std::string_view name) {
  return *std::ranges::find(c.others, name, [](const Candidate& o) { return o.method->name; });
}

TEST(AChoice, StatesWhyEachOtherMethodWasNotChosen) {
  const std::vector<Cost> costs{{"sum/tree/kahan/fp32@cpu", "fp32", 1000, 2e-6},
                                {"sum/exact/fp32@cpu", "fp32", 1000, 5e-6},
                                {"sum/serial/plain/fp32@cpu", "fp32", 1000, 1e-6}};
  const Choice c = choose({.length = 1000, .input = "fp32", .relative_error = 1e-6, .backend = "cpu"}, costs);
  EXPECT_EQ(c.best.method->name, "sum/tree/kahan/fp32@cpu");
  EXPECT_THAT(c.best.reason,
              AllOf(StartsWith("bound at most 1e-06, promise everywhere. "),
                    HasSubstr(" methods qualify; of the 2 with a known cost, this is the fastest")));
  EXPECT_EQ(c.best.seconds, 2e-6);
  EXPECT_EQ(c.others.size(), sums_of("cpu").size() - 2) << "hopper takes no elements of fp32";
  EXPECT_EQ(c.others[0].method->name, "sum/exact/fp32@cpu")
      << "the second cheapest comes first among the others";
  EXPECT_EQ(c.others[0].reason, "2.5 times as long");
  EXPECT_EQ(other(c, "sum/serial/plain/fp32@cpu").reason, "bound above 1e-06");
  EXPECT_EQ(other(c, "sum/atomic/plain/fp64@cpu").reason, "only promises none");
  EXPECT_EQ(other(c, "sum/tree/kahan/fp64@cpu").reason, "cost not known");
  EXPECT_EQ(other(c, "sum/serial/plain/bf16@cpu").reason, "bound above 1e-06");
  const Choice longer = choose({.length = 2000, .input = "fp32", .relative_error = 1e-6, .backend = "cpu"});
  EXPECT_EQ(other(longer, "sum/serial/kahan/bf16@cpu").reason, "no finite bound")
      << "nothing is proved beyond n = 1560";
}

TEST(AChoice, HasTheFewestOperationsAndTheLowestTreeIfCostsAreUnknown) {
  const Choice c = choose({.length = 1'000'000, .input = "fp32", .ulps = 0.1, .backend = "cpu"}, {});
  EXPECT_EQ(c.best.method->name, "sum/pairwise/plain/fp64@cpu");
  EXPECT_THAT(c.best.reason,
              HasSubstr(" methods qualify; no cost is known, and this one has the fewest operations"));
  const std::vector<Cost> one{{"sum/exact/fp64@cpu", "fp32", 1000, 1e-3}};
  EXPECT_THAT(choose({.length = 1000, .input = "fp32", .ulps = 0.1, .backend = "cpu"}, one).best.reason,
              HasSubstr(" methods qualify; only the cost of this one is known"));
}

TEST(AChoice, IsTheExactSumIfHalfAnUlpIsRequired) {
  const Choice c = choose({.length = 1000, .input = "fp64", .ulps = 0.5, .backend = "cpu"});
  EXPECT_EQ(c.best.method->name, "sum/exact/fp64@cpu");
  EXPECT_THAT(c.best.reason, HasSubstr("No other method qualifies"));
  EXPECT_EQ(c.best.bound, 0x1p-53);
}

TEST(AChoice, DependsOnTheCondition) {
  const auto bound = [](double condition) {
    const Choice c =
        choose({.length = 1 << 20, .relative_error = 1, .backend = "cpu", .condition = condition});
    return c.best.method->name == "sum/tree/plain/fp64@cpu" ? c.best.bound
                                                            : other(c, "sum/tree/plain/fp64@cpu").bound;
  };
  EXPECT_NEAR(bound(1), 46 * 0x1p-53, 1e-18) << "38 + 8 additions";
  EXPECT_NEAR(bound(1e6) / bound(1), 1e6, 1);
}

TEST(AChoice, MayBeCheaperIfRareErrorsAreAllowed) {
  const std::vector<Cost> costs{{"sum/tree/plain/fp32@cpu", "fp32", 1 << 20, 1e-4},
                                {"sum/pairwise/plain/fp32@cpu", "fp32", 1 << 20, 2e-4}};
  const auto chosen = [&](double probability) {
    return choose({.length = 1 << 20,
                   .input = "fp32",
                   .relative_error = 1.5e-6,
                   .probability = probability,
                   .backend = "cpu"},
                  costs)
        .best;
  };
  EXPECT_EQ(chosen(1).method->name, "sum/pairwise/plain/fp32@cpu");
  EXPECT_EQ(chosen(0.99).method->name, "sum/tree/plain/fp32@cpu");
  EXPECT_LT(chosen(0.99).seconds, chosen(1).seconds);
}

TEST(AChoice, AvoidsMethodsThatMayOverflow) {
  const auto reason = [](double magnitudes, const char* name) {
    const Choice c = choose(
        {.length = 100, .input = "fp16", .relative_error = 0.1, .backend = "cpu", .magnitudes = magnitudes},
        std::vector<Cost>{{"sum/exact/fp64@cpu", "fp16", 100, 1e-6}});
    return other(c, name).reason;
  };
  EXPECT_EQ(reason(100, "sum/pairwise/plain/fp16@cpu"), "cost not known");
  EXPECT_EQ(reason(65400, "sum/pairwise/plain/fp16@cpu"), "no finite bound")
      << "with its error, a partial sum may exceed 65504";
  EXPECT_EQ(reason(60000, "sum/pairwise/plain/fp16@cpu"), "cost not known");
  EXPECT_EQ(reason(60000, "sum/pairwise/kahan/fp16@cpu"), "no finite bound")
      << "twice the magnitudes exceed 65504";
}

TEST(AChoice, AllowsAnyErrorIfTheToleranceIsInfinite) {
  const Choice c = choose({.length = 1 << 20, .input = "bf16", .relative_error = HUGE_VAL, .backend = "cpu"},
                          std::vector<Cost>{{"sum/serial/plain/bf16@cpu", "bf16", 1, 1e-9}});
  EXPECT_EQ(c.best.method->name, "sum/serial/plain/bf16@cpu");
}

TEST(RequirementsThatNoMethodFulfils, GetTheNearestMethod) {
  try {
    choose({.length = 1000, .input = "fp32", .relative_error = 1e-20, .backend = "cpu"});
    FAIL();
  } catch (const NoSuitableMethod& e) {
    EXPECT_STREQ(e.what(),
                 "samesum: choose: no method @cpu with promise everywhere has a bound of at most 1e-20 "
                 "relative to the result; the smallest is 1.11e-16, of sum/exact/fp64@cpu");
  }
}

TEST(RequirementsThatNoMethodFulfils, GetTheNearestMethodWithAWeakerPromise) {
  try {
    choose(
        {.length = 1, .input = "fp32", .promise = Promise::order_free, .relative_error = 0, .backend = "cpu"},
        std::vector<Cost>{{"sum/atomic/plain/fp32@cpu", "fp32", 1, 1e-9}});
    FAIL();
  } catch (const NoSuitableMethod& e) {
    EXPECT_THAT(e.what(), HasSubstr(", of sum/exact/fp64@cpu; with promise everywhere, "));
    EXPECT_THAT(e.what(), EndsWith(" has a bound of 0"));
  }
}

TEST(RequirementsThatNoMethodFulfils, AreReportedInTheirUnit) {
  try {
    choose({.length = 1000, .input = "fp64", .ulps = 0.1, .backend = "cpu"});
    FAIL();
  } catch (const NoSuitableMethod& e) {
    EXPECT_THAT(
        e.what(),
        HasSubstr("a bound of at most 0.1 ulps of fp64; the smallest is 0.5 ulps, of sum/exact/fp64@cpu"));
  }
}

TEST(AnInvalidRequirement, IsRefusedWithTheNameOfItsArgument) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = HUGE_VAL;
  const std::vector<std::pair<Requirements, std::string>> wrong{
      {{.relative_error = 1}, "length is 0"},
      {{.length = 1, .input = "fp8", .relative_error = 1},
       "input is 'fp8'; it must be one of fp16, bf16, fp32, fp64"},
      {{.operation = "summ", .length = 1, .relative_error = 1}, "operation is 'summ'"},
      {{.operation = "moments", .length = 1, .relative_error = 1},
       "operation is 'moments', which has more than one result to bound"},
      {{.operation = "softmax", .length = 1, .relative_error = 1},
       "operation is 'softmax', which has more than one result to bound"},
      {{.length = 1}, "relative_error or ulps is missing"},
      {{.length = 1, .relative_error = 1, .ulps = 1}, "relative_error and ulps are both given"},
      {{.length = 1, .relative_error = -1}, "relative_error is -1"},
      {{.length = 1, .relative_error = nan}, "relative_error is nan"},
      {{.length = 1, .ulps = -0.5}, "ulps is -0.5"},
      {{.length = 1, .relative_error = 1, .probability = 0}, "probability is 0"},
      {{.length = 1, .relative_error = 1, .probability = 1.5}, "probability is 1.5"},
      {{.length = 1, .relative_error = 1, .probability = nan}, "probability is nan"},
      {{.length = 1, .relative_error = 1, .backend = "gpu"},
       "backend is 'gpu'; it must be one of reference, cpu, cuda"},
      {{.length = 1, .relative_error = 1, .condition = 0.5}, "condition is 0.5"},
      {{.length = 1, .relative_error = 1, .condition = inf}, "condition is inf"},
      {{.length = 1, .relative_error = 1, .magnitudes = 0}, "magnitudes is 0"},
      {{.length = 10, .input = "bf16", .relative_error = 1, .magnitudes = 1e40},
       "magnitudes is 1e+40, but 10 elements of bf16 have at most 3.39e+39"},
      {{.length = 10, .input = "fp16", .relative_error = 1, .magnitudes = 1e-9},
       "magnitudes is 1e-09, but one element of fp16 has at least 5.96e-08 unless it is 0"},
      {{.length = 1, .relative_error = 1, .condition = 1e300, .magnitudes = 1e-300},
       "condition is 1e+300, but with magnitudes of 1e-300 the sum might be 0"}};
  for (const auto& [required, message] : wrong) try {
      choose(required);
      ADD_FAILURE() << message;
    } catch (const std::invalid_argument& e) {
      EXPECT_THAT(e.what(), HasSubstr("samesum: choose: " + message));
    }
  const std::vector<Cost> costs{{"sum/exact/fp32@cpu", "fp32", 10, -1}};
  EXPECT_THROW(choose({.length = 1, .relative_error = 1}, costs), std::invalid_argument);
}

TEST(ShippedCosts, BelongToExistingMethods) {
  ASSERT_GT(shipped_costs().costs.size(), 500u);
  for (const Cost& c : shipped_costs().costs) {
    EXPECT_NE(find_format(c.input), nullptr) << c.input;
    if (c.method.ends_with("@cpu")) {
      EXPECT_EQ(find(c.method).name, c.method) << "costs are looked up by full names";
    }
  }
}

}  // namespace
}  // namespace samesum
