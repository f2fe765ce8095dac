#include "samesum/order/prefix.hpp"

#include <optional>
#include <string>

#include "order/spelled.hpp"
#include "samesum/operation/reference_reduce.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

constexpr std::size_t leaf = PrefixTree::leaf;

/// A reducer whose state identifies the tree of the additions that made it. It is not commutative.
struct TreeHash {
  using State = std::uint64_t;
  using Item = std::uint64_t;
  static State mixed(std::uint64_t a, std::uint64_t b) {
    std::uint64_t z = a * 0x9e3779b97f4a7c15 + b + 0x7f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  Item item(std::uint64_t i) const { return i; }
  State start(Item i) const { return mixed(i, 17); }
  void add(State& state, Item i, std::size_t) const { state = mixed(state, start(i)); }
  void merge(State& state, State other) const { state = mixed(state, other); }
};

std::uint64_t literal(std::size_t n) {
  return *reference_reduce<PrefixTree>(TreeHash{}, n, [](std::size_t i) { return std::uint64_t{i}; });
}

TEST(TheOrderPrefix, HasTheAdditionsOfItsDefinition) {
  const auto spelled = [](std::size_t n) { return spelled_sum(PrefixTree{}, n); };
  EXPECT_EQ(spelled(1), "0");
  EXPECT_EQ(spelled(4), "(((0+1)+2)+3)");
  EXPECT_EQ(spelled(6), "((((0+1)+2)+3)+(4+5))");
  EXPECT_EQ(spelled(8), "((((0+1)+2)+3)+(((4+5)+6)+7))");
  EXPECT_EQ(spelled(9), "(" + spelled(8) + "+8)");
  const auto run = [](std::size_t first) {
    const auto at = [&](std::size_t i) { return std::to_string(first + i); };
    return "(((" + at(0) + "+" + at(1) + ")+" + at(2) + ")+" + at(3) + ")";
  };
  const std::string three_runs = "((" + run(0) + "+" + run(4) + ")+" + run(8) + ")";
  EXPECT_EQ(spelled(12), three_runs) << "runs by stride doubling";
  EXPECT_EQ(spelled(14), "(" + three_runs + "+(12+13))");
  EXPECT_EQ(spelled(28), "((" + ("(" + run(0) + "+" + run(4) + ")+(" + run(8) + "+" + run(12) + ")") +
                             ")+((" + run(16) + "+" + run(20) + ")+" + run(24) + "))");
}

TEST(TheOrderPrefix, MergesWholeUnitsFirst) {
  const auto merged = [](std::initializer_list<std::uint64_t> states) {
    std::optional<std::uint64_t> all;
    for (const std::uint64_t state : states) all = all ? TreeHash::mixed(*all, state) : state;
    return *all;
  };
  // The state of the elements first … first + n - 1, by itself.
  const auto of = [](std::size_t first, std::size_t n) {
    return *reference_reduce<PrefixTree>(TreeHash{}, n,
                                         [=](std::size_t i) { return std::uint64_t{first + i}; });
  };
  EXPECT_EQ(literal(256), merged({of(0, 128), of(128, 128)}));
  const std::uint64_t two_rows = literal(256);
  EXPECT_EQ(literal(384), merged({two_rows, of(256, 128)}));
  const std::uint64_t four_rows = merged({two_rows, merged({of(256, 128), of(384, 128)})});
  EXPECT_EQ(literal(512), four_rows) << "rows by stride doubling";
  EXPECT_EQ(literal(7 * 128),
            merged({four_rows, merged({merged({of(512, 128), of(640, 128)}), of(768, 128)})}));
  EXPECT_EQ(literal(leaf), merged({literal(leaf / 2), of(leaf / 2, leaf / 2)})) << "a tile has 32 rows";
  EXPECT_EQ(literal(leaf - 2), merged({literal(leaf - 128), merged({of(leaf - 128, 124), of(leaf - 4, 2)})}));
  EXPECT_EQ(literal(256 + 70), merged({of(0, 256), merged({of(256, 68), of(324, 2)})}))
      << "a rest from the right";
  const auto tile = [&](std::size_t k) { return of(leaf * k, leaf); };
  EXPECT_EQ(literal(2 * leaf), merged({tile(0), tile(1)}));
  EXPECT_EQ(literal(3 * leaf), merged({tile(0), tile(1), tile(2)}));
  const std::uint64_t four = merged({merged({tile(0), tile(1)}), merged({tile(2), tile(3)})});
  EXPECT_EQ(literal(4 * leaf), four) << "a group by stride doubling";
  EXPECT_EQ(literal(7 * leaf), merged({four, merged({tile(4), tile(5)}), tile(6)})) << "groups from the left";
  EXPECT_EQ(literal(7 * leaf + 200), merged({literal(7 * leaf), of(7 * leaf, 200)})) << "then what is left";
}

TEST(TheWalkerOfTheOrderPrefix, VisitsTheLiteralDefinitionOfEveryPrefix) {
  const TreeHash reducer;
  PrefixWalker<TreeHash> walker{reducer};
  std::size_t compared = 0;
  const std::size_t most = testing_support::is_sanitized ? 3 : 17;
  for (std::size_t n = 1; n <= most * leaf + 3; ++n) {
    walker.push(n - 1);
    // All prefixes of one tile, then those around whole rows and tiles.
    if (n > leaf + 300 && (n > 2 * leaf || n % 128 > 1) && n % leaf > 3 && n % leaf < leaf - 2) continue;
    ASSERT_EQ(walker.state(), literal(n)) << "n = " << n;
    ++compared;
  }
  EXPECT_GT(compared, leaf + 300);
}

TEST(TheWalkerOfTheOrderSerial, VisitsTheLiteralDefinitionOfEveryPrefix) {
  const TreeHash reducer;
  SerialWalker<TreeHash> walker{reducer};
  for (std::size_t n = 1; n <= 300; ++n)
    EXPECT_EQ(walker.push(n - 1),
              *reference_reduce<Serial::Shape>(reducer, n, [](std::size_t i) { return std::uint64_t{i}; }))
        << "n = " << n;
}

TEST(UnitsByStrideDoubling, HaveTheMergesOfTheReference) {
  struct Node {
    std::uint64_t hash;
    void merge(const Node& other) { hash = TreeHash::mixed(hash, other.hash); }
  };
  const TreeHash reducer;
  DoublingWalker<TreeHash, 32> walker{reducer};
  for (int round = 0; round < 2; ++round) {
    std::vector<Node> units;
    for (std::size_t k = 0; k < 32; ++k) {
      units.push_back({1000 * k + 7});
      std::vector<Node> copies = units;
      EXPECT_EQ(walker.push(k, 1000 * k + 7), merge_by_stride_doubling(std::span{copies}).hash) << k;
      EXPECT_EQ(walker.state(), copies.front().hash) << k;
    }
  }
}

TEST(TilesFromAGroupOn, HaveThePrefixesOfTheWholeSequence) {
  const TreeHash reducer;
  constexpr std::size_t first = 16, tiles = 16;
  TileGroups<TreeHash> all{reducer}, part{reducer};
  for (std::size_t k = 0; k < first; ++k) all.push(1000 + k);
  part.push(7);  // forgotten
  part.restart(all.carry());
  for (std::size_t k = first; k < first + tiles - 1; ++k) {
    EXPECT_EQ(part.after(5), all.after(5)) << k;
    all.push(1000 + k);
    part.push(1000 + k);
    EXPECT_EQ(part.carry(), all.carry()) << k;
  }
  part.restart();
  EXPECT_FALSE(part.any());
  EXPECT_EQ(part.after(5), 5u);
}

/// The number of additions and merges on the longest path.
struct Path {
  std::size_t adds = 0, merges = 0;
  bool empty = true;
  void add(int) {
    adds += empty ? 0 : 1;
    empty = false;
  }
  void merge(const Path& other) {
    adds = std::max(adds, other.adds);
    merges = std::max(merges, other.merges) + 1;
  }
};

TEST(TheOrderPrefix, DeclaresItsHeightExactly) {
  SAMESUM_UNSANITIZED("it accesses no arrays");
  for (std::size_t n = 1; n <= 17 * leaf + 3;
       n += n <= leaf + 300 || n % leaf < 8 || n % leaf > leaf - 9 ? 1 : 113) {
    const auto path = reference_state<Path>(PrefixTree{}, n, [](std::size_t) { return 0; });
    const Height declared = Prefix::height(n);
    ASSERT_EQ(declared.adds, path->adds) << "n = " << n;
    ASSERT_EQ(declared.merges, path->merges) << "n = " << n;
  }
  EXPECT_EQ(Prefix::height(0).total(), 0u);
  EXPECT_EQ(Prefix::height(leaf).adds, 3u);
  EXPECT_EQ(Prefix::height(leaf).merges, 10u);
  EXPECT_EQ(Prefix::height(leaf - 1).total(), 14u);
  EXPECT_EQ(Prefix::height(std::size_t{1} << 28).total(), 29u);
  EXPECT_EQ(Prefix::height((std::size_t{1} << 28) - 1).total(), 44u);
}

TEST(TheOrderPrefix, HasAHeightBelowItsFormula) {
  EXPECT_EQ(Prefix::height_formula(), "max(15, 14 + 2 floor(log2(n / 4096)))");
  for (std::size_t n = 1; n < 2 * leaf; ++n) EXPECT_LE(Prefix::height(n).total(), 15u) << n;
  EXPECT_EQ(Prefix::height(2 * leaf - 1).total(), 15u);
  for (std::size_t n = 2 * leaf; n < std::size_t{1} << 40; n = n * 3 / 2 + 1)
    for (const std::size_t m : {n, std::bit_ceil(n) - 1, std::bit_ceil(n), std::bit_ceil(n) + 1}) {
      const std::size_t formula =
          std::max<std::size_t>(15, 14 + 2 * static_cast<std::size_t>(std::bit_width(m / leaf) - 1));
      EXPECT_LE(Prefix::height(m).total(), formula) << m;
      if (m == std::bit_ceil(n) - 1) {
        EXPECT_EQ(Prefix::height(m).total(), formula) << m;
      }
    }
}

}  // namespace
}  // namespace samesum
