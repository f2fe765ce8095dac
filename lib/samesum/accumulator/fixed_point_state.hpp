/// The state of a sum on a given grid as plain memory, which many threads may update at once.
#pragma once

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/window/access.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum {

/// The sum of elements of any formats on a grid, 2^grid: each is rounded once to a multiple of it (to
/// nearest, ties to even). All bytes 0 is the empty state.
///
/// Every call for a state has the same grid, and states that are merged do too. The result is that of the
/// method `fixed_point` with this grid: rounded once more, whatever the order (Promise `order_free`).
///
/// The error of n elements is at most n·2^(grid - 1), and half an ulp; nothing but the latter if all elements
/// are multiples of the grid.
struct FixedPointState {
  Int128 units;         ///< sum of the finite elements in units of the grid, modulo 2^128
  std::uint32_t flags;  ///< SumFlags::seen_nan, seen_plus_infinity and seen_minus_infinity
  std::int32_t bits;    ///< largest GridTerm::bits above `free_bits`, by which an overflow is known; else 0

  /// No number of elements below 2^64 makes a sum of elements of so many bits wrap.
  static constexpr std::int32_t free_bits = most_term_bits(~std::uint64_t{0});

  /// Adds x.
  template <class T> SAMESUM_HD void add(T x, int grid) { add_by<Alone>(x, grid); }
  /// Adds x while other threads may add to the same state, in shared or global memory.
  template <class T> SAMESUM_HD void atomic_add(T x, int grid) { add_by<Atomically>(x, grid); }
  /// Adds the elements of `other`, on the same grid.
  SAMESUM_HD void merge(const FixedPointState& other) { merge_by<Alone>(other); }
  /// Merges while other threads may add to the same state; no thread changes `other`.
  SAMESUM_HD void atomic_merge(const FixedPointState& other) { merge_by<Atomically>(other); }

  /// Whether the grid is too fine for a sum of n elements in format F, as the library tells it: the sum
  /// exceeds 2^62 units, for fp64 2^126, or an element exceeds 2^126 / n units. n is the number of elements,
  /// or more: then no overflow is missed, and elements beyond 2^126 / n units count as one.
  template <class F> SAMESUM_HD bool overflows(std::uint64_t n) const {
    return sum().overflows(n, grid_word_bits<F>);
  }
  /// The sum of n elements, rounded once to F (to nearest, ties to even); NaN if it overflows. A zero is +0.
  template <class F> SAMESUM_HD F finish(int grid, std::uint64_t n) const {
    if (overflows<F>(n)) return from_bits<F>(Format<F>::canonical_nan);
    return from_bits<F>(sum().template result<F>(grid));
  }

 private:
  SAMESUM_HD GridSum sum() const { return {units, flags, bits}; }
  template <class Access> SAMESUM_HD void merge_by(const FixedPointState& other) {
    add_words<Access>(units.word, other.units.word);
    if (other.flags != 0) Access::set(flags, other.flags);
    if (other.bits > free_bits) Access::raise(bits, other.bits);
  }
  template <class Access, class T> SAMESUM_HD void add_by(T x, int grid) {
    GridSum element;
    element.add(x, grid);
    merge_by<Access>({element.units, element.flags, element.bits});
  }
};

}  // namespace samesum
