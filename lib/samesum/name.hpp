/// Names of variants that are checked by the compiler.
#pragma once

#include <algorithm>

#include "samesum/recipe.hpp"

namespace samesum {

/// The text of a template argument: sum<"tree/kahan/bf16">(x).
template <std::size_t size>
struct Name {
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
constexpr std::size_t format_of(std::string_view name) {
  const std::size_t at = name.find('@');
  const std::string_view backend = at == name.npos ? "cpu" : name.substr(at + 1);
  if (std::ranges::find(backends, backend) == backends.end()) return Formats::size;
  const std::string_view recipe = name.substr(0, at);
  std::size_t found = Formats::size;
  const auto try_format = [&](std::string_view rest) {
    if (const FormatInfo* format = find_format(rest)) found = format->index;
  };
  if (std::string_view rest = recipe; take(rest, Exact::name) && take(rest, "/")) try_format(rest);
  for_each_order_and_accumulator([&]<class Order, template <class> class A>() {
    if (Order::promise < Promise::everywhere && backend == "reference") return;
    std::string_view rest = recipe;
    if (take(rest, Order::name) && take(rest, "/") && take(rest, A<Scalar<fp64>>::name) && take(rest, "/"))
      try_format(rest);
  });
  return found;
}

}  // namespace detail

/// What a name says of its variant's type.
template <Name name>
struct Named {
  static constexpr std::size_t index = detail::format_of(name.view());
  static_assert(
      index < Formats::size,
      "samesum: no such variant; names are order/accumulator/format or exact/format, see `samesum list`");
  using Format = Formats::at<index>;
};

}  // namespace samesum
