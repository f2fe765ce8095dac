/// The additions of an order, as text.
#pragma once

#include <string>

#include "samesum/order/reference.hpp"

namespace samesum::testing_support {

/// An accumulator that records its additions as text, such as "(0+1)".
struct Spelled {
  std::string text;
  void add(int i) { merge({std::to_string(i)}); }
  void merge(const Spelled& other) { text = text.empty() ? other.text : "(" + text + "+" + other.text + ")"; }
};

template <class Shape> std::string spelled_sum(Shape shape, std::size_t n) {
  return reference_state<Spelled>(shape, n, [](std::size_t i) { return static_cast<int>(i); })->text;
}

}  // namespace samesum::testing_support
