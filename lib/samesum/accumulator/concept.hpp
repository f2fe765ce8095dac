/// What an accumulator is: a state of a few numbers that elements are added to, that meets its like, and that
/// ends as one number. It knows nothing of order, threads or GPUs.
#pragma once

#include <concepts>
#include <string_view>

#include "samesum/bound/bound.hpp"
#include "samesum/bound/height.hpp"
#include "samesum/format/pack.hpp"

namespace samesum {

/// A is an accumulator over V: a scalar or a pack of lanes in some format.
///
/// A fresh state is the empty sum; `add` to it is exact, and A{x} is the state of x alone. `merge` takes a
/// state that has seen an element. `adds_as_it_merges`: to a state of one element, adding x gives the bits of
/// merging A{x}.
/// `A::bound(summed)` says how far the result can be from Σx, and how large a number it can need on the way.
/// `A::probable_bound(summed, failing)` is the same but for a share `failing` of all the ways in which
/// roundings may fall, if they fall up as often as down.
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
