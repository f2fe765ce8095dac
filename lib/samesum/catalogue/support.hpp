/// Which methods exist: the lists of operations, orders, accumulators and formats, folded. This is the one
/// place that decides, and says why a combination is left out.
#pragma once

#include <string_view>

#include "samesum/catalogue/backends.hpp"
#include "samesum/catalogue/sum_refusal.hpp"
#include "samesum/operation/operations.hpp"
#include "samesum/order/orders.hpp"

namespace samesum {

template <template <class> class A>
inline constexpr bool is_plain = std::is_same_v<A<Scalar<fp64>>, Plain<Scalar<fp64>>>;

/// Whether the axes apply at all: an operation without an order has one schedule, one without an accumulator
/// stands beside Plain.
template <class Operation, class Order, template <class> class A>
inline constexpr bool is_combination = (Operation::has_order ||
                                        std::is_same_v<Order, CoarsenedTree>)&&(Operation::has_accumulator ||
                                                                                is_plain<A>);

/// Builds for sanitizers have every order and accumulator in fp32 alone: in other formats they are the same
/// code once more, and take longest to compile.
#ifdef SAMESUM_FEWER_METHODS
inline constexpr bool fewer_methods = true;
#else
inline constexpr bool fewer_methods = false;
#endif

/// Why there is no such method; empty where there is.
template <class Operation, class Order, template <class> class A, class F>
constexpr std::string_view refusal(std::string_view backend) {
  if (fewer_methods && !std::is_same_v<F, fp32> && !(is_plain<A> && std::is_same_v<Order, CoarsenedTree>))
    return "left out of this build, which is for sanitizers";
  if (const std::string_view reason = sum_refusal<Order>(is_plain<A>, backend); !reason.empty())
    return reason;
  if (!Operation::template in_format<F>) return "exp and log are computed in fp32";
  if (std::is_same_v<Operation, Sum>) return {};
  if (!std::is_same_v<Order, CoarsenedTree> && !std::is_same_v<Order, Pairwise>)
    return "this order is for sums; take tree or pairwise";
  if (std::is_same_v<Order, Pairwise> && !is_plain<A>)
    return "the error of a compensated sum hardly depends on the height of the tree; take tree";
  if (std::is_same_v<Order, Pairwise> && std::is_same_v<Operation, MeanAndVariance>)
    return "each step would be a merge, which costs two divisions; take tree";
  return {};
}

/// Whether batches of such results have kernels of their own, for elements of format T: the others are
/// computed vector by vector, where that is possible.
template <class Operation, class Order, template <class> class A, class T, class F>
inline constexpr bool has_batches = can_read<T, F> && (std::is_same_v<Order, CoarsenedTree> ||
                                                       (std::is_same_v<Order, Pairwise> && is_plain<A>));

/// visit.operator()<Operation, Order, A>() for every combination, those that a backend refuses included.
template <class Visit> constexpr void for_each_combination(Visit&& visit) {
  Operations::for_each([&]<class Operation>() {
    Orders::for_each([&]<class Order>() {
      Accumulators::for_each([&]<template <class> class A>() {
        if constexpr (is_combination<Operation, Order, A>) visit.template operator()<Operation, Order, A>();
      });
    });
  });
}

/// visit.operator()<Operation, Order, A>() for every method of a backend in format F but the exact ones and
/// softmax.
template <class F, Name backend, class Visit> constexpr void for_each_method(Visit&& visit) {
  for_each_combination([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (refusal<Operation, Order, A, F>(backend.view()).empty())
      visit.template operator()<Operation, Order, A>();
  });
}

/// visit.operator()<Operation>() for each operation that can be exact.
template <class Visit> constexpr void for_each_exact_operation(Visit&& visit) {
  Operations::for_each([&]<class Operation>() {
    if constexpr (Operation::can_be_exact) visit.template operator()<Operation>();
  });
}

}  // namespace samesum
