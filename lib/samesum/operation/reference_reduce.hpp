/// Reference implementation of reductions: a reducer in an order, element by element.
#pragma once

#include "samesum/order/reference.hpp"

namespace samesum {

/// Presents a reducer as an accumulator, which `reference_state` (order/reference.hpp) requires.
template <class Reducer, class Element> struct ReferenceState {
  struct Given {
    const Reducer* reducer;
    Element element;
  };
  const Reducer* reducer = nullptr;
  typename Reducer::State state;
  std::size_t added = 0;

  void add(const Given& e) {
    const auto item = e.reducer->item(e.element);
    if (added == 0)
      state = e.reducer->start(item);
    else
      reducer->add(state, item, added);
    reducer = e.reducer;
    ++added;
  }
  void merge(const ReferenceState& other) { reducer->merge(state, other.state); }
};

/// Returns the state of the elements at(0) … at(n - 1) in the order `Shape`; std::nullopt if n = 0.
template <class Shape, class Reducer, class At>
std::optional<typename Reducer::State> reference_reduce(const Reducer& reducer, std::size_t n, At at) {
  using Reading = ReferenceState<Reducer, decltype(at(0))>;
  const auto all = reference_state<Reading>(Shape{}, n, [&](std::size_t i) {
    return typename Reading::Given{&reducer, at(i)};
  });
  if (!all) return std::nullopt;
  return all->state;
}

/// Returns the states of the lanes of rows in a canonical order, before lanes are merged, for n >= 1
/// elements.
template <class Shape, class Reducer, class At>
std::vector<typename Reducer::State> reference_lanes(const Reducer& reducer, std::size_t n, At at) {
  using Reading = ReferenceState<Reducer, decltype(at(0))>;
  std::vector<typename Reducer::State> lanes;
  for (std::size_t l = 0; l < std::min(Shape::lanes, n); ++l)
    lanes.push_back(reference_lane<Reading>(ByPairs{}, l, n, Shape::lanes, [&](std::size_t i) {
                      return typename Reading::Given{&reducer, at(i)};
                    }).state);
  return lanes;
}

}  // namespace samesum
