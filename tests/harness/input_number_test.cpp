/// Compares parsed decimals and hexadecimals with exact rationals: a result is correct if and only if the
/// number lies between the midpoints around it.
#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "harness/input.hpp"
#include "support.hpp"

namespace samesum::harness {

namespace {

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;

cpp_rational power(int base, int exponent) {
  const cpp_int p = pow(cpp_int{base}, static_cast<unsigned>(std::abs(exponent)));
  return exponent >= 0 ? cpp_rational{p} : cpp_rational{1, p};
}

/// Returns the value of a finite magnitude; for infinity, the power of two that infinity represents in
/// rounding.
cpp_rational value(std::uint64_t magnitude, const FormatInfo& f) {
  const std::uint64_t hidden = std::uint64_t{1} << (f.precision - 1);
  const std::uint64_t field = magnitude / hidden, fraction = magnitude % hidden;
  return field == 0 ? fraction * power(2, f.min_quantum)
                    : (fraction + hidden) * power(2, f.min_quantum + static_cast<int>(field) - 1);
}

cpp_rational midpoint(std::uint64_t magnitude, const FormatInfo& f) {
  return (value(magnitude, f) + value(magnitude + 1, f)) / 2;
}

/// Whether the nonnegative x rounds to this magnitude, to nearest with ties to even.
bool is_nearest(std::uint64_t magnitude, const cpp_rational& x, const FormatInfo& f) {
  const bool even = magnitude % 2 == 0;
  if (magnitude > 0) {
    const cpp_rational below = midpoint(magnitude - 1, f);
    if (x < below || (x == below && !even)) return false;
  }
  if (magnitude == f.infinity) return true;
  const cpp_rational above = midpoint(magnitude, f);
  return x < above || (x == above && even);
}

/// Returns the value of [digits].[digits]e[exponent], or of the hexadecimal form with 0x and p.
cpp_rational decimal_value(std::string text) {
  const bool hex = text.starts_with("0x");
  const std::size_t mark = text.find(hex ? 'p' : 'e');
  int exponent = mark == std::string::npos ? 0 : std::stoi(text.substr(mark + 1));
  text = text.substr(0, mark);
  if (const std::size_t point = text.find('.'); point != std::string::npos) {
    exponent -= (hex ? 4 : 1) * static_cast<int>(text.size() - point - 1);
    text.erase(point, 1);
  }
  if (!hex) text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));  // Boost would read octal
  return cpp_rational{cpp_int{text}} * power(hex ? 2 : 10, exponent);
}

void check(const std::string& text, const FormatInfo& f) {
  for (const bool negative : {false, true}) {
    const std::string spelled = (negative ? "-" : "") + text;
    const std::optional<Number> number = parse_number(spelled, f);
    ASSERT_TRUE(number.has_value()) << spelled;
    ASSERT_EQ((number->bits & f.sign_bit) != 0, negative) << spelled;
    ASSERT_PRED3(is_nearest, number->bits & ~f.sign_bit, decimal_value(text), f)
        << spelled << " in " << f.name;
    if (&f == &format_info<fp64>()) {
      ASSERT_EQ(number->bits, to_bits(std::strtod(spelled.c_str(), nullptr))) << spelled;
    }
    if (&f == &format_info<fp32>()) {
      ASSERT_EQ(number->bits, to_bits(std::strtof(spelled.c_str(), nullptr))) << spelled;
    }
  }
}

class EveryFormat : public testing::TestWithParam<FormatInfo> {
 protected:
  const FormatInfo& format() const { return formats[GetParam().index]; }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string digits(int n, int base) {
    std::string s;
    while (n-- > 0) s += "0123456789abcdef"[below(base)];
    return s;
  }
  std::uint64_t magnitude() { return random_() % format().infinity; }

 private:
  std::mt19937_64 random_{GetParam().index};
};

TEST_P(EveryFormat, RoundsRandomDecimalsToNearest) {
  const int range = format().max_exponent / 3 + 20;  // slightly beyond the range, in decimal digits
  for (int i = 0; i < testing_support::random_cases(1000); ++i) {
    const std::string whole = digits(1 + below(25), 10), fraction = digits(below(25), 10);
    check(whole + "." + fraction + "e" + std::to_string(below(2 * range) - range), format());
    check(whole + "." + fraction, format());
  }
}

TEST_P(EveryFormat, RoundsRandomHexadecimalsToNearest) {
  const int range = format().max_exponent + 80;
  for (int i = 0; i < testing_support::random_cases(1000); ++i)
    check("0x" + digits(1 + below(25), 16) + "." + digits(below(25), 16) + "p" +
              std::to_string(below(2 * range) - range),
          format());
}

/// Returns n and e such that x = n · 10^e. The denominator of x is a power of two.
std::pair<cpp_int, int> as_decimal(const cpp_rational& x) {
  const int e = static_cast<int>(msb(denominator(x)));
  return {numerator(x) * pow(cpp_int{5}, static_cast<unsigned>(e)), -e};
}

TEST_P(EveryFormat, RoundsTiesToEvenAndNumbersBesideThemToNearest) {
  for (int i = 0; i < 150; i += testing_support::is_sanitized ? 7 : 1) {
    const std::uint64_t low = i < 20   ? static_cast<std::uint64_t>(i)
                              : i < 40 ? format().infinity - 1 - (i - 20u)
                                       : magnitude();
    const auto [n, e] = as_decimal(midpoint(low, format()));
    const int zeros = 1 + below(i % 10 == 0 ? 1000 : 20);
    const cpp_int longer = n * pow(cpp_int{10}, static_cast<unsigned>(zeros));
    check(n.str() + "e" + std::to_string(e), format());
    check(cpp_int{n + 1}.str() + "e" + std::to_string(e), format());  // an integer if e = 0
    check(cpp_int{n - 1}.str() + "e" + std::to_string(e), format());
    check(longer.str() + "e" + std::to_string(e - zeros), format());
    check(cpp_int{longer + 1}.str() + "e" + std::to_string(e - zeros), format());
    check(cpp_int{longer - 1}.str() + "e" + std::to_string(e - zeros), format());
    if (i < 40)
      check("0." + std::string(30, '0') + n.str() + "e" +
                std::to_string(e + 30 + static_cast<int>(n.str().size())),
            format());
  }
}

TEST_P(EveryFormat, ReadsBackEachValueFromItsDecimalAndItsHexadecimal) {
  for (int i = 0; i < testing_support::random_cases(4000); ++i) {
    const std::uint64_t bits = magnitude();
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", Number{&format(), bits}.to_double());
    EXPECT_EQ(parse_number(text, format())->bits, bits) << text;
    std::snprintf(text, sizeof text, "%a", Number{&format(), bits}.to_double());
    EXPECT_EQ(parse_number(text, format())->bits, bits) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Number, EveryFormat, testing::ValuesIn(formats),
                         [](const auto& info) { return std::string{info.param.name}; });

}  // namespace

}  // namespace samesum::harness
