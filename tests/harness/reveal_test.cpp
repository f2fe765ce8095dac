/// The declared trees are found in the results of the backends, and deviations from them are detected.
#include "harness/reveal.hpp"

#include <cmath>

#include "harness/peers.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/backend/cpu/schedule/schedule.hpp"
#include "support.hpp"

namespace samesum::harness {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- trees -----------------------------------------------------------------------------------------

TEST(ASumTree, DoesNotDistinguishLeftFromRight) {
  SumTree a{3}, b{3};
  a.join(a.join(0, 2), 1);
  b.join(1, b.join(2, 0));
  EXPECT_EQ(a.spelled(), "((0+2)+1)");
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.height(), 2u);
  EXPECT_EQ(a.leaves_below(a.root()).size(), 3u);
  EXPECT_EQ(a.leaves_below(a.above(2)).size(), 2u);
  EXPECT_EQ(a.leaves_met_at(a.root(), 1).size(), 2u);
  EXPECT_EQ(a.leaves_met_at(a.above(2), 2), std::vector<std::size_t>{0});
}

TEST(ASumTree, AcceptsALeafInItsMiddle) {
  SumTree a{4};
  const std::size_t pair = a.join(0, 1);
  a.join(pair, 2);
  a.insert(3, pair);
  EXPECT_EQ(a.spelled(), "(((0+1)+3)+2)");
}

TEST(TheDeclaredTree, IsThatOfTheReference) {
  EXPECT_EQ(declared_tree(Tree<4, 3, InTurn>{}, 12).spelled(),
            "((((0+4)+8)+((2+6)+10))+(((1+5)+9)+((3+7)+11)))");
  EXPECT_EQ(declared_tree(Tree<8, 2, InTurn>{}, 3).spelled(), "((0+2)+1)");
  EXPECT_EQ(declared_tree(find("serial/plain/fp32"), 4)->spelled(), "(((0+1)+2)+3)");
  EXPECT_FALSE(declared_tree(find("atomic/plain/fp32"), 4)) << "it has no fixed tree";
  EXPECT_FALSE(declared_tree(find("exact/fp32"), 4)) << "it has no order";
}

// --- small instances of the order types ---------------------------------------------------------------

template <class Order, template <class> class A, class F> struct Instance {
  using Shape = Order;
  using Format = F;
  using State = A<Scalar<F>>;

  static Number reading(Values x) {
    const std::span<const F> all = x.as<F>();
    return Number::of(to_format<F>(reference_state<State>(Shape{}, x.size, [&](std::size_t i) {
                                     return Scalar<F>::of(all[i]);
                                   })->result()));
  }
  /// Sums as the CPU backend does: in packs of lanes, groups of leaves, and threads.
  static Number on_cpu(Values x) {
    const cpu::Input input{cpu::Leaves<Shape, A, F>::template sum<F>, static_cast<const std::byte*>(x.data),
                           sizeof(F), x.size};
    return Number::of(to_format<F>(cpu::sum_tree<Shape, State>(input, 2)->result()));
  }
};

template <class I> class SmallOrder : public ::testing::Test {};
using SmallOrders =
    ::testing::Types<Instance<Tree<4, 2, InTurn>, Plain, fp32>, Instance<Tree<4, 2, ByPairs>, Plain, fp16>,
                     Instance<Tree<8, 4, InTurn>, Plain, bf16>, Instance<Tree<8, 4, ByPairs>, Plain, fp64>,
                     Instance<Tree<4, 4, InTurn>, Kahan, fp32>, Instance<Tree<8, 2, ByPairs>, Kahan, bf16>,
                     Instance<Tree<4, 1, InTurn>, Kahan, fp16>, Instance<Tree<4, 8, InTurn>, Neumaier, fp32>,
                     Instance<Tree<4, 2, InTurn>, DoubleWord, fp64>>;
TYPED_TEST_SUITE(SmallOrder, SmallOrders);

TYPED_TEST(SmallOrder, HasItsDeclaredTreeForEveryLengthUpTo64) {
  const FormatInfo& format = format_info<typename TypeParam::Format>();
  for (const BlackBox& box : {BlackBox{format, TypeParam::reading}, BlackBox{format, TypeParam::on_cpu}}) {
    const std::optional<Masks> masks = box.seen_by();
    ASSERT_TRUE(masks);
    for (std::size_t n = 1; n <= 64; ++n)
      ASSERT_EQ(reveal(box, n, *masks).spelled(), declared_tree(typename TypeParam::Shape{}, n).spelled())
          << "n = " << n;
  }
}

TYPED_TEST(SmallOrder, DiffersFromTheTreeOfAnotherOrder) {
  const BlackBox box{format_info<typename TypeParam::Format>(), TypeParam::on_cpu};
  EXPECT_NE(reveal(box, 64, *box.seen_by()), declared_tree(Tree<16, 2, InTurn>{}, 64));
}

// --- the real orders, on both backends ----------------------------------------------------------------

constexpr std::size_t several_leaves = 3 * CoarsenedTree::leaf + 5;

class RealOrder : public ::testing::TestWithParam<const Method*> {
 protected:
  const Method& v = *GetParam();
  const BlackBox box{v, 2};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealOrder);

std::vector<const Method*> with_a_tree(std::string_view backend) {
  std::vector<const Method*> chosen = sums_of(backend, Promise::everywhere);
  std::erase_if(chosen, [](const Method* v) { return !declared_tree(*v, 1); });
  return chosen;
}
INSTANTIATE_TEST_SUITE_P(Cpu, RealOrder, ::testing::ValuesIn(with_a_tree("cpu")), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, RealOrder, ::testing::ValuesIn(with_a_tree("cuda")), test_name);

TEST(RealOrdersOnTheGpu, AreRevealedIfThereIsAGpu) {
  if (!absent().empty()) GTEST_SKIP() << absent()[0].reason;
  EXPECT_FALSE(with_a_tree("cuda").empty());
}

TEST_P(RealOrder, HasItsDeclaredTreeForEveryLengthUpTo64) {
  const std::optional<Masks> masks = box.seen_by();
  ASSERT_TRUE(masks);
  // On a GPU each mask takes a transfer, so only one accumulator per order is tested at all lengths.
  const bool all = v.backend == "cpu" || (v.accumulator == "plain" && v.format->name == "fp32");
  for (std::size_t n = 1; n <= 64; n += all ? 1 : 21)
    ASSERT_EQ(reveal(box, n, *masks).spelled(), declared_tree(v, n)->spelled()) << "n = " << n;
}

TEST_P(RealOrder, HasItsDeclaredTreeAtSampledPlacesOfThreeLeavesAndMore) {
  const std::size_t samples = v.backend == "cpu" ? 50 : 20;
  EXPECT_EQ(first_difference(box, *declared_tree(v, several_leaves), *box.seen_by(), samples, 1), "");
}

TEST_P(RealOrder, DiffersFromOtherOrdersAtSampledPlaces) {
  for (const char* other : {"serial", "tree", "pairwise"}) {
    if (v.order == other) continue;
    const SumTree tree = *declared_tree(find(std::string{other} + "/plain/fp32"), several_leaves);
    EXPECT_NE(first_difference(box, tree, *box.seen_by(), v.backend == "cpu" ? 100 : 20, 1), "") << other;
  }
}

/// Exchanges two leaves, the smallest possible deviation from a tree.
TEST(ABrokenOrder, IsDetected) {
  const BlackBox swapped{format_info<fp32>(), [](Values x) {
                           std::vector<float> all(x.as<fp32>().begin(), x.as<fp32>().end());
                           if (all.size() > 20) std::swap(all[3], all[20]);
                           return find("tree/plain/fp32")(all);
                         }};
  const SumTree declared = *declared_tree(find("tree/plain/fp32"), 64);
  EXPECT_NE(reveal(swapped, 64, Masks::units), declared);
  EXPECT_NE(reveal(swapped, 64, Masks::overflow), declared);
  EXPECT_NE(first_difference(swapped, declared, Masks::units, 200, 1), "");
  EXPECT_THAT(first_difference(swapped, declared, Masks::overflow, 1000, 1),
              HasSubstr("meet before they meet"));
}

TEST(AnOrderThatChangesFromSumToSum, IsAContradiction) {
  int calls = 0;
  const BlackBox box{format_info<fp32>(), [&](Values x) {
                       return find(++calls % 2 ? "serial/plain/fp32" : "pairwise/plain/fp32")(x);
                     }};
  EXPECT_THROW(reveal(box, 64, Masks::units), Contradiction);
}

TEST(AnswersThatFitNoTree, AreReportedAsAFinding) {
  for (const double answer : {std::nan(""), -1.0, 0.5}) {
    const BlackBox box{format_info<fp32>(), [=](Values) { return Number::of(static_cast<float>(answer)); }};
    EXPECT_THROW(box.seen_by(), Contradiction);
    const Finding peers = find_out(box, 32, std::nullopt, 0, 1);
    EXPECT_FALSE(peers.masks || peers.tree || peers.matches);
    EXPECT_THAT(peers.blind, IsEmpty());
    EXPECT_THAT(peers.difference, HasSubstr("1 ones with M and -M at 0, 1 give "));
    EXPECT_EQ(find_out(box, 32, declared_tree(Serial{}, 32), 0, 1).matches, false);
  }
}

TEST(AFinding, IsTheWholeTreeOrSampledPlacesOfTheDeclaredOne) {
  const BlackBox box{find("serial/plain/fp32"), 1};
  const SumTree serial = declared_tree(Serial{}, 40), pairs = declared_tree(Tree<4, 8, ByPairs>{}, 40);
  const Finding drawn = find_out(box, 40, std::nullopt, 0, 1);
  EXPECT_EQ(drawn.tree, serial);
  EXPECT_EQ(drawn.matches, std::nullopt);
  EXPECT_EQ(drawn.masks, Masks::units);
  for (const std::size_t samples : {0, 50}) {
    EXPECT_EQ(find_out(box, 40, serial, samples, 1).matches, true);
    EXPECT_EQ(find_out(box, 40, serial, samples, 1).difference, "");
    EXPECT_EQ(find_out(box, 40, pairs, samples, 1).matches, false);
  }
  EXPECT_NE(find_out(box, 40, pairs, 50, 1).difference, "");
}

// --- which mask works for which accumulator -----------------------------------------------------------

TEST(UnitsAmongM, AreKeptByCompensatedMerges) {
  for (const FormatInfo& format : formats) {
    const auto seen_by = [&](const std::string& recipe) {
      return BlackBox{find(recipe + "/" + std::string{format.name}), 1}.seen_by();
    };
    for (const char* plain : {"serial/plain", "tree/plain", "pairwise/plain", "atomic/plain", "serial/kahan"})
      EXPECT_EQ(seen_by(plain), Masks::units) << plain;
    for (const char* kept : {"tree/kahan", "pairwise/kahan", "serial/neumaier", "pairwise/double_word"})
      EXPECT_EQ(seen_by(kept), Masks::overflow) << kept;
    EXPECT_EQ(seen_by("exact"), std::nullopt) << "it has no order";
  }
  EXPECT_THAT(blindness(Masks::units), IsEmpty());
  EXPECT_THAT(blindness(Masks::overflow), HasSubstr("keep the ones that M absorbs"));
  EXPECT_THAT(blindness(std::nullopt), HasSubstr("no intermediate sum overflows"));
}

TEST(BothMasks, FindTheSameTrees) {
  for (const char* name :
       {"serial/plain/fp64", "tree/plain/bf16", "pairwise/plain/fp16", "serial/kahan/fp32"}) {
    const BlackBox box{find(name), 1};
    EXPECT_EQ(reveal(box, 300, Masks::units), reveal(box, 300, Masks::overflow)) << name;
  }
}

TEST(ThePeersLoop, AddsInTurn) {
  const BlackBox box{peers()[0], 1};
  ASSERT_EQ(peers()[0].order, "loop");
  EXPECT_EQ(reveal(box, 40, Masks::units), declared_tree(Serial{}, 40));
}

}  // namespace
}  // namespace samesum::harness
