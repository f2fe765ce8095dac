#include "harness/downstream/downstream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "harness/dataset.hpp"
#include "harness/results.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::Each;

Summation sum_by(const std::string& name) {
  return [&v = find(name)](Values x) { return v(x, {.threads = 2}); };
}

Column column(const std::vector<double>& x) {
  Column c{&format_info<fp64>(), std::vector<std::byte>(8 * x.size())};
  std::memcpy(c.bytes.data(), x.data(), c.bytes.size());
  return c;
}

// --- a linear system -----------------------------------------------------------------------------

class ASolver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_linear_algebra()) GTEST_SKIP() << "the solver needs Eigen";
  }
  static Solution solve(const System& system, const FormatInfo& format, double tolerance,
                        const std::string& sum) {
    const Column b = datasets_matching("normal")[0]->make(format, static_cast<std::size_t>(system.n), 1);
    return conjugate_gradients(system, b, tolerance)(sum_by(sum));
  }
};

TEST(ASystem, OfPoissonHasTheConditionOfItsEigenvalues) {
  EXPECT_DOUBLE_EQ(poisson(1, 1).condition, 1);
  EXPECT_THAT(poisson(2, 2).condition, DoubleEq(3)) << "eigenvalues 2, 4, 4, 6";
  EXPECT_EQ(poisson(3, 2).below.size(), 7u) << "edges of a grid of 3 x 2";
  EXPECT_EQ(graded(10, 4).condition, 8);
}

TEST_F(ASolver, FindsTheSolutionInAsManyStepsAsThereAreEigenvalues) {
  const Solution s = solve(graded(64, 4), format_info<fp64>(), 1e-12, "exact/fp64");
  EXPECT_TRUE(s.converged);
  EXPECT_EQ(s.iterations, 4);
  EXPECT_LT(s.residual, 1e-12);
}

TEST_F(ASolver, ReachesItsToleranceInEveryFormat) {
  for (const auto& [format, tolerance] :
       {std::pair{&format_info<fp64>(), 1e-10}, {&format_info<fp32>(), 1e-4}}) {
    const Solution s = solve(poisson(20, 30), *format, tolerance, "exact/" + std::string{format->name});
    EXPECT_TRUE(s.converged) << format->name;
    EXPECT_LT(s.iterations, 200);
    EXPECT_LT(s.residual, 2 * tolerance) << format->name;
  }
}

TEST_F(ASolver, GivesTheSameBitsForEqualSumsAndOtherBitsForOtherSums) {
  const auto bits = [](const char* sum) {
    return solve(graded(5000, 20), format_info<fp32>(), 1e-5, sum).bits;
  };
  EXPECT_EQ(bits("tree/plain/fp32"), bits("tree/plain/fp32@reference"));
  EXPECT_NE(bits("tree/plain/fp32"), bits("serial/plain/fp32"));
}

TEST_F(ASolver, StopsWithoutConvergenceIfSumsAreNaN) {
  const Column b = datasets_matching("ones")[0]->make(format_info<fp64>(), 64, 1);
  const Solution s =
      conjugate_gradients(graded(64, 4), b, 1e-10)([](Values) { return Number::of(std::nan("")); });
  EXPECT_FALSE(s.converged);
  EXPECT_EQ(s.iterations, most_iterations);
  EXPECT_TRUE(std::isnan(s.residual));
}

// --- a network -----------------------------------------------------------------------------------

/// A periodic series.
std::vector<float> waves() {
  std::vector<float> series;
  for (int i = 0; i < 600; ++i) series.push_back(static_cast<float>(std::abs(i % 12 - 6)) / 3 - 1);
  return series;
}

TEST(ANetwork, ReducesItsLossWithTheSameBitsEachTime) {
  if (!has_linear_algebra()) GTEST_SKIP() << "the network needs Eigen";
  const auto after = [](int steps) { return train(waves(), {.steps = steps}, sum_by("exact/fp32")); };
  EXPECT_LT(after(50).loss, after(0).loss / 10);
  EXPECT_EQ(after(50).weights, after(50).weights);
  EXPECT_EQ(after(0).weights.size(), 81u);
}

/// A small step against the gradient reduces the loss by the amount that the gradient predicts.
TEST(ANetwork, StepsAgainstTheGradientOfItsLoss) {
  if (!has_linear_algebra()) GTEST_SKIP() << "the network needs Eigen";
  const auto after = [](int steps, float rate) {
    return train(waves(), {.steps = steps, .rate = rate}, sum_by("exact/fp32"));
  };
  const Trained before = after(0, 0), then = after(1, 1e-3F);
  double square = 0;  // squared norm of the gradient of half the loss
  for (std::size_t i = 0; i < before.weights.size(); ++i)
    square += std::pow((double{before.weights[i]} - double{then.weights[i]}) / 1e-3, 2);
  EXPECT_THAT((before.loss - then.loss) / (2e-3 * square), DoubleNear(1, 0.01));
}

// --- a recording ---------------------------------------------------------------------------------

TEST(Statistics, AreCorrectForAFewElements) {
  const Column x = column({1, 2, 3, 6});
  for (const Statistics& m : {moments(x, sum_by("exact/fp64")), true_moments(x)}) {
    EXPECT_EQ(m.mean, 3);
    EXPECT_THAT(m.naive_variance, DoubleEq(14.0 / 3));
    EXPECT_THAT(m.two_pass_variance, DoubleEq(14.0 / 3));
  }
}

TEST(Statistics, OfTheNaiveFormulaAreWrongIfTheMeanIsLarge) {
  const Column x = column({1e9, 1e9 + 1, 1e9 + 2});
  EXPECT_EQ(true_moments(x).naive_variance, 1);
  EXPECT_EQ(moments(x, sum_by("exact/fp64")).two_pass_variance, 1);
  EXPECT_GE(std::abs(moments(x, sum_by("exact/fp64")).naive_variance - 1), 1);
}

/// In each row of the file, the Moon moves along x from 300 to 400 thousand km and deviates by 4000 km to the
/// side.
TEST(TheDistanceOfTheMoon, FollowsFromItsCoefficients) {
  const testing_support::Folder folder;
  const std::string file = folder / "moon.f64";
  std::vector<double> c(2 * 39, 0);
  for (std::size_t first : {0u, 39u}) c[first] = 350e3, c[first + 1] = 50e3, c[first + 13 + 2] = 4e3;
  testing_support::write(file, {reinterpret_cast<const char*>(c.data()), 8 * c.size()});
  const auto at = [](double t) { return std::hypot(350 + 50 * t, 4 * (2 * t * t - 1)); };
  const std::vector<double> two = moon_distances(file, 2);
  ASSERT_EQ(two.size(), 4u);
  for (const std::size_t i : {0u, 2u}) {
    EXPECT_DOUBLE_EQ(two[i], at(-0.5));
    EXPECT_DOUBLE_EQ(two[i + 1], at(0.5));
  }
  EXPECT_THAT(moon_distances(file, 1), Each(DoubleEq(at(0))));
  testing_support::write(file, std::string(16, '\0'));
  EXPECT_THROW(moon_distances(file, 1), InputError);
}

TEST(ADigest, IsTheHashOfFowlerNollAndVo) {
  EXPECT_EQ(digest({}), 0xcbf29ce484222325U);
  EXPECT_EQ(digest(std::as_bytes(std::span{"a", 1})), 0xaf63dc4c8601ec8cU);
}

}  // namespace
}  // namespace samesum::harness
