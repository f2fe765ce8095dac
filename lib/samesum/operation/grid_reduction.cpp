/// Error bounds of reductions on a grid.
#include "samesum/operation/grid_reduction.hpp"

#include <algorithm>
#include <cmath>

namespace samesum {
namespace {

/// Returns at least the exponent of the largest finite |term|, from a number that is at least as large.
int largest_exponent(const FormatInfo& input, Term term, double largest) {
  if (largest == 0) return no_exponent;
  const int most = is_product(term) ? 2 * input.max_exponent + 1 : input.max_exponent;
  return std::isfinite(largest) ? std::min(std::ilogb(largest), most) : most;
}

}  // namespace

double bound_on_grid(const FormatInfo& input, ExactKind kind, std::size_t n, double largest, Number result,
                     std::optional<int> given) {
  // No non-negative term exceeds twice the rounded sum: on a grid that is found, it loses less than half.
  if (kind.term == Term::magnitude || kind.term == Term::square)
    largest = std::min(largest, rounded_up(2 * rounded_up(result.to_double() + bound_of_rounding(result))));
  const int quantum = quantum_of_terms(kind.term, input);
  const int grid = given ? *given
                         : found_grid(largest_exponent(input, kind.term, largest), n,
                                      word_bits_for(result.format->precision), quantum);
  const double terms =
      grid <= quantum
          ? 0
          : rounded_up(std::ldexp(kind.mean ? 1 : static_cast<double>(n), std::max(grid - 1, -1074)));
  return rounded_up(terms + bound_of_rounding(result));
}

}  // namespace samesum
