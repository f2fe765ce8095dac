/// Exact results where the anchors of windows are the largest and the smallest numbers.
#include <set>

#include "operation/by_key_support.hpp"
#include "operation/rolling_support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

/// Exponents at the ends of a format, where subnormal numbers begin, and, for products, at half of these.
std::vector<int> extreme_exponents(const FormatInfo& format) {
  const int highest = format.max_exponent, smallest_normal = format.min_quantum + format.precision - 1;
  std::set<int> all;
  for (int k = 0; k < 3; ++k)
    for (const int end : {highest - k, highest / 2 - k, highest / 2 + k, smallest_normal - 1 + k,
                          smallest_normal / 2 - 1 + k, format.min_quantum + k})
      all.insert(end);
  return {all.begin(), all.end()};
}

/// n terms of full significands, just below 2^(exponent + 1): of one sign, of both in turn, or each second
/// one so small that the last word of a window holds it.
std::vector<Dataset> terms_below(const FormatInfo& format, int exponent, std::size_t n) {
  const double largest = std::ldexp(2 - 2 * format.unit_roundoff, exponent);
  const auto of = [&](auto factor) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = factor(i) * largest;
    return x;
  };
  const std::string what = std::to_string(n) + " below 2^" + std::to_string(exponent + 1);
  return {{what, of([](std::size_t) { return 1.0; })},
          {what + ", negative", of([](std::size_t) { return -1.0; })},
          {what + ", of both signs", of([](std::size_t i) { return i % 2 == 0 ? 1.0 : -1.0; })},
          {what + ", with small ones", of([](std::size_t i) { return i % 2 == 0 ? 1.0 : -0x1p-45; })}};
}

/// How often a vector is repeated as a row, a column or a segment: more often than vectors have lanes.
constexpr std::size_t repetitions = 9;

/// The results of an exact method for a vector, or for as many equal ones as the layout has.
Bits exact_bits(const Method& m, const Array& x, const Layout& layout) {
  if (m.takes_keys) {
    std::vector<std::size_t> keys(layout.n);
    for (std::size_t i = 0; i < layout.n; ++i) keys[i] = i * repetitions / layout.n;
    return by_key::reduced(m, {"", keys, repetitions, layout.inner, {}}, x, KeyFormat::int32);
  }
  if (!m.has_result_per_element) return reduce_all(m, x.values(), x.values(), layout);
  Options options;
  if (m.takes_window) options = {.window = std::min<std::size_t>(layout.n, 8), .min_periods = 1};
  return result_per_element(m, x.values(), layout, options);
}

/// Expects an exact method to have the bits of its reference for a vector, alone and repeated in each layout.
void expect_exact_bits(const Method& m, const FormatInfo& format, const std::vector<double>& x,
                       const std::string& what) {
  const std::size_t n = x.size();
  const Bits expected = exact_bits(reference_of(m), {format, x}, Layout::vector(n));
  EXPECT_EQ(exact_bits(m, {format, x}, Layout::vector(n)), expected)
      << m.name << " of " << format.name << ": " << what;
  std::vector<double> rows, columns;
  Bits of_rows, of_columns;
  std::vector<std::uint64_t> offsets;
  for (std::size_t i = 0; i <= repetitions; ++i) offsets.push_back(i * n);
  for (std::size_t i = 0; i < repetitions; ++i) {
    rows.insert(rows.end(), x.begin(), x.end());
    of_rows.insert(of_rows.end(), expected.begin(), expected.end());
  }
  for (const double element : x) columns.insert(columns.end(), repetitions, element);
  for (const std::uint64_t bits : expected) of_columns.insert(of_columns.end(), repetitions, bits);
  const bool has_segments = !m.takes_keys && !m.has_result_per_element;
  if (!m.has_result_per_element && !m.takes_keys) of_columns = of_rows;
  for (const Layout& layout : {Layout::rows(repetitions, n), Layout::axis(1, n, repetitions),
                               Layout::segments(offsets.data(), repetitions)}) {
    if (!m.accepts(format, layout) || (layout.offsets && !has_segments) ||
        (m.takes_keys && layout.outer > 1) || (m.keeps_format && layout.inner > 1))
      continue;
    EXPECT_EQ(exact_bits(m, {format, layout.inner > 1 ? columns : rows}, layout),
              layout.inner > 1 ? of_columns : of_rows)
        << m.name << " of " << format.name << ": " << what << "; " << layout.outer << " x " << layout.n
        << " x " << layout.inner << (layout.offsets ? " in segments" : "");
  }
}

/// Expects all exact methods of a backend whose results have the format of the elements, or fp32 for shorter
/// ones, to have the bits of their reference at every extreme exponent: for few terms, for as many as some
/// windows have room for, and for one fewer. Only one of `step` cases is tried.
void expect_exact_bits_at_extreme_exponents(std::string_view backend, int step) {
  int cases = 0;
  const auto expect_all = [&](const FormatInfo& format, int exponent, std::size_t n) {
    if (exponent > format.max_exponent || exponent < format.min_quantum) return;
    for (const auto& [what, x] : terms_below(format, exponent, n))
      for (const Method& m : methods())
        if (m.backend == backend && m.accumulator == "exact" && m.accepts(format) &&
            (m.format == &format ||
             (m.format == &format_info<fp32>() && format.bytes == 2 && !m.keeps_format)) &&
            cases++ % step == 0)
          expect_exact_bits(m, format, x, what);
  };
  for (const FormatInfo& format : formats) {
    if (is_sanitized && format.bytes < 8) continue;
    for (const int exponent : extreme_exponents(format))
      for (const std::size_t n : {1, 2, 8}) expect_all(format, exponent, n);
    for (const int log2_terms : {4, 9})
      for (const int end : {format.max_exponent, format.max_exponent / 2})
        for (const int beside : {0, 1, 2})
          for (const std::size_t fewer : {0, 1})
            expect_all(format, end - log2_terms + 1 - beside, (std::size_t{1} << log2_terms) - fewer);
  }
}

SAMESUM_ON_BACKENDS(EveryExactMethod, "cpu", "cuda");

TEST_P(EveryExactMethod, HasTheBitsOfItsReferenceWhereExponentsEnd) {
  // Calls on a GPU take far longer than these few elements on a CPU.
  if (backend == "cuda")
    expect_exact_bits_at_extreme_exponents(backend, is_sanitized ? 307 : 17);
  else
    expect_exact_bits_at_extreme_exponents(backend, is_sanitized ? 7 : 1);
}

}  // namespace
}  // namespace samesum
