/// Sums by key in words of 64 bits, of rows that are sorted by key: multiples of a grid, exactly or rounded.
#pragma once

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cpu/by_key/elements.hpp"
#include "samesum/backend/cpu/by_key/sorted_rows.hpp"
#include "samesum/backend/cpu/exact/window.hpp"
#include "samesum/window/exponent_range.hpp"

namespace samesum::cpu {

/// A grid for terms smaller than 2^end.
struct GridForRows {
  int grid, end;
  bool exactly;
};

/// Whether all elements of a column, of format T, are -0; false if there are none.
template <class T> bool is_minus_zero_column(const RowsOfKey& rows, std::size_t column) {
  const T* const x = static_cast<const T*>(rows.x) + column;
  for (std::size_t r = 0; r < rows.count; ++r)
    if (to_bits(x[rows.index[r] * rows.inner]) != Format<T>::sign_bit) return false;
  return rows.count > 0;
}

/// Sums sorted rows in words of 64 bits. Returns false if an element is as large as 2^end, has too many
/// units, or is not a whole number of units although it must be; then all results must be written anew.
template <class F>
bool sum_sorted_rows(const Call& call, const SortedRows& sorted, bool mean, GridForRows g) {
  if (std::abs(g.grid) >= 1000) return false;  // 2^-grid must be a normal double
  const FormatInfo& elements = *call.x.format;
  if (g.exactly && elements.index == Formats::index_of<fp64>() && g.grid > 0)
    return false;  // x·scale might underflow
  const int most = std::min(g.end, g.grid + 62 - bits_for_terms(most_terms(call)));
  const auto limit =
      with_format(elements, [&]<class T>() -> std::uint64_t { return round_to_bits<T>(false, 1, most); });
  const auto sum_rows = with_format(elements, [&]<class T>() { return loops_of<T>().sum_unit_rows; });
  const auto is_minus_zero = with_format(elements, [&]<class T>() { return &is_minus_zero_column<T>; });
  const GridOfRows grid{power_of_two(-g.grid), limit, most - g.grid <= 51, g.exactly};
  const bool is_simple = !mean && !call.options.combine &&
                         g.grid >= (sizeof(F) == 2 ? -900 : Format<F>::min_exponent) &&
                         g.grid <= (sizeof(F) == 2 ? 900 : Format<F>::max_exponent - 64);
  auto* const all = static_cast<F*>(call.out.data);
  const std::vector<F> held(all, all + (call.options.combine ? bins(call) * call.layout.inner : 0));
  const auto result = [&](std::int64_t sum, std::uint64_t n, F before) {
    const GridSum units{Int128::of(sum)};
    if (n == 0) return from_bits<F>(Format<F>::canonical_nan);
    if (!g.exactly)
      return from_bits<F>(call.options.combine ? units.template result_with<F>(g.grid, before)
                                               : units.template result<F>(g.grid, n));
    if (!call.options.combine) return rounded_sum<F>(units.units.wide(), g.grid, n);
    return from_bits<F>(round_sum<F>(units.units, g.grid, before));
  };
  std::atomic<bool> fits = true;
  sorted.for_each_key<std::int64_t>([&](std::size_t key, const RowsOfKey& rows, std::int64_t* sums) {
    F* const out = all + key * rows.inner;
    if (!fits.load(relaxed) || (call.options.combine && rows.count == 0)) return;
    if (!sum_rows(rows, grid, sums)) return fits.store(false, relaxed);
    const std::uint64_t n = mean ? rows.count : 1;
    if (is_simple)
      loops_of<F>().round_units(sums, rows.inner, power_of_two(g.grid), g.exactly, out);
    else
      for (std::size_t i = 0; i < rows.inner; ++i) out[i] = result(sums[i], n, out[i]);
    if (!g.exactly || !contains<F>(out, rows.inner, 0)) return;
    for (std::size_t i = 0; i < rows.inner; ++i) {
      const bool can_be_minus_zero =
          !call.options.combine || to_bits(held[key * rows.inner + i]) == Format<F>::sign_bit;
      if (to_bits(out[i]) == 0 && can_be_minus_zero && is_minus_zero(rows, i))
        out[i] = from_bits<F>(Format<F>::sign_bit);
    }
  });
  if (!fits) std::ranges::copy(held, all);
  return fits;
}

/// Calls visit(x) for a sample of n elements.
template <class T, class Visit> void for_each_of_sample(const T* x, std::size_t n, Visit visit) {
  const std::size_t step = n / 4096 + 1;
  for (std::size_t i = 0; i < n; i += step) visit(x[i]);
}

/// The exponents in samples of elements, zeros, infinities and NaN aside. Every element is checked when it is
/// added.
struct SampledExponents {
  ExponentRange range;  ///< of powers of two with these exponents
  std::size_t count = 0;

  template <class T> void add_sample(const T* x, std::size_t n) {
    for_each_of_sample(x, n, [&](T element) {
      const int exponent = exponent_of(element);
      if (exponent == no_exponent) return;
      range.merge(ExponentRange::between(exponent, exponent + 1));
      ++count;
    });
  }
  template <class T> static SampledExponents of(const T* x, std::size_t n) {
    SampledExponents all;
    all.add_sample(x, n);
    return all;
  }
  int smallest() const { return range.lowest(); }
  /// The largest exponent, or no_exponent.
  int largest() const { return range.is_empty() ? no_exponent : range.top() - 1; }
};

}  // namespace samesum::cpu
