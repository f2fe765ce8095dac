/// The second look at the elements of a sum by key, for results that the totals do not determine.
#pragma once

#include <cooperative_groups.h>

#include "samesum/backend/cuda/by_key_finish.cuh"

namespace samesum::gpu {
// Internal linkage, as for all kernels that one translation unit uses.
namespace {

using NarrowDigits = DigitsFrom<-160, 11>;  // for up to fp32; Digits for up to fp64

/// Terms that digits of 64 bits can add, each less than 2^32 in a digit, before carries are propagated.
constexpr std::uint64_t terms_of_digit = std::uint64_t{1} << 30;

/// What the second look needs besides.
struct SecondLook {
  std::size_t input, format;  ///< format indices of elements and results
  std::int64_t* digits;
  std::uint64_t results;  ///< how many have room in `digits`
  std::uint64_t terms;    ///< of a result, at most
  int word_bits;          ///< usable bits of the word of a sum that is not exact
  bool has_flags;         ///< whether the flags of the results are known
};

/// Decides what finish_sums could not: the sums of zeros, or all sums if an element missed the window. Then
/// the digits of as many results as there is room for are summed at a time. Slow, and rarely needed.
template <class AnyDigits>
__global__ void __launch_bounds__(512)
    second_look(KeyedElements all, Window w, KeyResults r, SecondLook look) {
  const bool again = all.events->missed != 0;
  if (!again && all.events->ambiguous == 0) return;
  const auto grid = cooperative_groups::this_grid();
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  const int digits = w.exact ? AnyDigits::count : 4;
  if (!look.has_flags) {
    for (std::uint64_t i = index_in_grid(); i < (all.results() + 3) / 4; i += step) all.flags[i] = 0;
    grid.sync();
  }
  for_each_in_range(all, [&](std::uint64_t e, std::uint64_t i) {
    if (!again && !(flags_of(all.flags, i) & is_ambiguous)) return;
    const double x = load_as<fp64>(look.input, all.x, e).v;
    const bool minus_zero = __double_as_longlong(x) == __double_as_longlong(-0.0);
    flag(all.flags, i,
         Exact::seen_any | grid_flags(x) |
             (minus_zero ? seen_minus_zero : unsigned{Exact::seen_other_than_minus_zero}));
  });
  grid.sync();
  const auto write = [&](std::uint64_t i, std::int64_t* digit) {
    std::size_t f = 0;
    Formats::for_each([&]<class F>() {
      if (f++ != look.format) return;
      auto& out = static_cast<BitsOf<F>*>(r.out)[i];
      const unsigned own = flags_of(all.flags, i);
      if (!again && !(own & is_ambiguous)) return;
      if (!(own & Exact::seen_any)) {
        if (!r.combines) out = r.counts != nullptr ? Format<F>::canonical_nan : BitsOf<F>{0};
        return;
      }
      const BitsOf<F> held = r.combines ? out : BitsOf<F>{0};
      const unsigned flags = own | (r.combines ? flags_of_number<F>(held) : 0);
      const std::uint64_t divisor = r.counts != nullptr ? r.counts[quotient(i, all.inner)] : 1;
      const auto zero = [&] {
        return w.exact && !(flags & Exact::seen_other_than_minus_zero) ? Format<F>::sign_bit : BitsOf<F>{0};
      };
      if (flags & Exact::special_flags) {
        out = special_bits<F>(flags);
      } else if (!again) {
        out = zero();
      } else if (w.exact) {
        if (r.combines) {
          const Decomposed d = decompose<F>(held);
          add_to_digits(d.negative, d.significand, d.exponent, AnyDigits::lowest_exponent,
                        [&](int j, std::int64_t part) { digit[j] += part; });
        }
        const BitsOf<F> bits = round_digits<F>(digit, AnyDigits::count, AnyDigits::lowest_exponent, divisor);
        out = bits == 0 ? zero() : bits;
      } else {
        Int128 units;
        for (int j = 0; j < digits; ++j) units.add(Int128::of(digit[j]).shifted(32 * j));
        if (units.magnitude() > Int128::Wide{1} << look.word_bits) {
          r.report_overflow();
          out = Format<F>::canonical_nan;
          return;
        }
        out = r.combines            ? round_units<F>(units, w.grid, from_bits<F>(held))
              : r.counts != nullptr ? round_quotient<F>(units, w.grid, divisor)
                                    : round_units<F>(units, w.grid);
      }
    });
  };
  if (!again) {
    for (std::uint64_t i = index_in_grid(); i < all.results(); i += step) write(i, nullptr);
    return;
  }
  for (std::uint64_t first = 0; first < all.results(); first += look.results) {
    const std::uint64_t count = min(look.results, all.results() - first);
    for (std::uint64_t i = index_in_grid(); i < count * digits; i += step) look.digits[i] = 0;
    grid.sync();
    const auto add_element = [&](std::uint64_t e, std::uint64_t i) {
      if (i - first >= count) return;
      const double x = load_as<fp64>(look.input, all.x, e).v;
      if (!(abs(x) < INFINITY)) return;
      std::int64_t* const digit = look.digits + (i - first) * digits;
      const auto add = [&](int j, std::int64_t part) { atomic_add(digit[j], part); };
      if (w.exact) {
        Decomposed d = decompose<fp64>(to_bits(x));
        if (d.significand == 0) return;
        // A number of a narrow format has zeros below the lowest digit when it is read as a double.
        const int zeros = __ffsll(static_cast<long long>(d.significand)) - 1;
        add_to_digits(d.negative, d.significand >> zeros, d.exponent + zeros, AnyDigits::lowest_exponent,
                      add);
        return;
      }
      const GridTerm term = to_grid(x, w.grid);
      if (term.bits > most_term_bits(look.terms)) {
        r.report_overflow();
        flag(all.flags, i, Exact::seen_nan);
      }
      const Int128::Wide magnitude = term.units.magnitude();
      for (int j = 0; j < 4; ++j) {
        const auto part = static_cast<std::int64_t>(static_cast<std::uint32_t>(magnitude >> 32 * j));
        if (part != 0) add(j, term.units.is_negative() ? -part : part);
      }
    };
    for (std::uint64_t begin = 0; begin < all.elements; begin += terms_of_digit) {
      for_each_in_range(all, begin, min(begin + terms_of_digit, all.elements), add_element);
      grid.sync();
      if (begin + terms_of_digit >= all.elements) break;
      for (std::uint64_t i = index_in_grid(); i < count; i += step)
        propagate_carries(look.digits + i * digits, digits);
      grid.sync();
    }
    for (std::uint64_t i = index_in_grid(); i < count; i += step) write(first + i, look.digits + i * digits);
    grid.sync();
  }
}

}  // namespace
}  // namespace samesum::gpu
