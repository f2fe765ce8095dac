/// Tests of the axes that make the cells of a table of speeds.
#include "harness/axes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace samesum::harness {
namespace {

using ::testing::ElementsAre;

/// Texts such as "sum fp32 1 x 2 x 3, outliers".
std::vector<std::string> in_words(const std::vector<Cell>& cells) {
  std::vector<std::string> all;
  for (const Cell& c : cells)
    all.push_back(c.operation + ' ' + std::string{c.input->name} + ' ' + std::to_string(c.outer) + " x " +
                  std::to_string(c.n) + " x " + std::to_string(c.inner) + ", " + c.data);
  return all;
}

TEST(CellsOfAxes, AreTheirProductWithTheDataInnermost) {
  const std::vector<Axes> axes{{{"sum", "dot"}, {"fp32"}, {{5, 7}, columns(2, 3)}, {"normal", "outliers"}}};
  EXPECT_THAT(in_words(cells_of(axes, false)),
              ElementsAre("sum fp32 5 x 7 x 1, normal", "sum fp32 5 x 7 x 1, outliers",
                          "sum fp32 1 x 2 x 3, normal", "sum fp32 1 x 2 x 3, outliers",
                          "dot fp32 5 x 7 x 1, normal", "dot fp32 5 x 7 x 1, outliers",
                          "dot fp32 1 x 2 x 3, normal", "dot fp32 1 x 2 x 3, outliers"));
}

TEST(CellsOfAxes, OccurOnceEvenIfSeveralProductsHaveThem) {
  const std::vector<Axes> axes{{{"sum"}, {"fp32"}, {a_vector(8), a_vector(9)}},
                               {{"sum"}, {"fp32", "fp64"}, {a_vector(8)}}};
  EXPECT_THAT(
      in_words(cells_of(axes, false)),
      ElementsAre("sum fp32 1 x 8 x 1, normal", "sum fp32 1 x 9 x 1, normal", "sum fp64 1 x 8 x 1, normal"));
}

TEST(CellsOfAxes, LeaveOutDataThatTheFormatCannotHold) {
  const std::vector<Axes> axes{{{"sum"}, {"fp16", "bf16"}, {a_vector(8)}, {"normal", "log-normal"}}};
  EXPECT_THAT(in_words(cells_of(axes, false)),
              ElementsAre("sum fp16 1 x 8 x 1, normal", "sum bf16 1 x 8 x 1, normal",
                          "sum bf16 1 x 8 x 1, log-normal"));
}

TEST(CellsOfAxes, ForFullRunsAreLeftOutOfOthers) {
  const std::vector<Axes> axes{{{"sum"}, {"fp32"}, {a_vector(8)}, {"normal"}, Mode::full},
                               {{"max"}, {"fp32"}, {a_vector(8)}, {"normal"}, Mode::always, 0}};
  EXPECT_THAT(in_words(cells_of(axes, false)), ElementsAre("max fp32 1 x 8 x 1, normal"));
  EXPECT_THAT(in_words(cells_of(axes, true)),
              ElementsAre("sum fp32 1 x 8 x 1, normal", "max fp32 1 x 8 x 1, normal"));
  EXPECT_TRUE(cells_of(axes, false).front().on_gpu());
}

TEST(AllData, BeginWithNormalDataToWhichTimesAreRelative) {
  EXPECT_EQ(all_data().size(), awkward_data().size() + 1);
  EXPECT_EQ(all_data().front(), "normal");
}

}  // namespace
}  // namespace samesum::harness
