/// Which tree does a sum add in? A black box is asked for sums of masks, and its answers give the tree away.
///
/// Units: FPRev (Xie, Gao, Zhang and Xue 2025, "FPRev: Revealing the Order of Floating-Point Summation"). Of
/// ones with M at i and -M at j, those that meet M before it meets -M are absorbed, so what is returned
/// counts the ones that are not below the lowest common ancestor of i and j. A sum that keeps what M absorbs
/// is blind to this.
///
/// Overflow: zeros with the largest number at i and j and its negative at k are infinite where i and j meet
/// before k meets one of them: else two of the three cancel. No compensation brings an infinity back, so this
/// sees all but what never overflows on its way. A tree is the set of such rooted triples (Aho, Sagiv,
/// Szymanski and Ullman 1981).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "samesum/catalogue/method.hpp"
#include "samesum/order/reference.hpp"

namespace samesum::harness {

/// What is added to what. Addition commutes, so a node has no left and no right.
class SumTree {
 public:
  explicit SumTree(std::size_t leaves) : leaves_{leaves}, parent_(leaves, none) {}

  std::size_t leaves() const { return leaves_; }
  bool is_leaf(std::size_t node) const { return node < leaves_; }
  std::size_t root() const;
  /// The other nodes below a node that is no leaf.
  std::array<std::size_t, 2> children(std::size_t node) const { return children_[node - leaves_]; }

  /// A new node, the sum of two that have none above them.
  std::size_t join(std::size_t a, std::size_t b);
  /// The leaf is added to the node, before whatever that was added to.
  void insert(std::size_t leaf, std::size_t node);

  std::size_t height() const;
  /// The node itself where there is none above it.
  std::size_t above(std::size_t node) const { return parent_[node] == none ? node : parent_[node]; }
  std::vector<std::size_t> leaves_below(std::size_t node) const;
  /// Those that meet the leaf at that node above it.
  std::vector<std::size_t> leaves_met_at(std::size_t ancestor, std::size_t leaf) const;

  /// "((0+2)+1)": of two that are added, the one with the smallest leaf first.
  std::string spelled() const;
  friend bool operator==(const SumTree& a, const SumTree& b) { return a.spelled() == b.spelled(); }

 private:
  static constexpr std::size_t none = SIZE_MAX;
  std::size_t leaves_;
  std::vector<std::size_t> parent_;
  std::vector<std::array<std::size_t, 2>> children_;
};

/// An accumulator that adds nothing and writes down what it was asked to add.
struct Recorder {
  struct Leaf {
    SumTree* tree;
    std::size_t i;
  };
  SumTree* tree = nullptr;  ///< none: empty
  std::size_t node = 0;

  void add(Leaf x) { merge({x.tree, x.i}); }
  void merge(const Recorder& other) {
    node = tree ? tree->join(node, other.node) : other.node;
    tree = other.tree;
  }
};

/// The tree of an order, from its literal reading. n >= 1.
template <class Shape> SumTree declared_tree(Shape shape, std::size_t n) {
  SumTree tree{n};
  read<Recorder>(shape, n, [&](std::size_t i) { return Recorder::Leaf{&tree, i}; });
  return tree;
}

/// That of a method; none where it promises none, or needs none.
std::optional<SumTree> declared_tree(const Method& method, std::size_t n);

/// Answers that no tree gives.
struct Contradiction : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Masks { units, overflow };
constexpr std::string_view name_of(Masks masks) { return masks == Masks::units ? "units" : "overflow"; }

/// A sum that is asked for masks and for nothing else.
class BlackBox {
 public:
  using Sum = std::function<Number(Values)>;
  BlackBox(const FormatInfo& format, Sum sum) : format_{format}, sum_{std::move(sum)} {}
  BlackBox(const Method& method, int threads);

  /// The masks that it can be asked with: units if it absorbs them, else overflow if it does; else none. It
  /// is asked for three elements, of which two meet first in any tree.
  std::optional<Masks> seen_by() const;

  /// Of ones at `units` and M and -M at i and j, what is returned. At most `most_units` of them are counted.
  std::size_t surviving(std::size_t n, std::size_t i, std::size_t j,
                        std::span<const std::size_t> units) const;
  std::size_t most_units() const { return std::size_t{1} << format_.precision; }

  /// The leaves below the lowest common ancestor of i and j: n less the ones that survive.
  std::size_t size_of_common_ancestor(std::size_t n, std::size_t i, std::size_t j) const;

  /// Whether i and j meet before k meets one of them, by overflow.
  bool meet_first(std::size_t n, std::size_t i, std::size_t j, std::size_t k) const;

  std::size_t asked() const { return asked_; }  ///< sums so far

 private:
  struct Entry {
    std::size_t i;
    double value;
  };
  double sum(std::size_t n, std::span<const Entry> entries) const;

  const FormatInfo& format_;
  Sum sum_;
  mutable std::vector<std::byte> memory_;  ///< of the last mask
  mutable std::size_t asked_ = 0;
};

/// Why ±M among ones says nothing about the order of this sum; empty where it does.
std::string blindness(std::optional<Masks> seen_by);

/// The whole tree of n >= 1 elements. By units in FPRev's way: the sizes of the ancestors of one leaf part
/// the others into subtrees, each of which is revealed likewise; n - 1 masks for a loop, n log2 n for a
/// balanced tree. By overflow leaf after leaf: each goes down from the root to its place. Throws
/// Contradiction.
SumTree reveal(const BlackBox& box, std::size_t n, Masks masks);

/// Of so many masks at random places the first whose answer is not that of the tree, in words; empty where
/// all agree. For inputs too long for a whole tree.
std::string first_difference(const BlackBox& box, const SumTree& tree, Masks masks, std::size_t samples,
                             std::uint64_t seed);

/// What is found out of one sum. It may answer as no tree does, or from mask to mask differently: that is a
/// finding too.
struct Finding {
  std::optional<Masks> masks = {};   ///< that it was asked with
  std::string blind = {};            ///< why units were not enough; empty where they were
  std::optional<SumTree> tree = {};  ///< the one revealed, or the declared one if that was sampled
  std::optional<bool> matches = {};  ///< whether it is the declared one, if one is
  std::string difference = {};       ///< an answer that is not that of the declared tree, or of any
};
/// The whole tree if `samples` is 0, else so many places of the declared one.
Finding find_out(const BlackBox& box, std::size_t n, const std::optional<SumTree>& declared,
                 std::size_t samples, std::uint64_t seed);

}  // namespace samesum::harness
