/// The methods as combinations of the lists of types, for code that is compiled for each of them.
#pragma once

#include <string_view>

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/accumulator/hopper.hpp"
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

/// Returns the reason why this build has no such method; empty if it has one. See refusal.hpp.
template <class Order>
constexpr std::string_view refusal_of_build(const OperationFacts& operation, bool is_plain,
                                            std::string_view format, std::string_view backend) {
  if (fewer_methods && format != Format<fp32>::name && !(is_plain && std::is_same_v<Order, CoarsenedTree>))
    return "this build for sanitizers omits it";
  return refusal<Order>(operation, is_plain, format, backend);
}

/// Whether a backend has the method of this operation and order in format F, with the accumulator `plain`
/// (`is_plain`) or with another one.
template <class Operation, class Order, class F>
constexpr bool is_method(bool is_plain, std::string_view backend) {
  return is_combination<Order>(Operation::facts, is_plain) &&
         refusal_of_build<Order>(Operation::facts, is_plain, Format<F>::name, backend).empty();
}

/// The accumulators whose order is free: superaccumulators, and sums on a grid.
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
static_assert(accumulators_without_order == std::array{Exactly::name, OnGrid::name, Hopper::name});

/// Whether the code for scans computes a method: scans, and reductions in the order prefix.
template <class Operation, class Order>
inline constexpr bool is_scanned = is_scan<Operation> || std::is_same_v<Order, Prefix>;

/// Whether batches of such results, for elements of format T, have kernels of their own. Other batches are
/// computed vector by vector, where possible.
template <class Operation, class Order, template <class> class A, class T, class F>
inline constexpr bool has_batches = can_read<T, F> && (std::is_same_v<Order, CoarsenedTree> ||
                                                       (std::is_same_v<Order, Pairwise> && is_plain<A>));

/// Calls visit.operator()<Operation, Order, A>() for every method of a backend in format F, either by key or
/// not, except rolling methods, softmax, and methods with an accumulator of `OrderFree`. The refused
/// combinations, which are most of them, are not visited one by one.
template <class F, Name backend, bool by_key, class Visit> constexpr void for_each_method_of(Visit&& visit) {
  Operations::for_each([&]<class Operation>() {
    if constexpr (takes_keys<Operation> == by_key && !takes_window<Operation>)
      Orders::for_each([&]<class Order>() {
        if constexpr (is_method<Operation, Order, F>(true, backend.view()) ||
                      is_method<Operation, Order, F>(false, backend.view()))
          Accumulators::for_each([&]<template <class> class A>() {
            if constexpr (is_method<Operation, Order, F>(is_plain<A>, backend.view()))
              visit.template operator()<Operation, Order, A>();
          });
      });
  });
}
/// Visits the methods that take no keys; see for_each_method_of.
template <class F, Name backend, class Visit> constexpr void for_each_method(Visit&& visit) {
  for_each_method_of<F, backend, false>(visit);
}
/// Visits the methods by key; see for_each_method_of.
template <class F, Name backend, class Visit> constexpr void for_each_method_by_key(Visit&& visit) {
  for_each_method_of<F, backend, true>(visit);
}

/// Calls visit.operator()<Operation, Accumulator>() for every method with an accumulator of `OrderFree`,
/// either by key or not, except rolling methods.
template <bool by_key = false, class Visit> constexpr void for_each_order_free(Visit&& visit) {
  OrderFree::for_each([&]<class Accumulator>() {
    Operations::for_each([&]<class Operation>() {
      if constexpr (takes_keys<Operation> == by_key && !takes_window<Operation> && Operation::can_be_exact &&
                    refusal_without_order(Operation::facts, Accumulator::name).empty())
        visit.template operator()<Operation, Accumulator>();
    });
  });
}

}  // namespace samesum
