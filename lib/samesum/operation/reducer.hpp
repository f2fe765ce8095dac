/// What a schedule runs: how an element becomes a state, how states grow and merge, how the last one is
/// finished. The reference, the loops of a CPU and the threads of a GPU run the same text.
#pragma once

#include "samesum/format/pack.hpp"

namespace samesum {

/// What a reducer may be told when it is called.
struct ReducerOptions {
  double ddof = 0;  ///< of a variance: the sum of squares is divided by n - ddof
};

/// One element of each input, rounded to the format, and its index in the reduction: `base`, which the
/// elements of a leaf share, and how far on it is.
template <class F> struct Read {
  Scalar<F> x, y;  ///< y is 0 where there is one input
  std::uint64_t base;
  std::uint32_t offset;
};

/// A value as a type, so that what depends on it is decided when compiling.
template <auto constant> struct Constant {
  SAMESUM_HD constexpr operator decltype(constant)() const { return constant; }
};

/// What all reducers have: `Item`, what is added of an element; start(item), the `State` of one; add(state,
/// item, k) to a state of k items; merge; and finish(state, n, at, out), which writes result `at`. Here a
/// state adds items itself, and the fresh one is empty.
template <class S, class X> struct StateReducer {
  using State = S;
  using Item = X;
  SAMESUM_HD State start(const Item& x) const {
    State state;
    add(state, x, 0);
    return state;
  }
  SAMESUM_HD void add(State& state, const Item& x, [[maybe_unused]] std::size_t k) const {
    if constexpr (requires { state.add(x, k); })
      state.add(x, k);
    else
      state.add(x);
  }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
};

/// What has a state of its own, of elements as they are.
template <class S, class F> struct OwnReducer : StateReducer<S, Scalar<F>> {
  using Format = F;
  SAMESUM_HD Scalar<F> item(const Read<F>& e) const { return e.x; }
};

/// Most elements need less than a reducer must be ready for. A fast path is for whole rows of lanes: where it
/// may try, and says afterwards that it did, its states are those that the reducer itself would have had;
/// else all is done again. Each has applies(), does(state) unless it always does, and state(fast, base, rows)
/// of a lane of so many elements; without merge() it is for orders alone whose lanes take elements in turn.
/// Elements that are not there count as zeros for what it notes of all.

}  // namespace samesum
