/// Combinations of order and accumulator that are not sums, with the reasons.
#pragma once

#include <string_view>

#include "samesum/call/promise.hpp"

namespace samesum {

/// Returns the reason why a backend has no sum in this order with the plain accumulator (`is_plain`) or with
/// another one; empty if it has one.
template <class Order> constexpr std::string_view sum_refusal(bool is_plain, std::string_view backend) {
  if (Order::promise == Promise::none && !is_plain)
    return "an atomic cell holds one number, but the state of this accumulator has two; use plain";
  if constexpr (requires { Order::refusal(backend); }) return Order::refusal(backend);
  return {};
}

}  // namespace samesum
