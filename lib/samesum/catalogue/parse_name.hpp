/// The fields of a method's name, and how a name is split into them.
#pragma once

#include "samesum/catalogue/backends.hpp"
#include "samesum/format/formats.hpp"

namespace samesum {

/// The fields of a name: operation/order/accumulator/format@backend. A field that is left out is empty.
struct NameFields {
  std::string_view operation, order, accumulator, format, backend;
};

/// A name split into its fields. `wrong` is the first word that is unknown or in the wrong place; empty if
/// there is none.
struct ParsedName {
  NameFields fields;
  std::string_view wrong;
};

/// Whether there is a backend with that name.
constexpr bool is_backend(std::string_view word) {
  return std::find(backends.begin(), backends.end(), word) != backends.end();
}

namespace detail {
constexpr std::size_t find_character(std::string_view text, char c) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != c) ++at;
  return at;
}
}  // namespace detail

/// Splits a name into its fields. `Words` tells which words are operations, orders and accumulators. Fields
/// come in their order, each at most once. Any of them may be left out, but not all.
template <class Words> constexpr ParsedName parse_name(std::string_view name) {
  ParsedName parsed;
  NameFields& f = parsed.fields;
  const std::size_t at = detail::find_character(name, '@');
  std::string_view rest = name.substr(0, at);
  int next = 0;  // the first field that may come next
  for (bool more = true; more;) {
    const std::size_t end = detail::find_character(rest, '/');
    const std::string_view word = rest.substr(0, end);
    more = end < rest.size();
    if (more) rest.remove_prefix(end + 1);
    if (next <= 0 && Words::is_operation(word))
      f.operation = word, next = 1;
    else if (next <= 1 && Words::is_order(word))
      f.order = word, next = 2;
    else if (next <= 2 && Words::is_accumulator(word))
      f.accumulator = word, next = 3;
    else if (next <= 3 && format_index(word) < Formats::size)
      f.format = word, next = 4;
    else
      return parsed.wrong = word.empty() ? name : word, parsed;
  }
  if (at < name.size()) {
    f.backend = name.substr(at + 1);
    if (!is_backend(f.backend)) parsed.wrong = f.backend.empty() ? name : f.backend;
  }
  return parsed;
}

}  // namespace samesum
