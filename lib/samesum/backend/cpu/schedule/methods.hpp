/// Entry points of the translation units of the CPU backend.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cpu/kernels/exact.hpp"
#include "samesum/call/statistics_call.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::cpu {

// Methods of one format, by format index; each format has its own translation unit.
template <std::size_t index> std::vector<Entry> sums();
template <std::size_t index> std::vector<Entry> reductions();
template <std::size_t index> std::vector<Entry> scans();
std::vector<Entry> methods_by_key();  ///< all of them; the next two are parts
std::vector<Entry> exact_by_key();
std::vector<Entry> on_grid_by_key();
std::vector<Entry> rolling_methods();
std::vector<Entry> softmaxes();

/// The exact state of all elements: the state, and so its bytes, that adding them one by one gives. `threads`
/// is as in Options.
Exact sum_exact(Values x, int threads);
/// The exact state of the elements that take part, and their number.
struct SelectedSum {
  Exact sum;
  std::size_t count = 0;
};
/// Adds the elements whose flag is not 0 and that are not skipped; if NaN are, `where` may be null.
SelectedSum sum_selected(Values x, const std::uint8_t* where, bool skip_nan, int threads);

/// The number of elements that are -0.
std::size_t count_minus_zeros(Values x);
/// Adds all elements on one thread, and counts those that are not -0. The flags of the sum tell only of NaN
/// and infinities.
SelectedSum sum_counting(Values x);

/// The sum of contiguous elements, at least one, in words that need not be exact, see ExactResults: for data
/// of which most words are not. A sum of only -0 is +0.
ExactSums sum_in_bounds(Values x, bool nearly, int threads);
/// The exact sum of contiguous elements, or, if y is given, of their products with those of y, as the sum of
/// three numbers. Nothing if these cannot hold it, or if an element is not finite. A sum of only -0 begins
/// with -0.
std::optional<std::array<double, 3>> sum_in_words(Values x, Values y);
/// Writes the products of elements of x and y in two words each: the nearest number and what it lacks, if
/// nothing over- or underflows.
void multiply(Values x, Values y, double* high, double* low);
/// Computes an exact reduction for any layout.
void reduce_exactly(ExactKind kind, const HostRun& work);
/// Computes a reduction on a grid for any layout.
void reduce_on_grid(ExactKind kind, HostRun& work);
/// The grid of each result of a call: the given one, or the one that its elements determine.
std::vector<int> grids_of_results(const Call& call);
/// Sums elements on a grid, on one thread.
GridSum sum_on_grid(Values x, int grid);

/// Computes statistics: a valid call. See samesum::run.
bool run_statistics(StatisticsCall call, const std::function<void()>& pause);

}  // namespace samesum::cpu
