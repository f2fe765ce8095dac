/// The literal reading of a fold.
#pragma once

#include "samesum/reading.hpp"

namespace samesum {

/// A fold as the accumulator that `read` takes.
template <class Fold, class Element> struct FoldReading {
  struct Given {
    const Fold* fold;
    Element element;
  };
  const Fold* fold = nullptr;
  typename Fold::State state;
  std::size_t added = 0;

  void add(const Given& e) {
    const auto item = e.fold->item(e.element);
    if (added == 0)
      state = e.fold->start(item);
    else
      fold->add(state, item, added);
    fold = e.fold;
    ++added;
  }
  void merge(const FoldReading& other) { fold->merge(state, other.state); }
};

/// The state of elements at(0) … at(n - 1) in that order; none where n = 0.
template <class Shape, class Fold, class At>
std::optional<typename Fold::State> read_fold(const Fold& fold, std::size_t n, At at) {
  using Reading = FoldReading<Fold, decltype(at(0))>;
  const auto all = read<Reading>(Shape{}, n, [&](std::size_t i) {
    return typename Reading::Given{&fold, at(i)};
  });
  if (!all) return std::nullopt;
  return all->state;
}

}  // namespace samesum
