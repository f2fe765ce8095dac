/// Which sums do not exist.
#pragma once

#include <string_view>

#include "samesum/base/promise.hpp"

namespace samesum {

/// Reason why a backend has no sum in that order with a plain, or with another, accumulator; empty if it has.
template <class Order> constexpr std::string_view sum_refusal(bool is_plain, std::string_view backend) {
  if (Order::promise == Promise::none && !is_plain)
    return "an atomic cell holds one number, and this accumulator's state has two";
  if constexpr (requires { Order::refusal(backend); }) return Order::refusal(backend);
  return {};
}

}  // namespace samesum
