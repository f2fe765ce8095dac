#include "samesum/bound.hpp"

#include <cmath>

#include "cases.hpp"
#include "harness/truth.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using harness::Truth;

struct Tally {
  int finite = 0, infinite = 0;
};

void expect_within(const Truth& truth, double bound, Number result, const std::string& what, Tally& tally) {
  if (!truth.finite()) return;
  std::isfinite(bound) ? ++tally.finite : ++tally.infinite;
  EXPECT_TRUE(truth.within(bound, result))
      << what << ": " << ::testing::PrintToString(result) << " is " << truth.error_of(result).absolute
      << " off, the bound is " << bound;
}

class EveryVariantsBound : public ::testing::TestWithParam<const Variant*> {};
INSTANTIATE_TEST_SUITE_P(Cpu, EveryVariantsBound, ::testing::ValuesIn(variants_of("cpu")), test_name);

TEST_P(EveryVariantsBound, HoldsOnEveryKindOfDataAndInput) {
  const Variant& v = *GetParam();
  Tally tally;
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {1, 2, 3, 10, 100, 1000, 3000, 40'000})
      for (const Dataset& d : datasets(n)) {
        const Array x{input, d.x};
        const Truth truth{x.values()};
        const Number result = v(x.values());
        const double bound = v.bound(input, n, truth.magnitudes_rounded_up(), result);
        expect_within(truth, bound, result,
                      d.name + ", n = " + std::to_string(n) + ", " + std::string{input.name}, tally);
      }
  RecordProperty("finite", tally.finite);
  RecordProperty("infinite", tally.infinite);
  EXPECT_GT(tally.finite, 100) << "the bound says nothing for most data";
}

TEST_P(EveryVariantsBound, HoldsOnTheKnownCases) {
  const Variant& v = *GetParam();
  Tally tally;
  for (const testing::Case& c : testing::cases()) {
    const testing::Array x = c.array();
    const Truth truth{x.values()};
    const Number result = v(x.values());
    expect_within(truth, v.bound(*c.format, c.x.size(), truth.magnitudes_rounded_up(), result), result,
                  c.name, tally);
  }
}

TEST_P(EveryVariantsBound, HoldsOn3000ShortSumsOfFewBits) {
  // Small integers times powers of two: where roundings conspire most easily.
  const Variant& v = *GetParam();
  std::mt19937_64 random{11};
  Tally tally;
  for (int i = 0; i < 3000; ++i) {
    std::vector<double> x(1 + random() % 12);
    for (double& e : x) {
      const double integer = static_cast<double>(random() % 512) - 256;
      e = integer * power_of_two(static_cast<int>(random() % 10) - 5);
    }
    const Array array{*v.format, x};
    const Truth truth{array.values()};
    const Number result = v(array.values());
    expect_within(truth, v.bound(*v.format, x.size(), truth.magnitudes_rounded_up(), result), result,
                  ::testing::PrintToString(x), tally);
  }
}

TEST(TheBound, IsNotFarFromTheWorstThatWasFound) {
  // Hill climbing over short bf16 arrays came so close to the part of each bound that is not the last
  // rounding. A bound that is quietly made smaller, or larger, shows here.
  const struct {
    const char* name;
    double attained;
    std::vector<double> x;
  } climbs[] = {
      {"serial/plain/bf16", 0.992, {0x1p-2, 0x1p+6}},
      {"serial/kahan/bf16",
       0.498,
       {-0x1.08p-1, -0x1.04p+2, 0x1.02p-6, -0x1.02p+3, -0x1.34p-7, -0x1.32p-5, 0x1.04p+2}},
      {"serial/neumaier/bf16", 0.246, {0x1.7ep+0, 0x1.06p-1, 0x1.fep+7}},
      {"serial/double_word/bf16", 0.164, {-0x1.02p-7, -0x1.04p-1, -0x1.cp+1}},
      {"pairwise/kahan/bf16", 0.048, {-0x1.32p-2, 0x1.a8p+0, -0x1.0cp+5, 0x1.16p-6}},
      {"pairwise/neumaier/bf16", 0.182, {-0x1.aap+2, -0x1.b4p+2, -0x1.7ep-12, -0x1.4cp+1}},
      {"pairwise/double_word/bf16",
       0.236,
       {0x1.88p+0, -0x1.9p+4, 0x1.acp-7, 0x1.0cp-5, -0x1.42p-7, -0x1.0cp+3, -0x1.46p-2}},
  };
  for (const auto& [name, attained, x] : climbs) {
    const Variant& v = find(name);
    const Array array{*v.format, x};
    const Truth truth{array.values()};
    const Number result = v(array.values());
    const double bound = v.bound(*v.format, x.size(), truth.magnitudes_rounded_up(), result);
    const double last = v.accumulator == "plain" ? 0 : std::abs(result.to_double()) * v.format->unit_roundoff;
    const double error = truth.error_of(result).absolute;
    EXPECT_LE(error, bound) << name;
    EXPECT_NEAR((error - last) / (bound - last), attained, 0.002) << name;
  }
}

TEST(TheBoundOfAState, HoldsForMergesInAnyShape) {
  std::mt19937_64 random{12};
  Tally tally;
  for (const Variant* v : variants_of("cpu")) {
    if (v->order != "serial") continue;
    const std::string name = v->accumulator + "/" + std::string{v->format->name};
    for (int round = 0; round < 60; ++round) {
      std::vector<double> all;
      std::vector<State> states;
      for (std::size_t i = 0, parts = 1 + random() % 20; i < parts; ++i) {
        // Half of the rounds add what the state has to round first.
        const FormatInfo& given = round % 2 ? *v->format : formats[random() % formats.size()];
        const Array part{given, wide(random() % 40, static_cast<int>(1 + random() % 10), random())};
        states.emplace_back(name).add(part.values());
        with_format(given, [&]<class F>() {
          for (const F& e : part.values().as<F>()) all.push_back(convert<double>(e));
        });
      }
      while (states.size() > 1) {
        const std::size_t into = random() % states.size();
        std::swap(states[into], states.front());
        states.front().merge(states.back());
        states.pop_back();
      }
      const Truth truth{all};
      expect_within(truth, states[0].bound(truth.magnitudes_rounded_up()), states[0].result(), name, tally);
    }
  }
  EXPECT_GT(tally.finite, 500);
}

TEST(AnEstimate, ReturnsTheVariantsBitsAndABoundThatHolds) {
  Tally tally;
  for (const Variant* v : variants_of("cpu", Promise::everywhere))
    for (const FormatInfo& input : formats)
      for (const std::size_t n : {0, 1, 5, 3000, 20'000})
        for (const Dataset& d : datasets(n)) {
          const Array x{input, d.x};
          const Estimate e = estimate(x.values(), v->name);
          const Truth truth{x.values()};
          EXPECT_EQ(e.value, (*v)(x.values())) << v->name;
          EXPECT_GE(e.magnitudes, truth.magnitudes_rounded_up() * (1 - 0x1p-52));
          expect_within(truth, e.bound, e.value, v->name + ", " + d.name + ", n = " + std::to_string(n),
                        tally);
        }
  EXPECT_GT(tally.finite, 1000);
}

TEST(AnEstimate, OfAPlainSumIsTighterThanTheAPrioriBound) {
  const Array x{format_info<fp32>(), uniform(20'000, 1)};
  const Variant& v = find("tree/plain/fp32");
  const Estimate e = estimate(x.values(), v.name);
  EXPECT_LT(e.bound, v.bound(format_info<fp32>(), 20'000, e.magnitudes, e.value) / 5);
}

TEST(AnEstimate, IsRefusedWhereTheTreeIsNotFixed) {
  EXPECT_THROW(estimate(std::vector<float>{1}, "atomic/plain/fp32"), std::invalid_argument);
}

TEST(Bounds, AreInfiniteWhereTheTheoryGivesNone) {
  // γ_k needs k·u < 1: for bf16, fewer than 256 additions in turn.
  const Number one = Number::of(bf16{1.0f});
  EXPECT_TRUE(std::isfinite(find("serial/plain/bf16").bound(format_info<bf16>(), 256, 1, one)));
  EXPECT_FALSE(std::isfinite(find("serial/plain/bf16").bound(format_info<bf16>(), 257, 1, one)));
  EXPECT_FALSE(
      std::isfinite(find("tree/plain/fp16").bound(format_info<fp16>(), 100, 1e6, Number::of(fp16{1.0f}))));
  EXPECT_FALSE(
      std::isfinite(find("exact/fp16").bound(format_info<fp32>(), 2, 1e6, {&format_info<fp16>(), 0x7c00})));
}

TEST(Bounds, OfOneElementInItsOwnFormatAreZero) {
  for (const Variant* v : variants_of("cpu"))
    if (v->accumulator != "exact") {
      EXPECT_EQ(v->bound(*v->format, 1, 1, Number{v->format, 0}), 0) << v->name;
    }
}

}  // namespace
}  // namespace samesum
