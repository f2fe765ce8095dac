/// Names of variants that are checked by the compiler.
#pragma once

#include <algorithm>

#include "samesum/recipe.hpp"

namespace samesum {

/// The text of a template argument: sum<"tree/kahan/bf16">(x).
template <std::size_t size> struct Name {
  char text[size];
  consteval Name(const char (&literal)[size]) { std::copy_n(literal, size, text); }
  constexpr std::string_view view() const { return {text, size - 1}; }
};

namespace detail {

constexpr bool take(std::string_view& text, std::string_view prefix) {
  const bool found = text.starts_with(prefix);
  if (found) text.remove_prefix(prefix.size());
  return found;
}

/// The place in `Formats` of the format of a variant's name; Formats::size where it names none.
/// By indices, not pointers: g++ takes no comparison of a pointer for a constant under -fsanitize=undefined.
constexpr std::size_t format_of(std::string_view name, std::string_view otherwise = "cpu") {
  std::size_t at = 0;
  while (at < name.size() && name[at] != '@') ++at;
  const std::string_view recipe = name.substr(0, at);
  const std::string_view backend = at == name.size() ? otherwise : name.substr(at + 1);
  bool known = false;
  for (const std::string_view b : backends) known = known || b == backend;
  if (!known) return Formats::size;
  if (std::string_view rest = recipe; take(rest, Exact::name) && take(rest, "/")) return format_index(rest);
  std::size_t found = Formats::size;
  for_each_order_and_accumulator([&]<class Order, template <class> class A>() {
    if (!refusal<Order, A>(backend).empty()) return;
    std::string_view rest = recipe;
    if (take(rest, Order::name) && take(rest, "/") && take(rest, A<Scalar<fp64>>::name) && take(rest, "/"))
      found = format_index(rest);
  });
  return found;
}

}  // namespace detail

/// What a name says of its variant's type; a name without a backend means the one given here.
template <Name name, Name otherwise = "cpu"> struct Named {
  static constexpr std::size_t index = detail::format_of(name.view(), otherwise.view());
  static_assert(
      index < Formats::size,
      "samesum: no such variant; names are order/accumulator/format or exact/format, see `samesum list`");
  using Format = Formats::at<index>;
};

}  // namespace samesum
