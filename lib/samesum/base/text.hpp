/// Text for messages.
#pragma once

#include <array>
#include <charconv>
#include <functional>
#include <string>
#include <string_view>

namespace samesum {

/// x to three significant digits, as printf's %.3g writes it; neither the locale nor the rounding mode
/// matters.
inline std::string three_digits(double x) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::general, 3);
  return {text.data(), end.ptr};
}

/// The text in quotation marks, cut after 80 characters.
inline std::string quoted(std::string_view text) { return "'" + std::string{text.substr(0, 80)} + "'"; }

/// The names of all, with `separator` between them.
template <class Range, class Name = std::identity>
std::string listed(const Range& all, std::string_view separator = ", ", const Name& name = {}) {
  std::string text;
  for (const auto& one : all) text.append(text.empty() ? "" : separator).append(std::invoke(name, one));
  return text;
}

}  // namespace samesum
