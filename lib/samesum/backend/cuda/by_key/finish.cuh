/// Rounds the totals of sums and counts by key; a second look at the elements decides the results that the
/// totals do not determine. SumByKey enqueues both after all elements are added; rows.cuh rounds with
/// the same functions.
#pragma once

#include <cooperative_groups.h>

#include "samesum/backend/cuda/by_key/cells.cuh"
#include "samesum/backend/cuda/exact/digits.cuh"

namespace samesum::gpu {
namespace {

/// The flags of a number that is one more term.
template <class F> __device__ unsigned flags_of_number(BitsOf<F> bits) {
  if (const unsigned special = special_flags_of(from_bits<F>(bits)); special != 0) return special;
  return bits == Format<F>::sign_bit ? seen_minus_zero : unsigned{Exact::seen_other_than_minus_zero};
}

/// Leaves a result for the second look.
__device__ inline void mark_ambiguous(const KeyedElements& keyed, std::uint64_t i) {
  keyed.events->ambiguous = 1;
  flag(keyed.flags, i, is_ambiguous);
}

/// Whether a sum whose finite terms have so many units overflows the word of its result on a grid. If so,
/// writes NaN and reports the overflow.
template <class F>
__device__ bool overflows_grid(const WideInteger<3>& units, bool exact, KeyEvents& events, BitsOf<F>& out) {
  if (exact || (units.fits(2) && units.low_128().magnitude().wide() <= Wide{1} << grid_word_bits<F>))
    return false;
  events.overflowed = 1;
  out = Format<F>::canonical_nan;
  return true;
}

/// round_sum, not inlined: the code is long, and rarely needed.
template <class F>
__device__ __noinline__ BitsOf<F> round_wide_sum(WideInteger<3> units, int grid, BitsOf<F> held,
                                                 std::uint64_t divisor) {
  return round_sum<F>(units, grid, from_bits<F>(held), divisor);
}

/// The bits of a sum that has no special elements and does not overflow a grid.
template <class F>
__device__ BitsOf<F> sum_bits(const WideInteger<3>& units, bool exact, int grid, const KeyResults& r,
                              BitsOf<F> held, std::uint64_t count) {
  const std::uint64_t divisor = r.counts != nullptr ? count : 1;
  const BitsOf<F> bits = r.combines || !units.fits(2) ? round_wide_sum<F>(units, grid, held, divisor)
                                                      : round_units<F, true>(units.low_128(), grid, divisor);
  return bits == Format<F>::sign_bit && !exact ? BitsOf<F>{0} : bits;
}

/// Rounds all sums, unless an element missed both the window and the list of outliers. Sums that have
/// outliers are left to second_look.
///
/// This kernel does not know whether a key whose sum is zero has any elements, nor whether all of them are
/// -0: to record that for each element would cost too much. If the result depends on it, `out` gets or keeps
/// -0 or a NaN, and second_look decides.
template <class F>
__global__ void __launch_bounds__(256, sizeof(F) < 8 ? 8 : 6)
    finish_sums(KeyedElements keyed, CellWindows windows, KeyResults r) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *keyed.events);
  if (keyed.events->missed != 0) return;
  if (i >= keyed.results()) return;
  auto* const out = static_cast<BitsOf<F>*>(r.out) + i;
  const BitsOf<F> held = r.combines ? *out : BitsOf<F>{0};
  const CellWindow w = windows.placed(*keyed.events);
  const WideInteger<3> units = total(r.totals, i, words_of_total(w.cells));
  const unsigned seen = flags_of(keyed.flags, i);
  if (seen & has_outliers) return;
  const unsigned flags = seen | (r.combines ? flags_of_number<F>(held) : 0);
  const std::uint64_t divisor = r.counts != nullptr ? r.counts[quotient(i, keyed.inner)] : 1;
  if (divisor == 0) {
    *out = Format<F>::canonical_nan;
  } else if (overflows_grid<F>(units, windows.exact, *keyed.events, *out)) {
    return;
  } else if (flags & Exact::special_flags) {
    const BitsOf<F> bits = special_bits<F>(flags);
    if (seen == 0 && units.is_zero() && bits != held)
      mark_ambiguous(keyed, i);
    else
      *out = bits;
  } else if (!units.is_zero()) {
    *out = sum_bits<F>(units, windows.exact, w.grid, r, held, divisor);
  } else if ((held & ~Format<F>::sign_bit) == 0) {
    const bool all_minus = (flags & seen_minus_zero) && !(flags & Exact::seen_other_than_minus_zero);
    *out = all_minus ? Format<F>::sign_bit : BitsOf<F>{0};
    if (all_minus) mark_ambiguous(keyed, i);
  }
}

/// Writes counts, added to what `out` holds if they are combined.
__global__ void __launch_bounds__(256) finish_counts(KeyedElements keyed, KeyResults r) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *keyed.events);
  if (i >= keyed.results()) return;
  auto* const out = static_cast<std::uint64_t*>(r.out) + i;
  *out = r.totals.word[i] + (r.combines ? *out : 0);
}

// --- the second look ---------------------------------------------------------------------------------------

/// Terms that digits of 64 bits can add, each less than 2^32 in a digit, before carries are propagated.
constexpr std::uint64_t terms_of_digit = std::uint64_t{1} << 30;

/// Arguments of the second look.
struct SecondLook {
  std::size_t input, format;  ///< format indices of elements and results
  std::int64_t* digits;
  std::uint64_t results;  ///< number of results that have room in `digits`
  std::uint64_t terms;    ///< most terms of a result
  int word_bits;          ///< usable bits of the word of a sum that is not exact
  bool has_flags;         ///< whether the flags of the results are known
};

/// The steps of second_look for one element or one result. Its digits hold sums of numbers of format T.
template <class T> struct SecondLooker {
  static constexpr int most_digits = samesum::ExactState<T>::digit_count,
                       lowest = samesum::ExactState<T>::lowest_exponent;

  const KeyedElements& keyed;
  const KeyResults& r;
  const SecondLook& look;
  bool exact;
  CellWindow w;
  bool again;  ///< whether all sums are computed again, because elements missed
  int digits;  ///< digits of a result

  /// Records the flags of element e of result i.
  __device__ __forceinline__ void note(std::uint64_t e, std::uint64_t i) const {
    if (!again && !(flags_of(keyed.flags, i) & is_ambiguous)) return;
    const double x = load_as<fp64>(look.input, keyed.x, e).v;
    const bool minus_zero = __double_as_longlong(x) == __double_as_longlong(-0.0);
    flag(keyed.flags, i,
         Exact::seen_any | special_flags_of(x) |
             (minus_zero ? seen_minus_zero : unsigned{Exact::seen_other_than_minus_zero}));
  }

  /// Adds element e of result i to the digits of the result.
  __device__ __forceinline__ void add(std::uint64_t e, std::uint64_t i, std::int64_t* digit) const {
    const double x = load_as<fp64>(look.input, keyed.x, e).v;
    if (!(abs(x) < INFINITY)) return;
    const unsigned flags = add(x, digit);
    if (flags != 0) flag(keyed.flags, i, flags);
  }
  /// Adds a finite element to the digits of its result, and returns flags of the result.
  __device__ __forceinline__ unsigned add(double x, std::int64_t* digit) const {
    const Decomposed d = decompose<fp64>(to_bits(x));
    if (d.significand == 0) return 0;
    // A number of a narrow format has zeros below the lowest digit when it is read as a double.
    const int zeros = __ffsll(static_cast<long long>(d.significand)) - 1;
    return add({d.significand >> zeros, d.exponent + zeros, 0, d.negative}, digit);
  }
  /// Adds a term to the digits of its result, and returns flags of the result.
  __device__ __forceinline__ unsigned add(const OutlierList::Term& x, std::int64_t* digit) const {
    const auto add = [&](int j, std::int64_t part) { atomic_add(digit[j], part); };
    if (exact) {
      add_to_digits(x.negative, x.magnitude, x.exponent, lowest, add);
      return x.flags;
    }
    const GridTerm term = to_grid(x.negative, Wide{x.magnitude}, x.exponent, w.grid);
    const Wide magnitude = term.units.magnitude().wide();
    for (int j = 0; j < 4; ++j) {
      const auto part = static_cast<std::int64_t>(static_cast<std::uint32_t>(magnitude >> 32 * j));
      if (part != 0) add(j, term.units.is_negative() ? -part : part);
    }
    if (x.flags != 0 || term.bits <= most_term_bits(look.terms)) return x.flags;
    r.report_overflow();
    return Exact::seen_nan;
  }

  /// Writes result i, whose elements have these flags, from its digits. Without digits, its elements are
  /// zeros.
  __device__ __forceinline__ void write(std::uint64_t i, unsigned seen, std::int64_t* digit) const {
    visit_format(look.format, [&]<class F>() {
      auto& out = static_cast<BitsOf<F>*>(r.out)[i];
      if (!(seen & Exact::seen_any)) {
        if (!r.combines) out = r.counts != nullptr ? Format<F>::canonical_nan : BitsOf<F>{0};
        return;
      }
      const BitsOf<F> held = r.combines ? out : BitsOf<F>{0};
      const unsigned flags = seen | (r.combines ? flags_of_number<F>(held) : 0);
      const std::uint64_t divisor = r.counts != nullptr ? r.counts[quotient(i, keyed.inner)] : 1;
      const auto zero = [&] {
        return exact && !(flags & Exact::seen_other_than_minus_zero) ? Format<F>::sign_bit : BitsOf<F>{0};
      };
      Int128 units{};
      for (int j = 0; !exact && digit != nullptr && j < digits; ++j)
        units.add(Int128::of(digit[j]).shifted(32 * j));
      if (units.magnitude().wide() > Wide{1} << look.word_bits) {
        r.report_overflow();
        out = Format<F>::canonical_nan;
      } else if (flags & Exact::special_flags) {
        out = special_bits<F>(flags);
      } else if (digit == nullptr) {
        out = zero();
      } else if (exact) {
        if (r.combines) {
          const Decomposed d = decompose<F>(held);
          add_to_digits(d.negative, d.significand, d.exponent, lowest,
                        [&](int j, std::int64_t part) { digit[j] += part; });
        }
        const BitsOf<F> bits =
            leading_of_digits(digit, most_digits, lowest).over(divisor).template rounded<F>();
        out = bits == 0 ? zero() : bits;
      } else {
        out = sum_bits<F>(WideInteger<3>::of(units), exact, w.grid, r, held, divisor);
      }
    });
  }

  /// Writes the results that have outliers. A warp collects the terms of one result and its total in digits
  /// in shared memory.
  __device__ void write_outliers(std::int64_t* digit) const {
    const std::uint64_t count = keyed.events->outliers,
                        warps_of_grid = std::uint64_t{gridDim.x} * blockDim.x / warp;
    for (std::uint64_t i = index_in_grid() / warp; i < count; i += warps_of_grid) {
      const std::uint64_t result = keyed.outliers.result[i];
      for (int d = thread(); d < digits; d += warp) digit[d] = 0;
      __syncwarp();          // all digits are 0
      bool is_first = true;  // of the terms of its result
      unsigned flags = 0;
      for (std::uint64_t first = 0; first < count && is_first; first += warp) {
        const std::uint64_t k = first + static_cast<unsigned>(thread());
        const bool belongs = k < count && keyed.outliers.result[k] == result;
        is_first = !__any_sync(whole_warp, belongs && k < i);
        if (!belongs || !is_first) continue;
        const OutlierList::Term& term = keyed.outliers.term[k];
        flags |=
            term.flags != 0 ? add(term, digit) : add(load_as<fp64>(look.input, &term.magnitude, 0).v, digit);
      }
      flags = __reduce_or_sync(whole_warp, flags);
      __syncwarp();  // all terms are added
      if (is_first && thread() == 0) write_outlier(result, flags, digit);
      __syncwarp();  // the digits are read before the next result overwrites them
    }
  }

 private:
  __device__ __forceinline__ void write_outlier(std::uint64_t i, unsigned flags, std::int64_t* digit) const {
    if (r.totals.word != nullptr) {
      const WideInteger<3> units = total(r.totals, i, words_of_total(w.cells)), magnitude = units.magnitude();
      for (int part = 0; part < 3; ++part)
        add({magnitude.word[part], w.grid + 64 * part, Exact::seen_any, units.is_negative()}, digit);
    }
    write(i, flags | flags_of(keyed.flags, i) | Exact::seen_any | Exact::seen_other_than_minus_zero, digit);
  }
};

/// Decides what finish_sums could not: sums of zeros, sums that have outliers, or all sums if elements
/// missed. Then the digits of as many results as there is room for are summed at a time. Slow, and rarely
/// needed.
template <class T>
__global__ void __launch_bounds__(512)
    second_look(KeyedElements keyed, CellWindows windows, KeyResults r, SecondLook look) {
  const KeyEvents& events = *keyed.events;
  if (events.overflowed != 0) r.report_overflow();
  if ((events.missed | events.ambiguous | events.outliers) == 0) return;
  __shared__ std::int64_t digits_of_warp[512 / warp][SecondLooker<T>::most_digits];
  const SecondLooker<T> looker{keyed,
                               r,
                               look,
                               windows.exact,
                               windows.placed(events),
                               events.missed != 0,
                               windows.exact ? SecondLooker<T>::most_digits : 4};
  const auto grid = cooperative_groups::this_grid();
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  const int digits = looker.digits;
  if (!look.has_flags) {
    for (std::uint64_t i = index_in_grid(); i < (keyed.results() + 3) / 4; i += step) keyed.flags[i] = 0;
    grid.sync();
  }
  if (!looker.again && events.outliers != 0) looker.write_outliers(digits_of_warp[warp_index()]);
  if (!looker.again && events.ambiguous == 0) return;
  for_each_in_range(keyed, [&](std::uint64_t e, std::uint64_t i) { looker.note(e, i); });
  grid.sync();
  if (!looker.again) {
    for (std::uint64_t i = index_in_grid(); i < keyed.results(); i += step)
      if (const unsigned flags = flags_of(keyed.flags, i); flags & is_ambiguous)
        looker.write(i, flags, nullptr);
    return;
  }
  for (std::uint64_t first = 0; first < keyed.results(); first += look.results) {
    const std::uint64_t count = min(look.results, keyed.results() - first);
    for (std::uint64_t i = index_in_grid(); i < count * digits; i += step) look.digits[i] = 0;
    grid.sync();
    for (std::uint64_t begin = 0; begin < keyed.elements; begin += terms_of_digit) {
      for_each_in_range(keyed, begin, min(begin + terms_of_digit, keyed.elements),
                        [&](std::uint64_t e, std::uint64_t i) {
                          if (i - first < count) looker.add(e, i, look.digits + (i - first) * digits);
                        });
      grid.sync();
      if (begin + terms_of_digit >= keyed.elements) break;
      for (std::uint64_t i = index_in_grid(); i < count; i += step)
        propagate_carries(look.digits + i * digits, digits);
      grid.sync();
    }
    for (std::uint64_t i = index_in_grid(); i < count; i += step)
      looker.write(first + i, flags_of(keyed.flags, first + i), look.digits + i * digits);
    grid.sync();
  }
}

}  // namespace
}  // namespace samesum::gpu
