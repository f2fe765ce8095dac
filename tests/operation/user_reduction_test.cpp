/// Custom reductions in every order.
#include "operation/reduction_support.hpp"
#include "operation/user_reductions.hpp"
#include "samesum/operation/reference_reduce.hpp"

namespace samesum {
namespace {

using namespace testing_support;

constexpr std::size_t lengths[] = {0, 1, 2, 3, 127, 128, 129, 4095, 4096, 4097, 12'293, 200'001};

std::vector<float> floats(std::size_t n) {
  const std::vector<double> x = wide(n, 12, 3);
  return {x.begin(), x.end()};
}

TEST(TheLargestGap, IsFoundByItsIndex) {
  std::vector<float> x = floats(100'000);
  x[70'000] = 1000;
  x[70'001] = -1000;
  EXPECT_EQ(reduce(LargestGap{x.data(), x.size()}, x), 70'000u);
  EXPECT_EQ(reduce<Pairwise>(LargestGap{x.data(), x.size()}, x), 70'000u);
  EXPECT_EQ(reduce<Blocked>(LargestGap{x.data(), x.size()}, x), 70'000u);
}

template <class Order> class OrderOf : public ::testing::Test {};
using AllOrders = ::testing::Types<CoarsenedTree, Pairwise, Blocked>;
TYPED_TEST_SUITE(OrderOf, AllOrders, );

TYPED_TEST(OrderOf, ACustomReductionIsThatOfTheReference) {
  using Reducer = CustomReducer<RoundingSum, float>;
  for (const std::size_t n : lengths) {
    const std::vector<float> x = floats(n);
    const auto state = reference_reduce<typename TypeParam::Shape>(Reducer{}, n, [&](std::size_t i) {
      return Reducer::Element{x[i], i};
    });
    EXPECT_EQ(reduce<TypeParam>(RoundingSum{}, x), state.value_or(-0.0f)) << n;
  }
}

TEST(ARoundingSum, HasTheBitsOfThePlainSumOfTheSameOrder) {
  const std::vector<float> x = floats(100'000);
  EXPECT_EQ(reduce(RoundingSum{}, x), sum<"tree/plain/fp32">(x));
  EXPECT_EQ(reduce<Pairwise>(RoundingSum{}, x), sum<"pairwise/plain/fp32">(x));
  EXPECT_NE(reduce<Blocked>(RoundingSum{}, x), sum<"pairwise/plain/fp32">(x))
      << "blocked adds other neighbours";
}

TEST(ACustomReduction, OfABatchReducesEachRowOrColumn) {
  const std::vector<float> x = floats(50 * 300);
  std::vector<float> rows(50), columns(300);
  reduce(RoundingSum{}, x.data(), Layout::rows(50, 300), rows.data());
  reduce(RoundingSum{}, x.data(), Layout::axis(1, 50, 300), columns.data());
  EXPECT_EQ(rows[7], reduce(RoundingSum{}, std::span{x}.subspan(7 * 300, 300)));
  std::vector<float> column;
  for (std::size_t k = 0; k < 50; ++k) column.push_back(x[k * 300 + 11]);
  EXPECT_EQ(columns[11], reduce(RoundingSum{}, column));
}

}  // namespace
}  // namespace samesum
