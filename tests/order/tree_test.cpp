#include "samesum/order/tree.hpp"

#include <string>

#include "order/spelled.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

/// An accumulator that counts the additions and merges on the longest path, instead of adding.
struct Depth {
  std::size_t adds = 0, merges = 0;
  bool empty = true;
  void add(int) {
    adds += empty ? 0 : 1;
    empty = false;
  }
  void merge(const Depth& other) {
    adds = std::max(adds, other.adds);
    merges = std::max(merges, other.merges) + 1;
  }
};

template <class Order> class FixedOrder : public ::testing::Test {};
using FixedOrders = ::testing::Types<Serial, CoarsenedTree, Pairwise, Tree<4, 3, ByPairs>, Tree<8, 5, InTurn>,
                                     Canonical16, Canonical128, Canonical<4>, Prefix>;
TYPED_TEST_SUITE(FixedOrder, FixedOrders);

TYPED_TEST(FixedOrder, DeclaresTheHeightOfItsReference) {
  for (const std::size_t n :
       {1,  2,   3,    4,    5,    7,    8,    9,     12,    13,     39,      40,
        41, 100, 1000, 2047, 2048, 2049, 5000, 16384, 16385, 40'000, 100'000, 200'001}) {
    const auto depth = reference_state<Depth>(typename TypeParam::Shape{}, n, [](std::size_t) { return 0; });
    const Height declared = TypeParam::height(n);
    EXPECT_EQ(declared.adds, depth->adds) << "n = " << n;
    EXPECT_GE(declared.merges, depth->merges) << "n = " << n;
    EXPECT_LE(declared.merges, depth->merges + 1) << "n = " << n;
  }
}

TEST(Pairwise, HasTheHeightOfABinaryTree) {
  for (const std::size_t n : {1, 2, 3, 100, 2048, 2049, 16384, 1 << 20}) {
    EXPECT_GE(Pairwise::height(n).total(), ceil_log2(n));
    EXPECT_LE(Pairwise::height(n).total(), ceil_log2(n) + 1);
  }
  EXPECT_EQ(Pairwise::height(1 << 20).total(), 20u);
}

TEST(ATree, AddsEachElementOnce) {
  // The elements are powers of two, so the sum shows which elements were added.
  for (const std::size_t n : {1, 2, 3, 11, 12, 13, 37, 52}) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = power_of_two(static_cast<int>(i));
    const auto sum = reference_state<Plain<Scalar<fp64>>>(
        Tree<4, 3, ByPairs>{}, n, [&](std::size_t i) { return Scalar<fp64>::of(x[i]); });
    EXPECT_EQ(sum->sum.v, power_of_two(static_cast<int>(n)) - 1);
  }
}

TEST(ATree, MergesInTheDeclaredOrder) {
  // Two leaves of 4 lanes and 2 rows in turn, written out by hand.
  std::vector<double> x = wide(13, 40, 1);
  const double leaf0 = ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
  const double leaf1 = ((x[8] + x[12]) + x[10]) + (x[9] + x[11]);
  const auto sum = reference_state<Plain<Scalar<fp64>>>(
      Tree<4, 2, InTurn>{}, 13, [&](std::size_t i) { return Scalar<fp64>::of(x[i]); });
  EXPECT_EQ(sum->sum.v, leaf0 + leaf1);
}

TEST(ATree, HasTheAdditionsOfItsDefinition) {
  // Rows in turn, then lanes by halving.
  EXPECT_EQ(spelled_sum(Tree<4, 3, InTurn>{}, 12), "((((0+4)+8)+((2+6)+10))+(((1+5)+9)+((3+7)+11)))");
  // Rows by stride doubling: neighbours first; a row without a partner moves up unchanged.
  EXPECT_EQ(spelled_sum(Tree<1, 8, ByPairs>{}, 4), "((0+1)+(2+3))");
  EXPECT_EQ(spelled_sum(Tree<1, 8, ByPairs>{}, 7), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_EQ(spelled_sum(Tree<1, 8, ByPairs>{}, 5), "(((0+1)+(2+3))+4)");
  // Leaves by stride doubling.
  EXPECT_EQ(spelled_sum(Tree<1, 1, InTurn>{}, 6), "(((0+1)+(2+3))+(4+5))");
  EXPECT_EQ(spelled_sum(Tree<2, 1, InTurn>{}, 9), "((((0+1)+(2+3))+((4+5)+(6+7)))+8)");
  // Lanes that have no element are skipped.
  EXPECT_EQ(spelled_sum(Tree<8, 2, InTurn>{}, 3), "((0+2)+1)");
  EXPECT_EQ(spelled_sum(Tree<8, 2, InTurn>{}, 6), "(((0+4)+2)+((1+5)+3))");
}

}  // namespace
}  // namespace samesum
