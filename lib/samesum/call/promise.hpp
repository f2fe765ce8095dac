/// The promises about bits that a method can make.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace samesum {

/// What a caller may rely on when a call is repeated. Each promise includes the ones before it.
///
/// For results that depend on the position of an element, order_free means: the index from argmin and argmax
/// is the same for any partition and merge order, and a permutation of the elements moves it with its element
/// (ties: the first index in the new order); a permutation of the columns of an exact softmax gives the same
/// bits, permuted; and a result of a scan is the same for any permutation of the elements that it reduces.
enum class Promise {
  none,        ///< bits may differ from one run to the next
  run_to_run,  ///< the same bits on the same machine with the same settings
  everywhere,  ///< the same bits on any backend, thread count, launch shape and alignment
  order_free,  ///< the same bits for any permutation and any partition of the data
};

/// Number of promises.
inline constexpr std::size_t promise_count = 4;

/// Returns the name of a promise, spelled like the enumerator.
/// @throws std::out_of_range if the value is not an enumerator.
constexpr std::string_view name_of(Promise promise) {
  constexpr std::array<std::string_view, promise_count> names{"none", "run_to_run", "everywhere",
                                                              "order_free"};
  return names.at(static_cast<std::size_t>(promise));
}

}  // namespace samesum
