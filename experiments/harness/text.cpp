#include "harness/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "harness/input.hpp"

namespace samesum::harness {
namespace {

/// d.ddd · 10^exponent
struct DecimalDigits {
  std::string digits;
  int exponent;
};

template <class... Precision> DecimalDigits to_decimal(auto magnitude, Precision... precision) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude,
                                          std::chars_format::scientific, precision...);
  const std::string text{buffer.data(), end};
  const std::size_t e = text.find('e');
  std::string digits = text.substr(0, e);
  std::erase(digits, '.');
  return {digits, std::stoi(text.substr(e + 1))};
}

/// Exponents have two digits or more, as in C and Python.
std::string exponent_text(int exponent) {
  const std::string digits = std::to_string(std::abs(exponent));
  return (exponent < 0 ? "e-" : "e+") + std::string(digits.size() < 2 ? 1 : 0, '0') + digits;
}

std::string scientific(const DecimalDigits& d) {
  return d.digits[0] + (d.digits.size() > 1 ? "." + d.digits.substr(1) : "") + exponent_text(d.exponent);
}

/// Writes a decimal without an exponent if it is short enough. Missing digits of an integer are zeros.
std::string to_text(const DecimalDigits& d) {
  const auto n = d.digits.size();
  if (d.exponent < -5 || d.exponent > 15) return scientific(d);
  if (d.exponent < 0) return "0." + std::string(static_cast<std::size_t>(-d.exponent - 1), '0') + d.digits;
  const auto whole = static_cast<std::size_t>(d.exponent + 1);
  if (n <= whole) return d.digits + std::string(whole - n, '0');
  return d.digits.substr(0, whole) + "." + d.digits.substr(whole);
}

/// The next number away from zero with the same number of digits.
DecimalDigits next(DecimalDigits d) {
  const std::size_t places = d.digits.size();
  d.digits = std::to_string(std::stoull(d.digits) + 1);
  if (d.digits.size() > places) {  // 99 becomes 100
    d.digits.pop_back();
    ++d.exponent;
  }
  return d;
}

/// Shortest decimal for the 16-bit formats, which the standard library lacks: increases the number of digits
/// until the decimal reads back as the same number. Numbers above a power of two are farther apart than those
/// below it, so the second nearest decimal may read back if the nearest does not.
DecimalDigits search_decimal(Number magnitude) {
  for (int digits = 0;; ++digits) {
    const DecimalDigits nearest = to_decimal(magnitude.to_double(), digits);
    for (const DecimalDigits& candidate : {nearest, next(nearest)})
      if (parse_number(to_text(candidate), *magnitude.format) == magnitude) return candidate;
  }
}

std::string print(const char* format, auto... values) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

}  // namespace

std::string shortest_decimal(Number x) {
  const double value = x.to_double();
  if (std::isnan(value)) return "nan";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "inf";
  const DecimalDigits shortest = with_format(*x.format, [&]<class F>() {
    if constexpr (std::is_floating_point_v<F>)
      return to_decimal(std::abs(x.as<F>()));
    else
      return search_decimal({x.format, x.bits & ~x.format->sign_bit});
  });
  const std::string text = to_text(shortest);
  if (value != std::trunc(value) || std::abs(value) >= 1e16) return sign + text;
  // Replacing the last digits of an integer by zeros does not make it shorter: 65504, not 65500.
  const std::string exact = print("%.0f", std::abs(value)), brief = scientific(shortest);
  return sign + (text == exact || exact.size() <= brief.size() ? exact : brief);
}

std::string printable(std::string_view text, bool keep_high_bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !keep_high_bytes))
      line += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    else
      line += c;
  }
  return line;
}

std::string one_line(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  return printable(message);
}

std::string hexadecimal(Number x) { return print("%a", x.to_double()); }

std::string bit_string(Number x) {
  return print("0x%0*llx", static_cast<int>(2 * x.format->bytes), static_cast<unsigned long long>(x.bits));
}

std::string compact(double x, int width, int digits) {
  if (std::isnan(x)) return "-";
  std::string text;
  for (int precision = digits; precision >= 1; --precision)
    if (text = print("%.*g", precision, x); text.size() <= static_cast<std::size_t>(width)) break;
  return text;
}

std::string three_digits(double x) {
  if (!std::isfinite(x)) return compact(x, 4);
  return print("%.*f", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x);
}

std::string duration(double seconds) {
  if (seconds < 1e-6) return three_digits(seconds * 1e9) + "ns";
  if (seconds < 1e-3) return three_digits(seconds * 1e6) + "us";
  if (seconds < 1) return three_digits(seconds * 1e3) + "ms";
  return three_digits(seconds) + "s";
}

std::string left(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string right(std::string text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::istringstream words{text};
  std::string lines, line, word;
  while (words >> word) {
    if (line.empty()) {
      line = word;
    } else if (line.size() + 1 + word.size() <= width) {
      line += ' ' + word;
    } else {
      lines += line + '\n';
      line = std::string(indent, ' ') + word;
    }
  }
  return lines + line;
}

}  // namespace samesum::harness
