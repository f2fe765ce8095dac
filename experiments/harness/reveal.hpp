/// Reveals the tree in which a sum adds, from its results for masks. The sum is a black box. Two elements
/// meet where the partial sums that contain them are added: at their lowest common ancestor.
///
/// Units: FPRev (Xie, Gao, Zhang and Xue 2025, "FPRev: Revealing the Order of Floating-Point Summation"). The
/// mask has M at i, -M at j, and ones elsewhere. M and -M absorb every one that is added to them before they
/// cancel, so the result counts the ones that are not below the lowest common ancestor of i and j. These
/// masks reveal nothing about a sum that keeps what M absorbs.
///
/// Overflow: the mask has the largest number at i and j, its negative at k, and zeros elsewhere. The sum is
/// infinite if i and j meet before k meets one of them; otherwise two of the three cancel. No compensation
/// removes an infinity, so these masks work for all sums that overflow on the way. The set of such rooted
/// triples determines a tree (Aho, Sagiv, Szymanski and Ullman 1981).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "samesum/call/call.hpp"
#include "samesum/order/reference.hpp"

namespace samesum::harness {

/// A binary tree of additions. Addition commutes, so the children of a node have no order.
class SumTree {
 public:
  explicit SumTree(std::size_t leaves) : leaves_{leaves}, parent_(leaves, none) {}

  std::size_t leaves() const { return leaves_; }
  bool is_leaf(std::size_t node) const { return node < leaves_; }
  std::size_t root() const;
  /// The children of a node that is not a leaf.
  std::array<std::size_t, 2> children(std::size_t node) const { return children_[node - leaves_]; }

  /// Adds a node: the sum of two nodes that have no parent.
  std::size_t join(std::size_t a, std::size_t b);
  /// Inserts the sum of the leaf and the node in the place of the node.
  void insert(std::size_t leaf, std::size_t node);

  std::size_t height() const;
  /// The parent of the node; the node itself if it is the root.
  std::size_t above(std::size_t node) const { return parent_[node] == none ? node : parent_[node]; }
  std::vector<std::size_t> leaves_below(std::size_t node) const;
  /// The leaves that meet the leaf at this ancestor.
  std::vector<std::size_t> leaves_met_at(std::size_t ancestor, std::size_t leaf) const;

  /// The tree as text, "((0+2)+1)": of two children, the one with the smallest leaf comes first.
  std::string spelled() const;
  friend bool operator==(const SumTree& a, const SumTree& b) { return a.spelled() == b.spelled(); }

 private:
  static constexpr std::size_t none = SIZE_MAX;
  std::size_t leaves_;
  std::vector<std::size_t> parent_;
  std::vector<std::array<std::size_t, 2>> children_;
};

/// An accumulator that records the additions in a tree instead of adding.
struct Recorder {
  struct Leaf {
    SumTree* tree;
    std::size_t i;
  };
  SumTree* tree = nullptr;  ///< nullptr if nothing was added yet
  std::size_t node = 0;

  void add(Leaf x) { merge({x.tree, x.i}); }
  void merge(const Recorder& other) {
    node = tree ? tree->join(node, other.node) : other.node;
    tree = other.tree;
  }
};

/// The tree of an order, from its reference implementation. n >= 1.
template <class Shape> SumTree declared_tree(Shape shape, std::size_t n) {
  SumTree tree{n};
  reference_state<Recorder>(shape, n, [&](std::size_t i) { return Recorder::Leaf{&tree, i}; });
  return tree;
}

/// The tree that a method declares; empty if it promises no order, or does not depend on one.
std::optional<SumTree> declared_tree(const Method& method, std::size_t n);

/// Results that no tree can give.
struct Contradiction : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Masks { units, overflow };
constexpr std::string_view name_of(Masks masks) { return masks == Masks::units ? "units" : "overflow"; }

/// A sum that is known only by its results for masks.
class BlackBox {
 public:
  using Sum = std::function<Number(Values)>;
  BlackBox(const FormatInfo& format, Sum sum);
  /// A method of one of the operations below. A mean is multiplied by the number of elements, and the second
  /// vector of a dot product has only ones.
  BlackBox(const Method& method, int threads);
  /// Operations that are sums in disguise. The others have no elements that cancel.
  static std::span<const char* const> operations();

  /// The masks that reveal the order of this sum: units if M absorbs them, otherwise overflow if it
  /// overflows, otherwise none. Sums masks of three elements, of which two meet first in any tree:
  /// neighbours, and elements that are far apart.
  std::optional<Masks> seen_by() const;

  /// The result for ones at `units`, M at i and -M at j: the number of ones that survive. `units` may have at
  /// most most_units() elements. Throws Contradiction if the result is not such a number.
  std::size_t surviving(std::size_t n, std::size_t i, std::size_t j,
                        std::span<const std::size_t> units) const;
  std::size_t most_units() const { return most_units_; }

  /// Number of leaves below the lowest common ancestor of i and j: n minus the ones that survive.
  std::size_t size_of_common_ancestor(std::size_t n, std::size_t i, std::size_t j) const;

  /// Whether i and j meet before k meets one of them, determined by overflow.
  bool meet_first(std::size_t n, std::size_t i, std::size_t j, std::size_t k) const;

  std::size_t asked() const { return asked_; }  ///< number of sums computed so far

 private:
  struct Entry {
    std::size_t i;
    double value;
  };
  double sum(std::size_t n, std::span<const Entry> entries) const;

  const FormatInfo& format_;
  Sum sum_;
  double unit_;  ///< a one in the masks
  std::size_t most_units_ = std::size_t{1} << format_.precision;
  mutable std::vector<std::byte> memory_;  ///< memory of the last mask
  mutable std::size_t asked_ = 0;
};

/// Why M and -M among ones reveal nothing about the order of this sum; empty if they reveal it.
std::string blindness(std::optional<Masks> seen_by);

/// Reveals the whole tree of n >= 1 elements. With units, as FPRev does: the sizes of the ancestors of one
/// leaf divide the other leaves into subtrees, which are revealed recursively; this takes n - 1 masks for a
/// loop and n log2 n for a balanced tree. With overflow, leaf by leaf: each one descends from the root to its
/// place. Throws Contradiction.
SumTree reveal(const BlackBox& box, std::size_t n, Masks masks);

/// Compares the results for `samples` masks at random places with the tree. Returns the first difference as
/// text, or "" if all agree. For inputs that are too long to reveal the whole tree.
std::string first_difference(const BlackBox& box, const SumTree& tree, Masks masks, std::size_t samples,
                             std::uint64_t seed);

/// What the masks reveal about one sum. Results that no tree gives, or that change from mask to mask, are a
/// finding too.
struct Finding {
  std::optional<Masks> masks = {};   ///< the masks that were used
  std::string blind = {};            ///< why units reveal nothing; empty if they do
  std::optional<SumTree> tree = {};  ///< the revealed tree, or the declared one if places were sampled
  std::optional<bool> matches = {};  ///< whether it is the declared tree; empty if none is declared
  std::string difference = {};       ///< a result that differs from the declared tree, or from any tree
};

/// Reveals the whole tree if `samples` is 0; otherwise compares `samples` places with the declared tree.
Finding find_out(const BlackBox& box, std::size_t n, const std::optional<SumTree>& declared,
                 std::size_t samples, std::uint64_t seed);

}  // namespace samesum::harness
