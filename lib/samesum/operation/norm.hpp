/// The operation norm: the Euclidean norm √Σx².
#pragma once

#include "samesum/operation/facts.hpp"
#include "samesum/operation/reducer.hpp"
#include "samesum/operation/scaled_squares.hpp"

namespace samesum {

/// Fast path of NormReducer for zeros and elements that need no scaling (middling, see Squares). Squares and
/// their sums are not negative, so a sum shows whether one of them was big. Each thread has one object, which
/// records the smallest magnitude of all elements that the thread reads.
template <class F> struct UnscaledFastPath {
  using Of = Squares<F>;
  using C = CarrierOf<F>;
  using Item = Scalar<typename Of::G>;
  struct State {
    Item sum;
  };
  static constexpr int inputs = 1;
  mutable std::uint32_t smallest = ~0u;  ///< leading() - 1, which is the largest number for 0
  SAMESUM_HD bool applies() const { return true; }
  SAMESUM_HD Item item(const InputElement<F>& e) const {
    const std::uint32_t size = leading(e.x.v) - 1;
    smallest = size < smallest ? size : smallest;
    return Item{e.x.v} * Item{e.x.v};
  }
  SAMESUM_HD State start(Item x) const { return {x}; }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const { state.sum = state.sum + x; }
  SAMESUM_HD void merge(State& state, const State& other) const { state.sum = state.sum + other.sum; }
  SAMESUM_HD void halve(State& state, const State& other) const { merge(state, other); }
  SAMESUM_HD bool succeeded(const State& state) const {
    return state.sum.v <= Of::template power<2 * Of::most> &&
           smallest >= leading(Of::template power<Of::least>) - 1;
  }
  SAMESUM_HD ScaledSquares<F> state(const State& fast, std::uint64_t, int) const {
    ScaledSquares<F> all;
    all.middling = fast.sum;
    return all;
  }

 private:
  /// The leading 32 bits of the magnitude, the last of which is set if one of the others is: 0 only for 0,
  /// and in the order of the magnitudes if compared with a power of two.
  SAMESUM_HD static std::uint32_t leading(C x) {
    const auto bits = same_bits<WordOf<C>>(x);
    constexpr int others = 8 * (sizeof(C) - 4);
    const auto first = static_cast<std::uint32_t>(bits >> others) & 0x7fffffffu;
    return others == 0 ? first : first | (static_cast<std::uint32_t>(bits) != 0);
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
