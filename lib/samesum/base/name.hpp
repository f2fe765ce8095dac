/// Names as template arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace samesum {

/// A string literal as a template argument, as in sum<"tree/kahan/bf16">(x).
template <std::size_t size> struct Name {
  char text[size];
  consteval Name(const char (&literal)[size]) { std::copy_n(literal, size, text); }
  constexpr std::string_view view() const { return {text, size - 1}; }
};

}  // namespace samesum
