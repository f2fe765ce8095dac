/// Reductions on a grid: the terms that each operation adds, and the results of their sums.
#pragma once

#include <optional>

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum {

/// Returns the exponent of a term, as exponent_of.
template <class T> SAMESUM_HD constexpr int exponent_of_term(Term term, T x, T y) {
  if (term == Term::element || term == Term::magnitude) return exponent_of(x);
  return exponent_of_product(x, term == Term::square ? x : y);
}
/// Adds a term to a sum on a grid.
template <class T> SAMESUM_HD constexpr void add_term(GridSum& sum, Term term, T x, T y, int grid) {
  if (term == Term::element) return sum.add(x, grid);
  if (term == Term::magnitude)
    return sum.add(std::bit_cast<T>(BitsOf<T>(std::bit_cast<BitsOf<T>>(x) & ~Format<T>::sign_bit)), grid);
  sum.add_product(x, term == Term::square ? x : y, grid);
}
/// All terms of elements of a format are multiples of 2^quantum.
constexpr int quantum_of_terms(Term term, const FormatInfo& input) {
  return (term >= Term::square ? 2 : 1) * input.min_quantum;
}

/// Writes result `at` in format F, the result for n elements, to `out`. A sum that overflows a given grid
/// becomes NaN; returns false then.
template <class F>
SAMESUM_HD bool finish_on_grid(const GridSum& sum, bool mean, std::uint64_t n, int grid, std::size_t at,
                               void* out) {
  const bool fits = !sum.overflows(n, grid_word_bits<F>);
  static_cast<BitsOf<F>*>(out)[at] =
      fits && !(mean && n == 0) ? sum.result<F>(grid, mean ? n : 1) : Format<F>::canonical_nan;
  return fits;
}

/// Bounds a result on a grid 2^g: each of the n terms is rounded by at most 2^(g-1), by nothing if all terms
/// are multiples of 2^g, and the result once. `largest` is at least the largest |term|; it determines the
/// grid if none is given. For magnitudes and squares the result limits it too.
double bound_on_grid(const FormatInfo& input, ExactKind kind, std::size_t n, double largest, Number result,
                     std::optional<int> grid);

}  // namespace samesum
