/// Which combinations of operation, order, accumulator and format are methods, and why the others are not. No
/// other file decides that.
#pragma once

#include "samesum/accumulator/names.hpp"
#include "samesum/operation/facts.hpp"
#include "samesum/order/orders.hpp"

namespace samesum {

/// Whether a combination is meaningful: an operation without an order has one schedule, listed with
/// CoarsenedTree; an operation without an accumulator is listed with `plain`.
template <class Order> constexpr bool is_combination(const OperationFacts& operation, bool is_plain) {
  return (operation.has_order || std::is_same_v<Order, CoarsenedTree>)&&(operation.has_accumulator ||
                                                                         is_plain);
}

/// Returns the reason why a backend has no method in this order with the accumulator `plain` (`is_plain`) or
/// with another one; empty if it has one.
template <class Order>
constexpr std::string_view refusal(const OperationFacts& operation, bool is_plain, std::string_view format,
                                   std::string_view backend) {
  if (Order::promise == Promise::none && !is_plain)
    return "an atomic cell holds one number, but the state of this accumulator has two; use plain";
  if constexpr (requires { Order::refusal(backend); })
    if (const std::string_view reason = Order::refusal(backend); !reason.empty()) return reason;
  if (!operation.has_format(format))
    return operation.takes_keys ? "counts read no elements, so there is one method; use fp64"
                                : "exp and log are computed in fp32 or fp64";
  if (operation.name == "sum") return {};
  if (operation.takes_keys) {
    if (!operation.has_order) return {};
    if (!is_plain) return "sums by key are exact, fixed_point or plain; use plain";
    const bool is_arrival = std::is_same_v<Order, AtomicElement> && operation.name == "scatter_add";
    return is_arrival || std::is_same_v<Order, Serial>
               ? ""
               : "the elements of a key are added in their own order; use serial";
  }
  if (operation.takes_window)
    return operation.has_order
               ? "only a sum of integers loses nothing when an element leaves the window; use exact"
               : "";
  if (operation.is_scan() && operation.has_order) {
    if (!is_closed_under_prefixes<Order>)
      return "the prefixes of a sum in this order are not sums in the same order; use prefix";
    if (std::is_same_v<Order, Serial> && !operation.has_accumulator)
      return "in the order serial there are scans of sums only; use prefix";
    return {};
  }
  if (std::is_same_v<Order, Prefix>)
    return has_scan(operation.name) ? "" : "this order exists for operations that have a scan; use tree";
  if (!std::is_same_v<Order, CoarsenedTree> && !std::is_same_v<Order, Pairwise>)
    return "this order is for sums only; use tree or pairwise";
  if (std::is_same_v<Order, Pairwise> && !is_plain)
    return "the error of a compensated sum hardly depends on the height of the tree; use tree";
  if (std::is_same_v<Order, Pairwise> && operation.name == "moments")
    return "pairwise moments would merge two states per addition, with two divisions each; use tree";
  return {};
}

/// Returns the reason why a backend has no method of an operation that can be exact with an accumulator that
/// takes no order; empty if it has one. The format and the backend matter for `hopper` alone.
constexpr std::string_view refusal_without_order(const OperationFacts& operation,
                                                 std::string_view accumulator, std::string_view format = {},
                                                 std::string_view backend = {}) {
  if (accumulator == "fixed_point" && !operation.takes_keys && !operation.has_accumulator)
    return "its sums of squares would need a second grid; use exact";
  if (accumulator != "hopper") return {};
  if (operation.name != "sum") return "the model of matrix units is for sums only; use exact";
  if (format != "fp32") return "these matrix units return sums in fp32; use fp32";
  return backend == "cuda"
             ? "its kernels are in experiments/tensor_cores, not in the library; use the model @cpu"
             : "";
}

}  // namespace samesum
