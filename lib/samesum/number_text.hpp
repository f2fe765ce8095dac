#pragma once

#include <array>
#include <charconv>
#include <string>

namespace samesum {

/// x to three significant digits, as printf's %.3g writes it; neither the locale nor the rounding mode
/// matters.
inline std::string three_digits(double x) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::general, 3);
  return {text.data(), end.ptr};
}

}  // namespace samesum
