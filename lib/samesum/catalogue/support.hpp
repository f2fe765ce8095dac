/// The methods as combinations of the lists of types, for code that is compiled for each of them.
#pragma once

#include <string_view>

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/catalogue/refusal.hpp"
#include "samesum/operation/operations.hpp"
#include "samesum/order/orders.hpp"

namespace samesum {

/// Whether A is the accumulator `plain`.
template <template <class> class A>
inline constexpr bool is_plain = std::is_same_v<A<Scalar<fp64>>, Plain<Scalar<fp64>>>;

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
  return refusal<Order>(Operation::facts, is_plain<A>, Format<F>::name, backend);
}

/// The accumulators that take no order: superaccumulators, and sums on a grid.
struct Exactly {
  static constexpr std::string_view name = Exact::name;
  static constexpr bool takes_grid = false;
  static constexpr std::size_t state_bytes = sizeof(Exact);
};
struct OnGrid {
  static constexpr std::string_view name = GridSum::name;
  static constexpr bool takes_grid = true;
  static constexpr std::size_t state_bytes = sizeof(GridSum);
};
using OrderFree = TypeList<Exactly, OnGrid>;
static_assert(order_free_accumulators == std::array{Exactly::name, OnGrid::name});

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
        if constexpr (is_combination<Order>(Operation::facts, is_plain<A>))
          visit.template operator()<Operation, Order, A>();
      });
    });
  });
}

/// Calls visit.operator()<Operation, Order, A>() for every method of a backend in format F, except rolling
/// methods, methods by key, softmax, and methods with an accumulator of `OrderFree`.
template <class F, Name backend, class Visit> constexpr void for_each_method(Visit&& visit) {
  for_each_combination([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (!takes_keys<Operation> && !takes_window<Operation> &&
                  refusal<Operation, Order, A, F>(backend.view()).empty())
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

/// Calls visit.operator()<Operation, Accumulator>() for every method with an accumulator of `OrderFree`,
/// either by key or not, except rolling methods.
template <bool by_key = false, class Visit> constexpr void for_each_order_free(Visit&& visit) {
  OrderFree::for_each([&]<class Accumulator>() {
    Operations::for_each([&]<class Operation>() {
      if constexpr (takes_keys<Operation> == by_key && !takes_window<Operation> && Operation::can_be_exact &&
                    order_free_refusal(Operation::facts, Accumulator::name).empty())
        visit.template operator()<Operation, Accumulator>();
    });
  });
}

}  // namespace samesum
