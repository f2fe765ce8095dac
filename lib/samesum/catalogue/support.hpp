/// Which combinations of the lists are methods, and why the others are not. No other file decides that.
#pragma once

#include <string_view>

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/catalogue/sum_refusal.hpp"
#include "samesum/operation/operations.hpp"
#include "samesum/order/orders.hpp"

namespace samesum {

/// Whether A is the accumulator `plain`.
template <template <class> class A>
inline constexpr bool is_plain = std::is_same_v<A<Scalar<fp64>>, Plain<Scalar<fp64>>>;

/// Whether a combination is meaningful. An operation without an order has one schedule, listed with
/// CoarsenedTree; an operation without an accumulator is listed with Plain.
template <class Operation, class Order, template <class> class A>
inline constexpr bool is_combination = (Operation::has_order ||
                                        std::is_same_v<Order, CoarsenedTree>)&&(Operation::has_accumulator ||
                                                                                is_plain<A>);

/// Sanitizer builds have all orders and accumulators in fp32 only. Other formats repeat the same code and
/// take longest to compile.
#ifdef SAMESUM_FEWER_METHODS
inline constexpr bool fewer_methods = true;
#else
inline constexpr bool fewer_methods = false;
#endif

/// Returns the reason why there is no such method; empty if there is one.
template <class Operation, class Order, template <class> class A, class F>
constexpr std::string_view refusal(std::string_view backend) {
  if (fewer_methods && !std::is_same_v<F, fp32> && !(is_plain<A> && std::is_same_v<Order, CoarsenedTree>))
    return "this build for sanitizers omits it";
  if (const std::string_view reason = sum_refusal<Order>(is_plain<A>, backend); !reason.empty())
    return reason;
  if (!Operation::template in_format<F>)
    return takes_keys<Operation> ? "counts read no elements, so there is one method; use fp64"
                                 : "exp and log are computed in fp32";
  if (std::is_same_v<Operation, Sum>) return {};
  if (takes_keys<Operation>) {
    if (!Operation::has_order) return {};
    if (!is_plain<A>) return "sums by key are exact, fixed_point or plain; use plain";
    const bool is_arrival = std::is_same_v<Order, AtomicElement> && std::is_same_v<Operation, ScatterAdd>;
    return is_arrival || std::is_same_v<Order, Serial>
               ? ""
               : "the elements of a key are added in their own order; use serial";
  }
  if (is_scan<Operation> && Operation::has_order) {
    if (!is_closed_under_prefixes<Order>)
      return "the prefixes of a sum in this order are not sums in the same order; use prefix";
    if (std::is_same_v<Order, Serial> && !Operation::has_accumulator)
      return "in the order serial there are scans of sums only; use prefix";
    return {};
  }
  if (std::is_same_v<Order, Prefix>)
    return has_scan<Operation> ? "" : "this order exists for operations that have a scan; use tree";
  if (!std::is_same_v<Order, CoarsenedTree> && !std::is_same_v<Order, Pairwise>)
    return "this order is for sums only; use tree or pairwise";
  if (std::is_same_v<Order, Pairwise> && !is_plain<A>)
    return "the error of a compensated sum hardly depends on the height of the tree; use tree";
  if (std::is_same_v<Order, Pairwise> && std::is_same_v<Operation, MeanAndVariance>)
    return "pairwise moments would merge two states per addition, with two divisions each; use tree";
  return {};
}

/// The accumulators that take no order: superaccumulators, and sums on a grid.
struct Exactly {
  static constexpr std::string_view name = Exact::name;
  static constexpr std::size_t state_bytes = sizeof(Exact);
};
struct OnGrid {
  static constexpr std::string_view name = GridSum::name;
  static constexpr std::size_t state_bytes = sizeof(GridSum);
};
using OrderFree = TypeList<Exactly, OnGrid>;
static_assert(order_free_accumulators == std::array{Exactly::name, OnGrid::name});

/// Returns the reason why an operation that can be exact has no method with an accumulator of `OrderFree`;
/// empty if it has.
template <class Operation, class Accumulator> constexpr std::string_view order_free_refusal() {
  if (takes_keys<Operation>) return {};
  if (!std::is_same_v<Accumulator, OnGrid>) return {};
  if (!Operation::has_accumulator) return "its sums of squares would need a second grid; use exact";
  return {};
}

/// Whether the code for scans computes a method: scans, and reductions in the order prefix.
template <class Operation, class Order>
inline constexpr bool is_scanned = is_scan<Operation> || std::is_same_v<Order, Prefix>;

/// Whether batches of such results, for elements of format T, have kernels of their own. Other batches are
/// computed vector by vector, where possible.
template <class Operation, class Order, template <class> class A, class T, class F>
inline constexpr bool has_batches = can_read<T, F> && (std::is_same_v<Order, CoarsenedTree> ||
                                                       (std::is_same_v<Order, Pairwise> && is_plain<A>));

/// Calls visit.operator()<Operation, Order, A>() for every combination, including those that backends refuse.
template <class Visit> constexpr void for_each_combination(Visit&& visit) {
  Operations::for_each([&]<class Operation>() {
    Orders::for_each([&]<class Order>() {
      Accumulators::for_each([&]<template <class> class A>() {
        if constexpr (is_combination<Operation, Order, A>) visit.template operator()<Operation, Order, A>();
      });
    });
  });
}

/// Calls visit.operator()<Operation, Order, A>() for every method of a backend in format F, except methods by
/// key, softmax, and methods with an accumulator of `OrderFree`.
template <class F, Name backend, class Visit> constexpr void for_each_method(Visit&& visit) {
  for_each_combination([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (!takes_keys<Operation> && refusal<Operation, Order, A, F>(backend.view()).empty())
      visit.template operator()<Operation, Order, A>();
  });
}
/// Calls visit.operator()<Operation, Order, A>() for every method by key of a backend in format F, except
/// those with an accumulator of `OrderFree`.
template <class F, Name backend, class Visit> constexpr void for_each_method_by_key(Visit&& visit) {
  for_each_combination([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (takes_keys<Operation> && refusal<Operation, Order, A, F>(backend.view()).empty())
      visit.template operator()<Operation, Order, A>();
  });
}

/// Calls visit.operator()<Operation>() for each operation that has a method with an accumulator of
/// `OrderFree`, and takes no keys.
template <class Accumulator, class Visit> constexpr void for_each_order_free(Visit&& visit) {
  Operations::for_each([&]<class Operation>() {
    if constexpr (!takes_keys<Operation> && Operation::can_be_exact &&
                  order_free_refusal<Operation, Accumulator>().empty())
      visit.template operator()<Operation>();
  });
}
/// Calls visit.operator()<Operation>() for each operation by key that has such a method.
template <class Accumulator, class Visit> constexpr void for_each_order_free_by_key(Visit&& visit) {
  Operations::for_each([&]<class Operation>() {
    if constexpr (takes_keys<Operation> && Operation::can_be_exact &&
                  order_free_refusal<Operation, Accumulator>().empty())
      visit.template operator()<Operation>();
  });
}

}  // namespace samesum
