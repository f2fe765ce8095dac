/// The list of backends.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace samesum {

/// A text as a template argument: sum<"tree/kahan/bf16">(x).
template <std::size_t size> struct Name {
  char text[size];
  consteval Name(const char (&literal)[size]) { std::copy_n(literal, size, text); }
  constexpr std::string_view view() const { return {text, size - 1}; }
};

class Backend;

/// The backend of that name; each specialises it in its folder.
template <Name name> const Backend& backend();

template <Name... name> struct BackendList {
  static constexpr std::array<std::string_view, sizeof...(name)> names{name.view()...};
  static std::array<const Backend*, sizeof...(name)> all() { return {&backend<name>()...}; }
};

/// Where a method can run: a new backend is a folder and a word here.
using Backends = BackendList<"reference", "cpu", "cuda">;
inline constexpr auto backends = Backends::names;

}  // namespace samesum
