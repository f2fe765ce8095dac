/// The fields of a method's name: how a name is split into them, and what one that leaves some out means.
#pragma once

#include "samesum/accumulator/names.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/format/formats.hpp"
#include "samesum/operation/facts.hpp"
#include "samesum/order/orders.hpp"

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

/// Values for the fields that a name leaves out.
struct NameDefaults {
  std::string_view operation = "sum";
  std::string_view format = {};  ///< empty: the name must have a format
  std::string_view backend = "cpu";
};

namespace detail {
constexpr std::size_t find_character(std::string_view text, char c) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != c) ++at;
  return at;
}
constexpr bool is_operation(std::string_view word) { return operation_index(word) < operation_facts.size(); }
constexpr bool is_order(std::string_view word) {
  bool found = false;
  Orders::for_each([&]<class Order>() { found = found || word == Order::name; });
  return found;
}
/// Softmax alone has the accumulator `online`.
constexpr bool is_accumulator(std::string_view word) {
  return takes_no_order(word) || word == "online" ||
         std::find(accumulator_names.begin(), accumulator_names.end(), word) != accumulator_names.end();
}
constexpr bool is_backend(std::string_view word) {
  return std::find(backends.begin(), backends.end(), word) != backends.end();
}
}  // namespace detail

/// Splits a name into its fields, which come in their order, each at most once. Any of them may be left out,
/// but not all.
constexpr ParsedName parse_name(std::string_view name) {
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
    if (next <= 0 && detail::is_operation(word))
      f.operation = word, next = 1;
    else if (next <= 1 && detail::is_order(word))
      f.order = word, next = 2;
    else if (next <= 2 && detail::is_accumulator(word))
      f.accumulator = word, next = 3;
    else if (next <= 3 && format_index(word) < Formats::size)
      f.format = word, next = 4;
    else
      return parsed.wrong = word.empty() ? name : word, parsed;
  }
  if (at < name.size()) {
    f.backend = name.substr(at + 1);
    if (!detail::is_backend(f.backend)) parsed.wrong = f.backend.empty() ? name : f.backend;
  }
  return parsed;
}

/// Fills in the operation, the format and the backend.
constexpr NameFields with_defaults(NameFields f, const NameDefaults& defaults) {
  if (f.operation.empty()) f.operation = defaults.operation;
  if (f.format.empty()) f.format = defaults.format;
  if (f.backend.empty()) f.backend = defaults.backend;
  return f;
}

/// Fills in the order or the accumulator if the name has only the other one: an order without an accumulator
/// means `plain`; an accumulator without an order means `tree`, for scans `prefix`, by key `serial`.
constexpr NameFields completed(NameFields f) {
  if (f.order.empty() == f.accumulator.empty() || takes_no_order(f.accumulator)) return f;
  if (f.accumulator.empty()) f.accumulator = accumulator_names.front();
  if (!f.order.empty()) return f;
  const std::size_t operation = operation_index(f.operation);
  f.order = CoarsenedTree::name;
  if (operation < operation_facts.size() && operation_facts[operation].takes_keys) f.order = Serial::name;
  if (operation < operation_facts.size() && operation_facts[operation].is_scan()) f.order = Prefix::name;
  return f;
}

}  // namespace samesum
