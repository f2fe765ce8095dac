/// The concept of an accumulator: a state of a few numbers to which elements are added, which merges with
/// other states, and which returns one number. It does not depend on order, threads or GPUs.
#pragma once

#include <concepts>
#include <string_view>

#include "samesum/bound/bound.hpp"
#include "samesum/bound/height.hpp"
#include "samesum/format/pack.hpp"

namespace samesum {

/// A is an accumulator over V, a scalar or a pack of lanes in some format.
///
/// - A default-constructed state is the empty sum. The first `add` is exact; A{x} is the state of x alone.
/// - `merge` accepts only states of at least one element.
/// - `adds_as_it_merges`: adding x to a state of one element gives the same bits as merging A{x} into it.
/// - `A::bound(summed)` bounds |result - Σx| and the magnitude of all intermediate numbers.
/// - `A::probable_bound(summed, failing)` does so with probability 1 - failing over the ways in which
///   roundings can fall, provided that they fall up as often as down.
template <class A, class V>
concept Accumulator = std::is_trivially_copyable_v<A> &&
    requires(A a, const A other, V x, const Summed& summed, double failing) {
  { A::name } -> std::convertible_to<std::string_view>;
  { A::operations_per_element } -> std::convertible_to<int>;
  { A::adds_as_it_merges } -> std::convertible_to<bool>;
  A{x};
  a.add(x);
  a.merge(other);
  { other.result() } -> std::same_as<V>;
  { A::bound(summed) } -> std::same_as<Loss>;
  { A::probable_bound(summed, failing) } -> std::same_as<Loss>;
};

}  // namespace samesum
