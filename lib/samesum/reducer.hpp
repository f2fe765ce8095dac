/// Reductions of your own: say what an element becomes, how two states combine and what the last one ends as,
/// and get every order, on the CPU here and on the GPU by reduce.cuh, with the same bits.
#pragma once

#include <concepts>
#include <ranges>
#include <span>
#include <stdexcept>

#include "samesum/backend/cpu/batch.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/catalogue/method.hpp"
#include "samesum/operation/layout.hpp"
#include "samesum/operation/validation.hpp"
#include "samesum/order/tree.hpp"

namespace samesum {

/// A reduction over elements of type T. `State` is copied like bytes, and is a multiple of 4 bytes long.
/// map(x, i) is the state of element i of the reduction; combine(a, b) that of the elements of a and b, and
/// must be associative up to its roundings; finish(state, n) the result. identity() is the state of nothing,
/// which is finished where n = 0 and never combined. `commutative` says whether combine(a, b) may stand for
/// combine(b, a): the orders `tree` and `pairwise` join elements that are not neighbours. On a GPU all four
/// are __host__ __device__.
template <class R, class T>
concept ReductionOf = std::is_trivially_copyable_v<typename R::State> && sizeof(typename R::State) % 4 == 0 &&
                      requires(const R r, T x, std::uint64_t i, typename R::State s) {
  { R::commutative } -> std::convertible_to<bool>;
  { r.identity() } -> std::convertible_to<typename R::State>;
  { r.map(x, i) } -> std::convertible_to<typename R::State>;
  { r.combine(s, s) } -> std::convertible_to<typename R::State>;
  r.finish(s, i);
};

template <class R>
using ResultOf =
    decltype(std::declval<const R&>().finish(std::declval<typename R::State>(), std::uint64_t{}));

/// Such a reduction as what a schedule runs.
template <class R, class T> struct CustomReducer {
  using State = typename R::State;
  struct Element {
    T x;
    std::uint64_t index;
  };
  R reduction;

  using Item = Element;  // mapped where it is added, and so only where it is there
  SAMESUM_HD Item item(const Element& e) const { return e; }
  SAMESUM_HD State start(const Item& x) const { return reduction.map(x.x, x.index); }
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const { merge(state, start(x)); }
  SAMESUM_HD void merge(State& state, const State& other) const { state = reduction.combine(state, other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    static_cast<ResultOf<R>*>(out)[at] = reduction.finish(n == 0 ? State{reduction.identity()} : state, n);
  }
};

/// Throws std::invalid_argument for a layout that is not valid, or pointers that cannot be those of such
/// arrays.
template <class Result, class T> void check(const Layout& layout, const T* x, const Result* out) {
  std::string wrong = validation_error(layout, std::nullopt, true);
  if (wrong.empty()) wrong = validation_error("x", x, *extent(layout, true), ElementSize::of<T>());
  if (wrong.empty()) wrong = validation_error("out", out, layout.results(), ElementSize::of<Result>());
  if (!wrong.empty()) throw std::invalid_argument("samesum: reduce: " + wrong);
}

template <class Order, class R> inline constexpr bool may_order = R::commutative || Order::joins_neighbours;

/// All results of a batch, one after the other; `x` is the array that the layout is of. Orders: CoarsenedTree
/// ("tree"), Pairwise, Blocked. Throws std::invalid_argument for a layout that overflows,shares elements
/// between columns or has falling offsets, for null or misaligned pointers, and for negative threads. How
/// many elements x has is not known here. map, combine and finish run in the standard floating-point
/// environment.
template <class Order = CoarsenedTree, class R, class T>
requires ReductionOf<R, T>
void reduce(const R& reduction, const T* x, const Layout& layout, ResultOf<R>* out, Options options = {}) {
  static_assert(
      may_order<Order, R>,
      "samesum: this order joins elements that are not neighbours, and the reduction is not commutative: "
      "take samesum::Blocked");
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "samesum: elements of 2, 4 or 8 bytes");
  using Shape = typename Order::Shape;
  using Reducer = CustomReducer<R, T>;
  check(options);
  check(layout, x, out);
  const Reducer reducer{reduction};
  const cpu::ReduceLeaves<typename R::State> leaves = [&reducer](const void* first, const void*,
                                                                 std::uint64_t index, std::size_t n,
                                                                 typename R::State* states) {
    const T* elements = static_cast<const T*>(first);
    for (std::size_t begin = 0; begin < n; begin += Shape::leaf)
      *states++ = cpu::reduce_leaf<Shape>(reducer, std::min(n - begin, Shape::leaf), [&](std::size_t i) {
        return typename Reducer::Element{elements[begin + i], index + begin + i};
      });
  };
  const Layout place = settled(layout);
  const auto work = [&] {
    cpu::reduce_batch<Shape>(
        reducer, {reinterpret_cast<const std::byte*>(x), nullptr, sizeof(T), place, options.threads}, leaves,
        {}, out);
  };
  in_standard_environment(std::ref(work));
}

/// Of a contiguous range, the one result.
template <class Order = CoarsenedTree, class R, std::ranges::contiguous_range X>
requires ReductionOf<R, std::ranges::range_value_t<X>> ResultOf<R> reduce(const R& reduction, const X& x,
                                                                          Options options = {}) {
  ResultOf<R> result;
  reduce<Order>(reduction, std::ranges::data(x), Layout::vector(std::ranges::size(x)), &result, options);
  return result;
}

}  // namespace samesum
