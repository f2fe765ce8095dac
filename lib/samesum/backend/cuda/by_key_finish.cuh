/// Rounds the totals of sums and counts by key.
#pragma once

#include "samesum/backend/cuda/by_key_cells.cuh"

namespace samesum::gpu {
// Internal linkage, as for all kernels that one translation unit uses.
namespace {

/// The flags of a number that is one more term.
template <class F> __device__ unsigned flags_of_number(BitsOf<F> bits) {
  if (const unsigned special = grid_flags(from_bits<F>(bits)); special != 0) return special;
  return bits == Format<F>::sign_bit ? seen_minus_zero : unsigned{Exact::seen_other_than_minus_zero};
}

/// Leaves a result for the second look.
__device__ inline void mark_ambiguous(const KeyedElements& all, std::uint64_t i) {
  all.events->ambiguous = 1;
  flag(all.flags, i, is_ambiguous);
}

/// The bits of a sum that is not zero and has no special elements.
template <class F>
__device__ BitsOf<F> sum_bits(Int128 units, const Window& w, const KeyEvents& events, const KeyResults& r,
                              BitsOf<F> held, std::uint64_t count) {
  const int grid = w.placed(events);
  const BitsOf<F> bits = r.combines            ? round_units<F, true>(units, grid, from_bits<F>(held))
                         : r.counts != nullptr ? round_quotient<F, true>(units, grid, count)
                                               : round_units<F, true>(units, grid);
  return bits == Format<F>::sign_bit && !w.exact ? BitsOf<F>{0} : bits;
}

/// Rounds all sums, unless an element missed the window.
///
/// Two things are not known here, since recording them for each element would cost too much: whether a key
/// whose sum is zero has any elements, and whether -0 is all that it has. Where the result depends on that,
/// `out` gets or keeps -0 or a NaN, and second_look decides.
template <class F>
__global__ void __launch_bounds__(256) finish_sums(KeyedElements all, Window w, KeyResults r) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *all.events);
  if (all.events->missed != 0) return;
  if (i >= all.results()) return;
  auto* const out = static_cast<BitsOf<F>*>(r.out) + i;
  const BitsOf<F> held = r.combines ? *out : BitsOf<F>{0};
  const Int128 units = total(r.totals, w.words, i);
  const unsigned own = flags_of(all.flags, i), flags = own | (r.combines ? flags_of_number<F>(held) : 0);
  const std::uint64_t divisor = r.counts != nullptr ? r.counts[quotient(i, all.inner)] : 1;
  if (divisor == 0) {
    *out = Format<F>::canonical_nan;
  } else if (flags & Exact::special_flags) {
    const BitsOf<F> bits = special_bits<F>(flags);
    if (own == 0 && units.is_zero() && bits != held)
      mark_ambiguous(all, i);
    else
      *out = bits;
  } else if (!units.is_zero()) {
    *out = sum_bits<F>(units, w, *all.events, r, held, divisor);
  } else if ((held & ~Format<F>::sign_bit) == 0) {
    const bool all_minus = (flags & seen_minus_zero) && !(flags & Exact::seen_other_than_minus_zero);
    *out = all_minus ? Format<F>::sign_bit : BitsOf<F>{0};
    if (all_minus) mark_ambiguous(all, i);
  }
}

/// Writes counts, added to what `out` holds if they are combined.
__global__ void __launch_bounds__(256) finish_counts(KeyedElements all, KeyResults r) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *all.events);
  if (i >= all.results()) return;
  auto* const out = static_cast<std::uint64_t*>(r.out) + i;
  *out = r.totals[i] + (r.combines ? *out : 0);
}

}  // namespace
}  // namespace samesum::gpu
