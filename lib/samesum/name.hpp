/// Names of methods: what their fields are, and which of them may be left out.
#pragma once

#include <algorithm>

#include "samesum/accumulator/exact.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/support.hpp"

namespace samesum {

/// The fields of a name: operation/order/accumulator/format@backend. A field that is left out is empty.
struct NameFields {
  std::string_view operation, order, accumulator, format, backend;
};

/// A name taken apart, and the first field that is none of the catalogue's words or not where it belongs;
/// empty if all are.
struct ParsedName {
  NameFields fields;
  std::string_view wrong;
};

namespace detail {

constexpr bool is_operation(std::string_view word) {
  bool found = false;
  const auto visit = [&]<class Operation>() { found = found || word == Operation::name; };
  Operations::for_each(visit);
  Softmaxes::for_each(visit);
  return found;
}
constexpr bool is_order(std::string_view word) {
  bool found = false;
  Orders::for_each([&]<class Order>() { found = found || word == Order::name; });
  return found;
}
constexpr bool is_accumulator(std::string_view word) {
  bool found = word == Exact::name || word == OnlineDenominator::accumulator;
  Accumulators::for_each([&]<template <class> class A>() { found = found || word == A<Scalar<fp64>>::name; });
  return found;
}
constexpr bool is_backend(std::string_view word) {
  bool found = false;
  for (const std::string_view b : backends) found = found || word == b;
  return found;
}
constexpr std::size_t find_character(std::string_view text, char c) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != c) ++at;
  return at;
}

}  // namespace detail

/// Fields must come in their order, each at most once; any may be left out but one.
constexpr ParsedName parse_name(std::string_view name) {
  ParsedName parsed;
  NameFields& f = parsed.fields;
  const std::size_t at = detail::find_character(name, '@');
  std::string_view rest = name.substr(0, at);
  int next = 0;  // the field that may come now
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

namespace detail {

/// The place in `Formats` of the format of a sum's name; Formats::size where there is no such method.
/// By indices, not pointers: g++ takes no comparison of a pointer for a constant under -fsanitize=undefined.
constexpr std::size_t format_of_sum(std::string_view name, std::string_view otherwise) {
  const ParsedName parsed = parse_name(name);
  const NameFields& f = parsed.fields;
  const std::string_view backend = f.backend.empty() ? otherwise : f.backend;
  if (!parsed.wrong.empty() || (!f.operation.empty() && f.operation != Sum::name)) return Formats::size;
  if (f.order.empty()) return f.accumulator == Exact::name ? format_index(f.format) : Formats::size;
  std::size_t found = Formats::size;
  Orders::for_each([&]<class Order>() {
    Accumulators::for_each([&]<template <class> class A>() {
      if (f.order == Order::name && f.accumulator == A<Scalar<fp64>>::name &&
          refusal<Sum, Order, A, fp32>(backend).empty())
        found = format_index(f.format);
    });
  });
  return found;
}

}  // namespace detail

/// What the name of a sum says of its type; a name without a backend means the one given here.
template <Name name, Name otherwise = "cpu"> struct Named {
  static constexpr std::size_t index = detail::format_of_sum(name.view(), otherwise.view());
  static_assert(
      index < Formats::size,
      "samesum: no such sum; names are order/accumulator/format or exact/format, see `samesum list`");
  using Format = Formats::at<index>;
};

}  // namespace samesum
