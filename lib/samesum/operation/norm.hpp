/// The operation norm: the Euclidean norm √Σx².
#pragma once

#include "samesum/operation/facts.hpp"
#include "samesum/operation/reducer.hpp"
#include "samesum/operation/scaled_squares.hpp"

namespace samesum {

/// Fast path of NormReducer for zeros and elements that need no scaling (middling, see Squares). Each thread
/// has one object, which records the extreme magnitudes of all elements that the thread reads.
template <class F> struct UnscaledFastPath {
  using Of = Squares<F>;
  using C = CarrierOf<F>;
  using Item = Scalar<typename Of::G>;
  struct State {
    Item sum;
  };
  static constexpr int inputs = 1;
  mutable C largest = 0, smallest = 1;  ///< magnitudes; `smallest` leaves 0 out
  SAMESUM_HD bool applies() const { return true; }
  SAMESUM_HD Item item(const InputElement<F>& e) const {
    const C size = magnitude(e.x).v;
    largest = std::fmax(largest, size);
    if (size > 0) smallest = std::fmin(smallest, size);
    return Item{e.x.v} * Item{e.x.v};
  }
  SAMESUM_HD State start(Item x) const { return {x}; }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const { state.sum = state.sum + x; }
  SAMESUM_HD void merge(State& state, const State& other) const { state.sum = state.sum + other.sum; }
  SAMESUM_HD void halve(State& state, const State& other) const { merge(state, other); }
  SAMESUM_HD bool succeeded(const State&) const {
    return !Of::is_big(Item{largest}) && !Of::is_small(Item{smallest});
  }
  SAMESUM_HD ScaledSquares<F> state(const State& fast, std::uint64_t, int) const {
    ScaledSquares<F> all;
    all.middling = fast.sum;
    return all;
  }
};

/// Computes √Σx². For n = 0 the result is +0.
template <class F> struct NormReducer : OwnStateReducer<ScaledSquares<F>, F> {
  using FastPath = UnscaledFastPath<F>;
  SAMESUM_HD FastPath fast_path() const { return {}; }
  SAMESUM_HD void finish(const ScaledSquares<F>& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = root<F>(state);
  }
};

struct Norm : FactsOf<"norm"> {
  static constexpr auto bound = bound_of_norm;
  template <template <class> class, class F> static constexpr NormReducer<F> reducer(ReducerOptions) {
    return {};
  }
};

}  // namespace samesum
