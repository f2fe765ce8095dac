/// The window of one stream of terms (window/anchor.hpp): a lane adds its terms to a few doubles without
/// rounding. Each instruction set compiles its own copy.
#pragma once

#include <cstddef>

#include "samesum/bound/height.hpp"
#include "samesum/window/anchor.hpp"
#include "samesum/window/exponent_range.hpp"

namespace samesum::cpu {
namespace {

/// The smallest k >= 1 with n <= 2^k.
inline int log2_count(std::size_t n) { return n <= 2 ? 1 : static_cast<int>(ceil_log2(n)); }

/// A bound of what a plain sum of n terms below 2^top lacks, for top >= -200, which is the root of a tree of
/// sums of this height. One more is left for the roundings of the bound.
inline double plain_error(int top, std::size_t n, std::size_t height) {
  return static_cast<double>(n) * static_cast<double>(height + 1) *
         power_of_two(top - Format<fp64>::precision);
}

/// The window of a stream of terms in packs: the anchors of all words but the last, to which one term at a
/// time is added.
template <int words> struct StreamWindow {
  double anchor[words] = {};

  /// Places the window for 2^log2_terms terms, log2_terms >= 1. Returns false if the words cannot hold all of
  /// their sums.
  bool place(ExponentRange terms, int log2_terms) {
    const Anchors<words, 0> anchors{terms.top(), log2_terms};
    if (!terms.is_bounded() || !anchors.are_numbers()) return false;
    for (int i = 0; i + 1 < words; ++i) anchor[i] = anchor_at(anchors.exponent(i));
    return terms.lowest() >= anchors.lowest();
  }
  /// A bound of what the words lack of 2^log2_terms terms below 2^top that have bits below those that the
  /// words hold, where twice as much is left for terms that are left out and for other streams. The last word
  /// is the only one that rounds: each of its sums is below 2^(log2_terms + b), where its terms are at most
  /// 2^b, and lowest() = b + log2_terms - 53.
  static double error(int top, int log2_terms) {
    return power_of_two(Anchors<words, 0>{top, log2_terms}.lowest() + log2_terms + 2);
  }
};

}  // namespace
}  // namespace samesum::cpu
