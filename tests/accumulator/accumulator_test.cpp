#include <array>
#include <cmath>
#include <limits>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/order/reference.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double max64 = std::numeric_limits<double>::max();

template <class A, class F> A state_of(const std::vector<double>& x) {
  A state;
  for (const double e : x) state.add(Scalar<F>::of(convert<F>(e)));
  return state;
}

template <class A> double value_of(const A& state) {
  return convert<double>(to_format<typename decltype(state.result())::Format>(state.result()));
}

TEST(BfloatOnes, StagnateWherePredicted) {
  SAMESUM_UNSANITIZED("it tests rounding");
  // In 8 bits, 256 + 1 rounds to 256. The correction of neumaier, also of 8 bits, stagnates at 256 as well;
  // kahan feeds its correction back into every addition.
  const Array ones{format_info<fp32>(), std::vector<double>(100'000, 1.0)};
  EXPECT_EQ(find("serial/plain/bf16")(ones.values()).to_double(), 256);
  EXPECT_EQ(find("serial/neumaier/bf16")(ones.values()).to_double(), 512);
  EXPECT_EQ(find("serial/kahan/bf16")(ones.values()).to_double(), 65536);
  EXPECT_EQ(find("exact/bf16")(ones.values()).to_double(), convert<double>(bf16{100'000.0}));
}

template <class A> class Compensated : public ::testing::Test {};
using CompensatedTypes =
    ::testing::Types<Kahan<Scalar<fp64>>, Neumaier<Scalar<fp64>>, DoubleWord<Scalar<fp64>>>;
TYPED_TEST_SUITE(Compensated, CompensatedTypes);

TYPED_TEST(Compensated, MergesCorrectionsWithTheRightSign) {
  // {1} with {2^53, 1}: the truth is 2^53 + 2, a wrong sign gives 2^53.
  const auto one = state_of<TypeParam, fp64>({1}), big = state_of<TypeParam, fp64>({0x1p53, 1});
  TypeParam merged = one, mirrored = big;
  merged.merge(big);
  mirrored.merge(one);
  EXPECT_EQ(value_of(merged), 0x1p53 + 2);
  EXPECT_EQ(value_of(mirrored), 0x1p53 + 2);
}

TYPED_TEST(Compensated, KeepsWhatSingleAdditionsLose) {
  EXPECT_EQ(value_of(state_of<TypeParam, fp64>({1, 0x1p-53, 0x1p-53, 0x1p-53, 0x1p-53})), 1 + 0x1p-51);
}

template <class A> class EveryAccumulator : public ::testing::Test {};
using AllTypes = ::testing::Types<Plain<Scalar<fp64>>, Kahan<Scalar<fp64>>, Neumaier<Scalar<fp64>>,
                                  DoubleWord<Scalar<fp64>>>;
TYPED_TEST_SUITE(EveryAccumulator, AllTypes);

TYPED_TEST(EveryAccumulator, HasTheSpecialValuesOfAPlainSum) {
  const double nan = std::nan("");
  const struct {
    std::vector<double> x;
    double expected;
  } cases[] = {{{inf, 1}, inf},
               {{1, inf, 1, 1}, inf},
               {{-inf, 1, 2}, -inf},
               {{inf, -inf}, nan},
               {{inf, -inf, 1, 2}, nan},
               {{nan, 1, 2}, nan},
               {{1, 2, nan}, nan},
               {{max64, max64, -max64}, inf},
               {{-max64, -max64, max64, max64}, -inf},
               {{inf, max64, inf}, inf},
               {{1, -1, inf}, inf}};
  for (const auto& c : cases) {
    const double in_turn = value_of(state_of<TypeParam, fp64>(c.x));
    TypeParam merged = state_of<TypeParam, fp64>({c.x[0]});
    for (std::size_t i = 1; i < c.x.size(); ++i) merged.merge(state_of<TypeParam, fp64>({c.x[i]}));
    for (const double actual : {in_turn, value_of(merged)}) {
      if (std::isnan(c.expected))
        EXPECT_EQ(to_bits(actual), Format<fp64>::canonical_nan) << ::testing::PrintToString(c.x);
      else
        EXPECT_EQ(actual, c.expected) << ::testing::PrintToString(c.x);
    }
  }
}

TYPED_TEST(EveryAccumulator, IsFiniteIfOnlyAnIntermediateResultOverflows) {
  constexpr double ulp = 0x1p971;  // of max64
  EXPECT_EQ(value_of(state_of<TypeParam, fp64>({-1.5 * ulp, max64})), max64 - ulp);
}

/// Returns the bits of a state's numbers as text, the same text for every NaN.
template <class A> std::string numbers_of(const A& state) {
  using C = decltype(state.result().v);
  std::array<C, sizeof(A) / sizeof(C)> numbers;
  std::memcpy(numbers.data(), &state, sizeof state);
  std::string text;
  for (const C x : numbers) text += x == x ? std::to_string(to_bits(x)) + ' ' : "nan ";
  return text;
}

template <template <class> class A, class F> void expect_that_one_element_is_enough() {
  using State = A<Scalar<F>>;
  std::mt19937_64 random{31};
  std::vector<double> x{0.0,
                        -0.0,
                        1,
                        -1,
                        inf,
                        -inf,
                        NAN,
                        Format<F>::max_finite,
                        -Format<F>::max_finite,
                        Format<F>::smallest_subnormal,
                        -Format<F>::smallest_subnormal};
  for (int i = 0; i < 300; ++i)
    x.push_back(std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 30) - 67));
  for (const double a : x) {
    const auto one = Scalar<F>::of(convert<F>(a));
    State added;
    added.add(one);
    EXPECT_EQ(numbers_of(State{one}), numbers_of(added)) << State::name << ' ' << Format<F>::name << ' ' << a;
    if (!State::adds_as_it_merges) continue;
    for (const double b : x) {
      const auto other = Scalar<F>::of(convert<F>(b));
      State adding{one}, merging{one};
      adding.add(other);
      merging.merge(State{other});
      ASSERT_EQ(numbers_of(adding), numbers_of(merging))
          << State::name << ' ' << Format<F>::name << ' ' << a << ' ' << b;
    }
  }
}

TEST(AStateOfOneElement, IsThatElementAndMergesAsItAddsIfDeclared) {
  SAMESUM_UNSANITIZED("it accesses no arrays");
  Formats::for_each([]<class F>() {
    Accumulators::for_each([]<template <class> class A>() { expect_that_one_element_is_enough<A, F>(); });
  });
}

TYPED_TEST(EveryAccumulator, KeepsTheSignOfZero) {
  const struct {
    std::vector<double> x;
    bool negative;
  } cases[] = {{{-0.0}, true}, {{-0.0, -0.0, -0.0}, true}, {{-0.0, 0.0}, false}, {{1, -1, -0.0}, false}};
  for (const auto& c : cases) {
    TypeParam merged = state_of<TypeParam, fp64>({c.x[0]});
    for (std::size_t i = 1; i < c.x.size(); ++i) merged.merge(state_of<TypeParam, fp64>({c.x[i]}));
    EXPECT_EQ(std::signbit(value_of(state_of<TypeParam, fp64>(c.x))), c.negative)
        << ::testing::PrintToString(c.x);
    EXPECT_EQ(std::signbit(value_of(merged)), c.negative) << ::testing::PrintToString(c.x);
  }
}

TYPED_TEST(EveryAccumulator, KeepsItsFirstElementUnchanged) {
  for (const double x : {0.0, -0.0, 1.5, -0x1p-1074, max64, -inf}) {
    const TypeParam state = state_of<TypeParam, fp64>({x});
    EXPECT_EQ(to_bits(value_of(state)), to_bits(x));
    // Nothing of the identity may remain: after the first element the state is x and no correction.
    TypeParam again = state;
    again.add(Scalar<fp64>::of(0.0));
    EXPECT_EQ(value_of(again), x);
  }
}

TEST(AnEmptySum, IsPlusZeroAndASumOfMinusZerosIsMinusZeroUnlessOnAGrid) {
  const Array minus_zeros{format_info<fp32>(), std::vector<double>(70'000, -0.0)};  // groups of leaves
  for (const Method& m : methods("sum")) {
    EXPECT_EQ(m(Values{input_of(m), nullptr, 0}).bits, 0u) << m.name;
    if (m.backend == "reference" || !m.accepts(format_info<fp32>())) continue;
    EXPECT_EQ(m(minus_zeros.values()).bits, m.accumulator == "fixed_point" ? 0 : m.format->sign_bit)
        << m.name;
  }
}

TEST(InfinitiesAndNaN, AreTheSameForEverySum) {
  // A few elements, and five leaves of a tree, four of which the CPU sums side by side.
  for (const std::size_t n : {5, 5 * 4096 + 37})
    for (const FormatInfo& input : formats) {
      std::vector<double> x(n, 1e-3);
      x[n / 2] = inf;
      const Array infinite{input, x};
      x[n / 3] = -inf;
      const Array both{input, x};
      x[n / 3] = std::nan("");
      const Array not_a_number{input, x};
      for (const Method& m : methods("sum")) {
        if ((n > 5 && m.backend == "reference") || !m.accepts(input)) continue;
        const std::uint64_t nan = m.accumulator == Hopper::name ? 0x7fffffff : m.format->canonical_nan;
        EXPECT_EQ(m(infinite.values()).bits, m.format->infinity) << m.name;
        EXPECT_EQ(m(both.values()).bits, nan) << m.name;
        EXPECT_EQ(m(not_a_number.values()).bits, nan) << m.name;
      }
    }
}

}  // namespace
}  // namespace samesum
