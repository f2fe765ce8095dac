/// Tests of medians and their intervals on made-up times.
#include "harness/median.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "harness/random.hpp"

namespace samesum::harness {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

std::vector<double> up_to(int n) {
  std::vector<double> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

std::vector<double> values(const Interval& i) { return {i.low, i.median, i.high}; }

TEST(AMedian, IsTheMiddleValueOrTheMeanOfTwo) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({8, 1, 4, 2}), 3);
}

TEST(AnInterval, OfAMedianHasTheRanksOfTheExactBootstrap) {
  EXPECT_THAT(values(median_interval(up_to(1))), ElementsAre(1, 1, 1));
  EXPECT_THAT(values(median_interval(up_to(2))), ElementsAre(1, 1.5, 2));
  EXPECT_THAT(values(median_interval(up_to(5))), ElementsAre(1, 3, 5));
  EXPECT_THAT(values(median_interval(up_to(10))), ElementsAre(2, 5.5, 9));
  EXPECT_THAT(values(median_interval(up_to(11))), ElementsAre(3, 6, 9));
  EXPECT_THAT(values(median_interval(up_to(50))), ElementsAre(18, 25.5, 33));
}

TEST(AnInterval, DoesNotDependOnTheOrderOrOnOneOutlier) {
  EXPECT_THAT(values(median_interval({9.7, 9.5, 9.6, 900, 9.4, 9.8, 9.3, 9.9, 9.2, 10, 9.1})),
              ElementsAre(9.3, 9.6, 9.9));
}

/// Draws samples with replacement and returns the value below which 2.5 % of their lower medians lie.
double low_end_by_resampling(const std::vector<double>& x) {
  Random random{7};
  std::vector<double> medians;
  for (int draw = 0; draw < 20'000; ++draw) {
    std::vector<double> sample;
    for (std::size_t i = 0; i < x.size(); ++i) sample.push_back(x[random.below(x.size())]);
    std::ranges::sort(sample);
    medians.push_back(sample[(sample.size() - 1) / 2]);
  }
  std::ranges::sort(medians);
  return medians[medians.size() / 40];
}

TEST(AnInterval, IsTheOneThatResamplingFinds) {
  for (const int n : {7, 10, 11, 20})
    EXPECT_EQ(median_interval(up_to(n)).low, low_end_by_resampling(up_to(n))) << n;
}

TEST(AnInterval, OfSeveralProcessesIsThatOfTheirMedians) {
  // The rounds of each process agree, but the processes do not.
  const Processes rounds{{1, 1, 1}, {3, 3, 3}, {2, 2, 900}};
  EXPECT_THAT(values(median_interval(rounds)), ElementsAre(1, 2, 3));
  EXPECT_THAT(values(median_interval(Processes{{2, 1, 900}})), ElementsAre(1, 2, 900));
}

TEST(ARatioOfRounds, IsTakenRoundByRound) {
  // The machine was slow in the second round of the first process.
  const Interval ratio = ratio_of_rounds({{2, 8, 2}, {3, 3, 3}}, {{1, 4, 1}, {1, 1, 1.5}});
  EXPECT_THAT(values(ratio), ElementsAre(2, DoubleEq(2.5), 3));
}

}  // namespace
}  // namespace samesum::harness
