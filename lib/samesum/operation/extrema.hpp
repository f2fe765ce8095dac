/// The operations min, max, argmin and argmax, and their reducers.
#pragma once

#include "samesum/operation/extremum.hpp"
#include "samesum/operation/facts.hpp"
#include "samesum/operation/reducer.hpp"
#include "samesum/operation/reduction_bound.hpp"

namespace samesum {

/// Returns the larger value, or NaN if a or b is NaN. On a GPU, +0 is larger than -0.
template <class C> SAMESUM_HD inline C larger_or_nan(C a, C b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(C) == 4) {
    C larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
  }
#endif
  return a > b || a != a ? a : b;
}

/// Fast path of ExtremumReducer on a GPU: compares the numbers of 32 bits themselves.
template <class F> struct NumberFastPath {
  using C = CarrierOf<F>;
  using Item = C;
  struct State {
    C value;  ///< negated if the smallest is sought
  };
  static constexpr int inputs = 1;
  bool smallest;
  SAMESUM_HD static constexpr bool applies() { return sizeof(C) == 4; }
  SAMESUM_HD Item item(const InputElement<F>& e) const { return smallest ? -e.x.v : e.x.v; }
  SAMESUM_HD State start(Item x) const { return {x}; }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const {
    state.value = larger_or_nan(state.value, x);
  }
  SAMESUM_HD void merge(State& state, const State& other) const { add(state, other.value, 0); }
  SAMESUM_HD void halve(State& state, const State& other) const { add(state, other.value, 0); }
  SAMESUM_HD Extremum<F> state(const State& fast, std::uint64_t, int) const {
    return {KeyOf<F>::of(smallest ? -fast.value : fast.value, smallest)};
  }
};

/// Finds the extremum. For n = 0 the result is the infinity that every number replaces.
template <class F> struct ExtremumReducer {
  using Format = F;
  using State = Extremum<F>;
  using FastPath = NumberFastPath<F>;
  bool smallest;

  SAMESUM_HD FastPath fast_path() const { return {smallest}; }

  using Item = State;
  SAMESUM_HD Item item(const InputElement<F>& e) const { return {KeyOf<F>::of(e.x.v, smallest)}; }
  SAMESUM_HD State start(const Item& x) const { return x; }
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const { state.merge(x); }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = KeyOf<F>::number(state.key, smallest);
  }
};

/// Fast path of ExtremumIndexReducer: compares the numbers themselves, for elements without a NaN.
template <class F> struct NoNanFastPath {
  using C = CarrierOf<F>;
  struct Item {
    C value;  ///< negated if the smallest is sought
    std::uint32_t offset;
  };
  struct State {
    C value;  ///< NaN if one of the elements is NaN
    std::uint32_t offset;
  };
  static constexpr int inputs = 1;
  bool smallest;
  SAMESUM_HD bool applies() const { return true; }
  SAMESUM_HD Item item(const InputElement<F>& e) const { return {smallest ? -e.x.v : e.x.v, e.offset}; }
  SAMESUM_HD State start(Item x) const { return {x.value, x.offset}; }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const {
    state.offset = x.value > state.value ? x.offset : state.offset;
    state.value = larger_or_nan(x.value, state.value);
  }
  SAMESUM_HD void merge(State& state, const State& other) const {
    const bool better =
        other.value > state.value || (other.value == state.value && other.offset < state.offset);
    state.offset = better ? other.offset : state.offset;
    state.value = larger_or_nan(other.value, state.value);
  }
  SAMESUM_HD void halve(State& state, const State& other) const { merge(state, other); }
  SAMESUM_HD bool succeeded(const State& state) const { return state.value == state.value; }
  SAMESUM_HD FirstExtremum<F> state(const State& fast, std::uint64_t base, int) const {
    return {KeyOf<F>::of_number(smallest ? -fast.value : fast.value, smallest), fast.offset, base};
  }
};

/// Finds the first index of the extremum, as a std::int64_t. For n = 0 the result is -1.
template <class F> struct ExtremumIndexReducer {
  using Format = F;
  using State = FirstExtremum<F>;
  using FastPath = NoNanFastPath<F>;
  bool smallest;

  SAMESUM_HD FastPath fast_path() const { return {smallest}; }

  using Item = State;
  SAMESUM_HD Item item(const InputElement<F>& e) const {
    return {KeyOf<F>::of_number(e.x.v, smallest), e.offset, e.base};
  }
  SAMESUM_HD State start(const Item& x) const { return x; }
  /// Adds an element with the same base and a higher offset, so that only a larger key replaces the state.
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const {
    const bool better = x.key > state.key;
    state.key = better ? x.key : state.key;
    state.offset = better ? x.offset : state.offset;
  }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<std::int64_t*>(out)[at] = static_cast<std::int64_t>(state.index());
  }
};

/// An extremum, or its index. The names have no order, since every order gives the same bits.
template <Name name, bool smallest> struct ExtremumOf : FactsOf<name> {
  static constexpr auto bound = bound_of_extremum;
  template <template <class> class, class F> static constexpr auto reducer(ReducerOptions) {
    if constexpr (FactsOf<name>::facts.returns_index)
      return ExtremumIndexReducer<F>{smallest};
    else
      return ExtremumReducer<F>{smallest};
  }
};
using Min = ExtremumOf<"min", true>;
using Max = ExtremumOf<"max", false>;
using ArgMin = ExtremumOf<"argmin", true>;
using ArgMax = ExtremumOf<"argmax", false>;

}  // namespace samesum
