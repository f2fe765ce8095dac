/// Formatting of numbers, names and lists in messages.
#pragma once

#include <array>
#include <charconv>
#include <functional>
#include <string>
#include <string_view>

namespace samesum {

/// x with three significant digits, as by printf's %.3g, independent of locale and rounding mode.
inline std::string three_digits(double x) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::general, 3);
  return {text.data(), end.ptr};
}

/// The first 80 characters of the text, in quotation marks.
inline std::string quoted(std::string_view text) { return "'" + std::string{text.substr(0, 80)} + "'"; }

/// The names of all elements, joined by `separator`.
template <class Range, class Name = std::identity>
std::string listed(const Range& all, std::string_view separator = ", ", const Name& name = {}) {
  std::string text;
  for (const auto& one : all) text.append(text.empty() ? "" : separator).append(std::invoke(name, one));
  return text;
}

}  // namespace samesum
