#include "harness/bars.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace samesum::harness {
namespace {

using ::testing::DoubleEq;

/// Returns a cell, by default of 64 Mi elements in DRAM.
Cell cell(int threads = 1, const char* data = "normal", std::size_t n = dram_bytes / sizeof(float)) {
  return {&format_info<fp32>(), n, threads, data};
}

/// Returns the verdict of the bar against the given method.
Verdict verdict(const SpeedRow& row, const std::vector<SpeedRow>& measured, const std::string& against) {
  Verdict found{"not judged", 0, 0};
  for (const Verdict& v : verdicts(row, measured))
    if (v.against == against) found = v;
  return found;
}

TEST(ABar, HoldsIfTheRatioOfSpeedsReachesItsFactor) {
  const std::vector<SpeedRow> measured{{cell(), "eigen/fp32@peer", 1.2}};
  const Verdict holds = verdict({cell(), "sum/tree/plain/fp32@cpu", 1.0}, measured, "eigen/fp32@peer");
  EXPECT_THAT(holds.factor, DoubleEq(1.2));
  EXPECT_THAT(holds.reached, DoubleEq(1.2));
  EXPECT_TRUE(holds.holds());
  EXPECT_FALSE(verdict({cell(), "sum/tree/plain/fp32@cpu", 1.01}, measured, "eigen/fp32@peer").holds());
}

TEST(ABar, IsNotJudgedWithoutTheOtherMethodInTheSameCell) {
  const SpeedRow row{cell(), "sum/tree/plain/fp32@cpu", 1.0};
  EXPECT_TRUE(verdicts(row, {}).empty());
  EXPECT_TRUE(verdicts(row, {{cell(2), "eigen/fp32@peer", 1.2}}).empty());
  EXPECT_TRUE(verdicts(row, {{cell(1, "normal", l2_bytes / sizeof(float)), "eigen/fp32@peer", 1.2}}).empty());
  Cell longer = cell();
  longer.n *= 2;
  EXPECT_TRUE(verdicts(row, {{longer, "eigen/fp32@peer", 1.2}}).empty());
}

TEST(ABar, ComparesMethodsThatTookTurnsRoundByRound) {
  // The second round was disturbed, but the sum was twice as fast in every round.
  const std::vector<SpeedRow> measured{{cell(), "eigen/fp32@peer", 2.0, {{2, 8, 2}}}};
  EXPECT_THAT(
      verdict({cell(), "sum/tree/plain/fp32@cpu", 1.0, {{1, 4, 1}}}, measured, "eigen/fp32@peer").reached,
      DoubleEq(2));
  EXPECT_THAT(
      verdict({cell(), "sum/tree/plain/fp32@cpu", 1.0, {{1, 4, 0.5}}}, measured, "eigen/fp32@peer").reached,
      DoubleEq(2));
}

TEST(ABar, ComparesAwkwardDataWithNormalData) {
  const std::vector<SpeedRow> measured{{cell(), "sum/exact/fp32@cpu", 1.0}, {cell(), "read", 0.5}};
  const Verdict v =
      verdict({cell(1, "60 binades"), "sum/exact/fp32@cpu", 2.5}, measured, "sum/exact/fp32@cpu, normal");
  EXPECT_THAT(v.reached, DoubleEq(0.4));
  EXPECT_FALSE(v.holds());
}

TEST(TwoThreads, AreComparedWithOneThreadOrWithTwoThatOnlyRead) {
  const std::string against = "sum/exact/fp32@cpu, one thread";
  const SpeedRow row{cell(2), "sum/exact/fp32@cpu", 0.7};
  std::vector<SpeedRow> measured{{cell(), "sum/exact/fp32@cpu", 1.0}};
  EXPECT_THAT(verdict(row, measured, against).factor, DoubleEq(1.7));
  EXPECT_FALSE(verdict(row, measured, against).holds());
  measured.push_back({cell(2), "read", 0.68});
  EXPECT_THAT(verdict(row, measured, against).factor, DoubleEq(0.95 / 0.68));
  EXPECT_TRUE(verdict(row, measured, against).holds());
  measured.back().seconds = 0.1;  // a ceiling does not raise a bar
  EXPECT_THAT(verdict(row, measured, against).factor, DoubleEq(1.7));
}

TEST(AShortSum, HasABarInMicroseconds) {
  const Cell few = cell(1, "normal", 64);
  const std::vector<Verdict> all = verdicts({few, "sum/tree/kahan/fp32@cpu", 0.5e-6}, {});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].against, "us");
  EXPECT_THAT(all[0].reached, DoubleEq(0.5));
  EXPECT_TRUE(all[0].holds());
  EXPECT_FALSE(verdicts({few, "sum/tree/kahan/fp32@cpu", 1e-6}, {})[0].holds());
}

TEST(APeer, HasNoBar) {
  EXPECT_TRUE(verdicts({cell(), "eigen/fp32@peer", 1}, {{cell(), "read", 1}, {cell(), "eigen/fp32@peer", 1}})
                  .empty());
}

}  // namespace
}  // namespace samesum::harness
