/// Reducers: how an element becomes a state, how states grow and merge, and how the last state becomes the
/// result. The reference, the loops of a CPU and the threads of a GPU run the same code.
#pragma once

#include "samesum/format/pack.hpp"

namespace samesum {

/// Options of a call that reach its reducer.
struct ReducerOptions {
  double ddof = 0;  ///< for a variance: the sum of squares is divided by n - ddof
  int grid = 0;     ///< for a partial of fixed_point: the exponent of the given grid
};

/// One element of each input, rounded to the format. Its index in the reduction is base + offset; the
/// elements of a leaf share `base`.
template <class F> struct InputElement {
  Scalar<F> x, y;  ///< y is 0 if there is one input
  std::uint64_t base;
  std::uint32_t offset;
};

/// Where a batch writes its results: finished, or as states, for a Partial.
struct Destination {
  void* out;
  bool states = false;
  template <class Reducer>
  SAMESUM_HD void write(const Reducer& reducer, const typename Reducer::State& state, std::uint64_t n,
                        std::size_t at) const {
    if (states)
      static_cast<typename Reducer::State*>(out)[at] = state;
    else
      reducer.finish(state, n, at, out);
  }
};

/// A value as a type, so that code that depends on it is selected at compile time.
template <auto constant> struct Constant {
  SAMESUM_HD constexpr operator decltype(constant)() const { return constant; }
};

/// Base of reducers whose state adds items itself and whose fresh state is empty.
///
/// Every reducer has:
/// - `Item`, what is added for an element, and item(element), which makes one from an element (for the
///   library's own reducers an InputElement);
/// - `State`, and start(item), the state of one item;
/// - add(state, item, k), which adds an item to a state of k items;
/// - merge(state, other);
/// - finish(state, n, at, out), which writes result `at`, a result for n elements.
///
/// A reducer may also have items(elements, items), which maps several elements at once, replacement(), a
/// reducer that replaces some of the results in a second pass, and fast_path().
///
/// A fast path is cheaper code for common data, verified afterwards. It is a reducer that computes whole rows
/// of lanes. If it succeeds, its states are those that the reducer itself would have computed; otherwise the
/// reducer computes the lanes again. A fast path has:
/// - `inputs`, which declares that it reads one input (only its existence is tested), and optionally
///   `is_light`, which is true if it computes so little that loads dominate;
/// - applies(), whether it can be tried;
/// - succeeded(state), absent if it always succeeds;
/// - state(fast, base, rows), the state of the reducer for a lane of `rows` elements;
/// - optionally halve(state, other), which merges the states of two lanes of equally many elements, the first
///   of which come first; then short rows take the fast path, too, and `rows` is the number of their
///   elements;
/// - optionally merge(state, other) for lanes of any lengths; or `Shares`, shares(count, other), which a
///   merge of states of so many elements needs, and merge(state, other, shares). Then rows of any length, up
///   to `longest_row` if that is declared, take the fast path as a whole.
///
/// A fast path without merge() serves only orders whose lanes add their rows in turn. Missing elements of a
/// partial row reach item() as zeros, so data that item() accumulates in the reducer must not change for a
/// zero.
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

/// Base of reducers whose state adds the elements themselves.
template <class S, class F> struct OwnStateReducer : StateReducer<S, Scalar<F>> {
  using Format = F;
  SAMESUM_HD Scalar<F> item(const InputElement<F>& e) const { return e.x; }
};

}  // namespace samesum
