/// Names of sums that the compiler checks: sum<"tree/kahan/fp32">(x).
#pragma once

#include "samesum/accumulator/names.hpp"
#include "samesum/catalogue/parse_name.hpp"
#include "samesum/catalogue/sum_refusal.hpp"
#include "samesum/order/orders.hpp"

namespace samesum {

/// Whether a type in the list has that name.
template <class List> constexpr bool is_name_in(std::string_view word) {
  bool found = false;
  List::for_each([&]<class T>() { found = found || word == T::name; });
  return found;
}

/// Whether a sum can have an accumulator with that name.
constexpr bool is_sum_accumulator(std::string_view word) {
  return takes_no_order(word) ||
         std::find(accumulator_names.begin(), accumulator_names.end(), word) != accumulator_names.end();
}

/// The words that are operations, orders and accumulators in the name of a sum.
struct SumWords {
  static constexpr bool is_operation(std::string_view word) { return word == "sum"; }
  static constexpr bool is_order(std::string_view word) { return is_name_in<Orders>(word); }
  static constexpr bool is_accumulator(std::string_view word) { return is_sum_accumulator(word); }
};

/// Returns the format index of the sum with that name; Formats::size if there is no such sum. `otherwise` is
/// the backend for a name without one.
///
/// It is an index, not a pointer: with -fsanitize=undefined, g++ does not accept a comparison of pointers as
/// a constant.
constexpr std::size_t format_of_sum(std::string_view name, std::string_view otherwise) {
  const ParsedName parsed = parse_name<SumWords>(name);
  NameFields f = parsed.fields;
  const std::string_view backend = f.backend.empty() ? otherwise : f.backend;
  if (!parsed.wrong.empty() || (f.order.empty() && f.accumulator.empty())) return Formats::size;
  if (f.accumulator.empty()) f.accumulator = accumulator_names.front();
  if (f.order.empty() && !takes_no_order(f.accumulator)) f.order = CoarsenedTree::name;
  bool exists = f.order.empty() == takes_no_order(f.accumulator);
  Orders::for_each([&]<class Order>() {
    if (f.order == Order::name)
      exists = exists && sum_refusal<Order>(f.accumulator == "plain", backend).empty();
  });
  return exists ? format_index(f.format) : Formats::size;
}

/// The result format of the sum with that name. `otherwise` is the backend for a name without one. Does not
/// compile if there is no such sum.
template <Name name, Name otherwise = "cpu"> struct Named {
  static constexpr std::size_t index = format_of_sum(name.view(), otherwise.view());
  static_assert(index < Formats::size,
                "samesum: no such sum; a name is order/accumulator/format, exact/format or "
                "fixed_point/format, see `samesum list`");
  using Format = Formats::at<index>;
};

}  // namespace samesum
