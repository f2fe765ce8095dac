/// Lists of types: the axes of the catalogue.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace samesum {

/// A list of types that can be indexed, searched and iterated at compile time.
template <class... T> struct TypeList {
  static constexpr std::size_t size = sizeof...(T);
  template <std::size_t i> using at = std::tuple_element_t<i, std::tuple<T...>>;
  /// The list with more types at its end.
  template <class... More> using And = TypeList<T..., More...>;
  template <class X> static constexpr bool contains = (std::is_same_v<X, T> || ...);
  template <class X> static constexpr std::size_t index_of() {
    static_assert(contains<X>, "samesum: this type is not in the list");
    std::size_t i = 0;
    static_cast<void>(((std::is_same_v<X, T> || (++i, false)) || ...));
    return i;
  }
  /// Calls visit.operator()<T>() for each T, in the order of the list.
  template <class Visit> static constexpr void for_each(Visit&& visit) {
    (visit.template operator()<T>(), ...);
  }
};

}  // namespace samesum
