/// Sums with known answers, for tests of exact summation.
#pragma once

#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "support.hpp"

namespace samesum::testing {

using testing_support::Array;

struct Case {
  std::string name;
  const FormatInfo* format;
  std::vector<double> x;
  double sum;  ///< correctly rounded to `format`; a NaN is the canonical one

  Array array() const { return {*format, x}; }
  Number expected() const {
    return with_format(*format, [&]<class F>() { return Number::of(convert<F>(sum)); });
  }
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.format->name << ' ' << c.name;
  }
};

namespace detail {

using Numbers = std::vector<double>;

inline Numbers repeated(std::size_t n, double x) { return Numbers(n, x); }

inline Numbers joined(std::initializer_list<Numbers> parts) {
  Numbers all;
  for (const Numbers& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline Numbers harmonic(int n, double sign) {
  Numbers x;
  double numerator = 1;
  for (int i = 1; i <= n; ++i) x.push_back((numerator *= sign) / i);
  return x;
}

/// Adds cases with special values, which exist in every format.
inline void add_special_cases(std::vector<Case>& cases, const FormatInfo& f) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  const double max = f.max_finite, tiny = f.smallest_subnormal, u = f.unit_roundoff;
  const double half_ulp_of_max = power_of_two(f.max_exponent - f.precision);
  const std::vector<Case> special{
      {"nothing", &f, {}, 0.0},
      {"-0", &f, {-0.0}, -0.0},
      {"only -0", &f, {-0.0, -0.0, -0.0}, -0.0},
      {"-0 and +0", &f, {-0.0, 0.0, -0.0}, 0.0},
      {"cancellation to zero", &f, {1, -1}, 0.0},
      {"negative cancellation to zero", &f, {-1, 1, -0.0}, 0.0},
      {"NaN", &f, {1, nan, 2}, nan},
      {"NaN beside infinity", &f, {inf, nan}, nan},
      {"inf - inf", &f, {inf, 1, -inf}, nan},
      {"+inf among finite values", &f, {1, inf, -max}, inf},
      {"-inf among finite values", &f, {max, -inf, -1, -inf}, -inf},
      {"the smallest subnormal alone", &f, {tiny}, tiny},
      {"the smallest subnormals, cancelling but one", &f, {-tiny, -tiny, tiny}, -tiny},
      {"the largest finite value alone", &f, {-max}, -max},
      {"MAX, MAX, -MAX", &f, {max, max, -max}, max},
      {"beyond the largest finite value", &f, {max, max}, inf},
      {"beyond the largest finite value, negative", &f, {-max, -max}, -inf},
      {"half an ulp beyond the largest finite value", &f, {max, half_ulp_of_max}, inf},
      {"just below half an ulp beyond the largest", &f, {max, half_ulp_of_max, -tiny}, max},
      {"large, tiny, -large", &f, {max, tiny, -max}, tiny},
      {"a tie to even, down", &f, {1, u}, 1},
      {"a tie to even, up", &f, {1, 2 * u, u}, 1 + 4 * u},
      {"a negative tie to even, down", &f, {-1, -u}, -1},
      {"a tie broken by the smallest subnormal", &f, {1, u, tiny}, 1 + 2 * u},
      {"a tie missed by the smallest subnormal", &f, {1, u, -tiny}, 1},
      {"a negative tie broken by the smallest subnormal", &f, {-1, -u, -tiny}, -1 - 2 * u},
  };
  cases.insert(cases.end(), special.begin(), special.end());
}

inline std::vector<Case> make_cases() {
  const auto &h = format_info<fp16>(), &b = format_info<bf16>(), &s = format_info<fp32>(),
             &d = format_info<fp64>();
  std::vector<Case> cases{
      {"cancelling powers of ten", &d, {1e100, 1, -1e100, 1e-100, 1e50, -1, -1e50}, 1e-100},
      {"a tie from above", &d, {0x1p53, -0.5, -0x1p-54}, 0x1p53 - 1},
      {"a tie broken from below", &d, {0x1p53 - 4, 0.5, 0x1p-54}, 0x1p53 - 3},
      {"1e16, 1, 1e-16", &d, {1e16, 1, 1e-16}, 1e16 + 2},
      {"1/n", &d, harmonic(1000, 1), 0x1.df11f45f4e61ap+2},
      {"(-1)^n/n", &d, harmonic(1000, -1), -0x1.62a2af1bd3624p-1},
      {"ones below the ulp of 1e16", &d, joined({{1e16}, repeated(100000, 1), {-1e16}}), 100000},
      {"ten times 1e-20, then 1e20, -1e20", &d, joined({repeated(10, 1e-20), {1e20, -1e20}}), 1e-19},
      {"1, 2^53, 1", &d, {1, 0x1p53, 1}, 0x1p53 + 2},
      {"2^127, 2^-149, -2^127", &s, {0x1p127, 0x1p-149, -0x1p127}, 0x1p-149},
      {"65519 ones", &h, repeated(65519, 1), 65504},
      {"65520 ones", &h, repeated(65520, 1), std::numeric_limits<double>::infinity()},
      {"four times 32000, four times -32000", &h, joined({repeated(4, 32000), repeated(4, -32000)}), 0},
      {"100000 ones", &b, repeated(100000, 1), 99840},
  };
  for (const FormatInfo& format : formats) add_special_cases(cases, format);
  return cases;
}

}  // namespace detail

/// Returns all cases.
inline const std::vector<Case>& cases() {
  static const std::vector<Case> all = detail::make_cases();
  return all;
}

}  // namespace samesum::testing
