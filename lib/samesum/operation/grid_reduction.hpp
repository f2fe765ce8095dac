/// Reductions on a grid: the terms that each operation adds, and the results of their sums.
#pragma once

#include <optional>

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/operation/exact_reduction.hpp"
#include "samesum/window/anchor.hpp"

namespace samesum {

/// Returns the exponent of a term, as exponent_of.
template <class T> SAMESUM_HD constexpr int exponent_of_term(Term term, T x, T y) {
  return is_product(term) ? exponent_of_product(x, second_factor(term, x, y))
                          : exponent_of(element_term(term, x));
}
/// Adds a term to a sum on a grid.
template <class T> SAMESUM_HD constexpr void add_term(GridSum& sum, Term term, T x, T y, int grid) {
  if (is_product(term)) return sum.add_product(x, second_factor(term, x, y), grid);
  sum.add(element_term(term, x), grid);
}
/// A grid 2^g, and a fast way to add most doubles on it.
class GridOfDoubles {
 public:
  GridOfDoubles() = default;
  SAMESUM_HD explicit GridOfDoubles(int grid)
      : grid_{grid}, scale_{grid >= -900 && grid <= 1000 ? power_of_two(-grid) : 0} {}

  SAMESUM_HD int exponent() const { return grid_; }

  /// Adds x if that is fast; returns false otherwise. Scaling is exact, or gives a number far below half a
  /// unit.
  SAMESUM_HD bool add_fast(GridSum& sum, double x) const {
    const double units = x * scale_, magnitude = units < 0 ? -units : units;
    if (scale_ == 0 || !(magnitude < 0x1p62)) return false;
    std::int64_t rounded;
#ifdef __CUDA_ARCH__
    rounded = __double2ll_rn(units);
#else
    if (magnitude < 0x1p51) {
      rounded = units_above(whole_anchor, units + whole_anchor);
    } else if (magnitude >= 0x1p52) {
      rounded = static_cast<std::int64_t>(units);  // a whole number
    } else {
      return false;
    }
#endif
    sum.add(
        {Int128::of(rounded), bits_for_terms(static_cast<std::uint64_t>(rounded < 0 ? -rounded : rounded))});
    return true;
  }
  /// Adds an element.
  template <class T> SAMESUM_HD void add(GridSum& sum, T x) const {
    if (!add_fast(sum, convert<double>(x))) sum.add(x, grid_);
  }

 private:
  int grid_ = 0;
  double scale_ = 0;  ///< 2^-grid; 0 if that, or an element in units, may not be a normal double
};

/// All terms of elements of a format are multiples of 2^quantum.
constexpr int quantum_of_terms(Term term, const FormatInfo& input) {
  return (is_product(term) ? 2 : 1) * input.min_quantum;
}

/// Writes result `at` in format F, the result for n elements, to `out`. A sum that overflows a given grid
/// becomes NaN; returns false then.
template <class F>
SAMESUM_HD bool finish_on_grid(const GridSum& sum, bool mean, std::uint64_t n, int grid, std::size_t at,
                               void* out) {
  const bool fits = !sum.overflows(n, grid_word_bits<F>);
  static_cast<F*>(out)[at] =
      from_bits<F>(fits && !(mean && n == 0) ? sum.result<F>(grid, mean ? n : 1) : Format<F>::canonical_nan);
  return fits;
}

/// Bounds a result on a grid 2^g: each of the n terms is rounded by at most 2^(g-1), by nothing if all terms
/// are multiples of 2^g, and the result once. `largest` is at least the largest |term|; it determines the
/// grid if none is given. For magnitudes and squares the result limits it too.
double bound_on_grid(const FormatInfo& input, ExactKind kind, std::size_t n, double largest, Number result,
                     std::optional<int> grid);

}  // namespace samesum
