/// Checks the exact results of operations against known answers, the exact methods and the bounds of all
/// methods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cases.hpp"
#include "harness/sample.hpp"
#include "samesum/samesum.hpp"
#include "support.hpp"

namespace samesum::harness {
namespace {

using samesum::testing::Array;

TEST(TheTruthOfAnOperation, ExistsForAllWithOneNumberPerVectorAndForMomentsAndSoftmax) {
  std::set<std::string> needed;
  for (const Method& m : methods())
    if (m.operation != "log_softmax" && !m.returns_index && !m.is_scan() && !m.takes_window && !m.takes_keys)
      needed.insert(m.operation);
  const std::vector<std::string> all = Truth::operations();
  EXPECT_EQ(std::set(all.begin(), all.end()), needed);
  const std::vector<double> x{1};
  EXPECT_THROW(Truth::of("argmax", Values{x}), std::invalid_argument);
}

TEST(TheTruthOfAnOperation, AddsMoreProductsThanAnIntegerHolds) {
  const std::vector<double> x((std::size_t{1} << 22) + 1, std::nextafter(2.0, 0.0)), y(x.size(), -x[0]);
  const BigInteger significand = (BigInteger{1} << 53) - 1,
                   sum = (BigInteger{x.size()} * significand * significand) << (-2 * exact_unit - 104);
  EXPECT_EQ(Truth::of("squared_norm", Values{x}).value(), sum);
  const Truth dot = Truth::of("dot", Values{x}, Values{y});
  EXPECT_EQ(dot.value(), -sum);
  EXPECT_EQ(dot.magnitudes(), sum);
}

TEST(TheTruthOfAnOperation, IsThatOfAllElementsIfThreadsComputeParts) {
  const std::vector<double> x(10'000, 0.0);
  EXPECT_EQ(Truth::of("logsumexp", Values{x}).rounded(format_info<fp64>()), Number::of(0x1.26bb1bbb55516p+3));
  EXPECT_EQ(Truth::of("softmax", Values{x}).rounded(format_info<fp64>()), Number::of(1e-4));
}

struct Known {
  const char* operation;
  std::vector<double> x, y;
  double result, condition;
  std::size_t result_index = 0;
};

class TheTruthOf : public ::testing::TestWithParam<Known> {};

TEST_P(TheTruthOf, KnownDataIsTheKnownAnswer) {
  const auto& [operation, x, y, result, condition, index] = GetParam();
  const Truth t = Truth::of(operation, Values{x}, y.empty() ? std::nullopt : std::optional{Values{y}}, index);
  EXPECT_EQ(t.rounded(format_info<fp64>()), Number::of(result));
  EXPECT_EQ(t.size(), x.size());
  if (std::isfinite(condition))
    EXPECT_NEAR(t.condition(), condition, 1e-15 * condition);
  else
    EXPECT_EQ(Number::of(t.condition()), Number::of(condition));
}

const double above = std::nextafter(1.0, 2.0), log_2 = 0x1.62e42fefa39efp-1;
INSTANTIATE_TEST_SUITE_P(
    Cases, TheTruthOf,
    ::testing::Values(
        Known{"mean", {1, 2, 4}, {}, 7.0 / 3, 1}, Known{"mean", {}, {}, NAN, NAN},
        Known{"mean", {5e-324, 0}, {}, 0, 1}, Known{"mean", {5e-324, 5e-324, 0}, {}, 5e-324, 1},
        Known{"mean", {1, INFINITY}, {}, INFINITY, NAN}, Known{"mean", {-0.0, -0.0}, {}, -0.0, NAN},
        Known{"mean", {3, -1}, {}, 1, 2}, Known{"sum_of_magnitudes", {-3, 1}, {}, 4, 1},
        Known{"sum_of_magnitudes", {-INFINITY, INFINITY}, {}, INFINITY, NAN},
        Known{"squared_norm", {3, -4}, {}, 25, 2}, Known{"squared_norm", {1e-200}, {}, 0, 2},
        Known{"squared_norm", {1e200}, {}, INFINITY, 2}, Known{"norm", {3, -4}, {}, 5, 1},
        Known{"norm", {0x3p+600, -0x4p+600}, {}, 0x5p+600, 1},
        Known{"norm", {1, 1}, {}, 0x1.6a09e667f3bcdp+0, 1}, Known{"norm", {5e-324, 5e-324}, {}, 5e-324, 1},
        Known{"norm", {NAN, INFINITY}, {}, NAN, NAN}, Known{"norm", {}, {}, 0, NAN},
        Known{"dot", {1e200, 1, -1e200}, {1e200, 3, 1e200}, 3, INFINITY},
        Known{"dot", {2, 3}, {4, -1}, 5, 11.0 / 5}, Known{"dot", {INFINITY, 1}, {0, 1}, NAN, NAN},
        Known{"dot", {-0.0}, {1}, -0.0, NAN}, Known{"prod", {3, -5, 2}, {}, -30, 3},
        Known{"prod", {0x1p+900, 0x1p+900, 0x1p-900, 0x1p-900, 7}, {}, 7, 5}, Known{"prod", {}, {}, 1, 0},
        Known{"prod", {1e300, -1e300}, {}, -INFINITY, 2}, Known{"prod", {-1e-300, 1e-300}, {}, -0.0, 2},
        Known{"prod", {0, -1}, {}, -0.0, NAN}, Known{"prod", {0, INFINITY}, {}, NAN, NAN},
        Known{"min", {2, -3, 1}, {}, -3, 1}, Known{"min", {}, {}, INFINITY, NAN},
        Known{"min", {0.0, -0.0}, {}, -0.0, NAN}, Known{"max", {2, -3, NAN}, {}, NAN, NAN},
        Known{"max", {-0.0, 0.0}, {}, 0, NAN}, Known{"max", {-INFINITY, -2}, {}, -2, 1},
        Known{"logsumexp", {0, 0}, {}, log_2, 0}, Known{"logsumexp", {1000, -1e300}, {}, 1000, 1},
        Known{"logsumexp", {}, {}, -INFINITY, NAN}, Known{"logsumexp", {-INFINITY, 3}, {}, 3, 1},
        Known{"logsumexp", {INFINITY, 3}, {}, INFINITY, NAN}, Known{"moments", {1, 2, 4}, {}, 7.0 / 3, 1, 0},
        Known{"moments", {INFINITY, 1}, {}, INFINITY, NAN, 0},
        Known{"moments", {INFINITY, 1}, {}, NAN, NAN, 1}, Known{"moments", {}, {}, NAN, NAN, 0},
        Known{"moments", {1, 2, 4}, {}, 14.0 / 9, std::sqrt(63.0 / 14), 1},
        Known{"moments", {1, above}, {}, 0x1p-106, 0x1p+53, 1}, Known{"moments", {3, 3}, {}, 0, NAN, 1},
        Known{"moments", {}, {}, NAN, NAN, 1}, Known{"softmax", {3, 3, 3, 3}, {}, 0.25, 4.5, 2},
        Known{"softmax", {0, -INFINITY}, {}, 1, 0, 0},
        Known{"softmax", {-700, 0}, {}, std::exp(-700), 700, 0},
        Known{"softmax", {1, INFINITY}, {}, NAN, NAN, 0}, Known{"softmax", {1, NAN}, {}, NAN, NAN, 0}));

TEST(TheTruthOfSoftmax, IsWithinTheBoundOfAllMethods) {
  std::size_t bounded = 0;
  for (const auto& c : samesum::testing::cases()) {
    const Array array = c.array();
    const Values x = array.values();
    if (x.size == 0) continue;
    const Truth first = Truth::of("softmax", x), last = Truth::of("softmax", x, {}, x.size - 1);
    for (const Method& m : methods("softmax")) {
      if (m.backend != "cpu" || !m.accepts(*x.format)) continue;
      with_format(*x.format, [&]<class F>() {
        std::vector<F> out(x.size);
        reduce(m, x, Layout::vector(x.size), std::span<F>{out});
        for (const auto& [truth, result] : {std::pair{&first, out.front()}, {&last, out.back()}}) {
          const Measurement found = judge(m, *x.format, *truth, Number::of(result));
          EXPECT_EQ(failure(found), std::nullopt) << c << found.value.to_double();
          bounded += std::isfinite(found.bound);
        }
      });
    }
  }
  EXPECT_GT(bounded, 100u);
}

TEST(TheTruthOfAnOperation, RoundsToTheBitsOfExactMethodsAndIsWithinTheBoundOfAll) {
  std::size_t bounded = 0;
  for (const auto& c : samesum::testing::cases()) {
    const Array array = c.array();
    const Inputs one{array.values()}, two{array.values(), array.values()};
    for (const std::string& operation : Truth::operations()) {
      if (operation == "softmax") continue;
      const Method& first = methods(operation).front();
      const Inputs& in = first.inputs == 2 ? two : one;
      for (std::size_t index = 0; index < static_cast<std::size_t>(first.results); ++index) {
        const Truth truth = Truth::of(operation, in.x, in.y, index);
        for (const Method& m : methods(operation)) {
          if (m.backend != "cpu" || !m.accepts(*in.x.format)) continue;
          const Measurement found = judge(m, *in.x.format, truth, result_of(m, in, {}), index);
          EXPECT_EQ(failure(found), std::nullopt) << c << index << ": " << found.value.to_double();
          bounded += std::isfinite(found.bound);
        }
      }
    }
  }
  EXPECT_GT(bounded, 1000u);
}

}  // namespace
}  // namespace samesum::harness
