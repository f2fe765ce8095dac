/// Custom reducers on the CPU. The caller defines how an element becomes a state, how two states combine and
/// how the last state becomes a result. reducer.cuh runs the same reducers on a GPU, with the same bits.
#pragma once

#include <concepts>
#include <ranges>
#include <span>
#include <stdexcept>

#include "samesum/backend/cpu/schedule/batch.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/call/call.hpp"
#include "samesum/call/layout.hpp"
#include "samesum/call/validation.hpp"
#include "samesum/order/tree.hpp"

namespace samesum {

/// R is a custom reducer for elements of type T.
///
/// - `State` is trivially copyable, and its size is a multiple of 4 bytes.
/// - `map(x, i)` returns the state of element x, which has index i in its reduction.
/// - `combine(a, b)` returns the state of the elements of a and b. It must be associative up to its
///   roundings.
/// - `finish(state, n)` returns the result for n elements.
/// - `identity()` returns the state of no elements. It is passed to finish() if n = 0, and never to
///   combine().
/// - `commutative` is true if combine(a, b) may replace combine(b, a). The orders `tree` and `pairwise` need
///   that, since they combine elements that are not neighbours.
///
/// On a GPU the four functions are __host__ __device__ (SAMESUM_HD), and the size of State is limited
/// (reducer.cuh).
template <class R, class T>
concept ReducerFor = std::is_trivially_copyable_v<typename R::State> && sizeof(typename R::State) % 4 == 0 &&
                     requires(const R r, T x, std::uint64_t i, typename R::State s) {
  { R::commutative } -> std::convertible_to<bool>;
  { r.identity() } -> std::convertible_to<typename R::State>;
  { r.map(x, i) } -> std::convertible_to<typename R::State>;
  { r.combine(s, s) } -> std::convertible_to<typename R::State>;
  r.finish(s, i);
};

/// Type of the result of a custom reducer: what `finish` returns.
template <class R>
using ResultOf =
    decltype(std::declval<const R&>().finish(std::declval<typename R::State>(), std::uint64_t{}));

/// Adapter that gives a custom reducer the interface of the library's own reducers (operation/reducer.hpp).
template <class R, class T> struct CustomReducer {
  using State = typename R::State;
  /// An element and its index in the reduction.
  struct Element {
    T x;
    std::uint64_t index;
  };
  R custom;

  // An item is an unmapped element. start() and add() call map(), so that map() never runs for the missing
  // elements of a partial row.
  using Item = Element;
  SAMESUM_HD Item item(const Element& e) const { return e; }
  SAMESUM_HD State start(const Item& x) const { return custom.map(x.x, x.index); }
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const { merge(state, start(x)); }
  SAMESUM_HD void merge(State& state, const State& other) const { state = custom.combine(state, other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    static_cast<ResultOf<R>*>(out)[at] = custom.finish(n == 0 ? State{custom.identity()} : state, n);
  }
};

/// Checks the arguments of `reduce`.
/// @throws std::invalid_argument if the layout is invalid, or if x or out cannot be an array of the size that
///   the layout implies.
template <class Result, class T> void check(const Layout& layout, const T* x, const Result* out) {
  std::string wrong = validation_error(layout, std::nullopt, true);
  if (wrong.empty()) wrong = validation_error("x", x, *extent(layout, true), ElementSize::of<T>());
  if (wrong.empty()) wrong = validation_error("out", out, layout.results(), ElementSize::of<Result>());
  if (!wrong.empty()) throw std::invalid_argument("samesum: reduce: " + wrong);
}

/// Whether R can be reduced in that order: R is commutative, or the order combines only neighbours.
template <class Order, class R>
inline constexpr bool order_allows = R::commutative || Order::combines_only_neighbours;

/// Reduces each row, column or segment of x with a custom reducer.
///
/// Promise: `everywhere`, if the caller's code is compiled with -ffp-contract=off (CMake target
/// samesum::reducers) and calls no function whose bits differ between machines. `map`, `combine` and `finish`
/// run concurrently, in the standard floating-point environment.
/// @tparam Order CoarsenedTree ("tree"), Pairwise or Blocked. A reducer that is not commutative needs
///   Blocked.
/// @param x the array that the layout describes, with elements of 2, 4 or 8 bytes. Its size is not checked.
/// @param out layout.results() results, one after the other.
/// @throws std::invalid_argument if sizes in the layout overflow, its columns share elements or its offsets
///   decrease; if a pointer is null or misaligned; if options.threads is negative, or `where` or `skip_nan`
///   set.
/// @throws whatever `map`, `combine` and `finish` throw on any thread, after all threads have stopped.
template <class Order = CoarsenedTree, class R, class T>
requires ReducerFor<R, T>
void reduce(const R& reducer, const T* x, const Layout& layout, ResultOf<R>* out, Options options = {}) {
  static_assert(
      order_allows<Order, R>,
      "samesum: this order combines elements that are not neighbours, but the reducer is not commutative; "
      "use samesum::Blocked");
  static_assert(cpu::has_word(sizeof(T)), "samesum: elements must have 2, 4 or 8 bytes");
  using Shape = typename Order::Shape;
  using Reducer = CustomReducer<R, T>;
  check(options);
  check(layout, x, out);
  const Reducer adapter{reducer};
  cpu::BatchLoops<typename R::State> loops;
  loops.leaves = [&adapter](const void* first, const void*, std::uint64_t index, std::size_t n,
                            typename R::State* states) {
    const T* elements = static_cast<const T*>(first);
    for (std::size_t begin = 0; begin < n; begin += Shape::leaf)
      *states++ = cpu::reduce_leaf<Shape>(adapter, std::min(n - begin, Shape::leaf), [&](std::size_t i) {
        return typename Reducer::Element{elements[begin + i], index + begin + i};
      });
  };
  const Layout place = normalised(layout);
  const auto work = [&] {
    cpu::reduce_batch<Shape>(
        adapter, {reinterpret_cast<const std::byte*>(x), nullptr, sizeof(T), place, options.threads}, loops,
        {out});
  };
  in_standard_environment(std::ref(work));
}

/// Reduces a contiguous range to one result with a custom reducer. Promise, orders and errors: as for a
/// layout.
template <class Order = CoarsenedTree, class R, std::ranges::contiguous_range X>
requires ReducerFor<R, std::ranges::range_value_t<X>> ResultOf<R> reduce(const R& reducer, const X& x,
                                                                         Options options = {}) {
  ResultOf<R> result;
  reduce<Order>(reducer, std::ranges::data(x), Layout::vector(std::ranges::size(x)), &result, options);
  return result;
}

}  // namespace samesum
