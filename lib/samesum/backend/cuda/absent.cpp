/// The CUDA backend of a library that was built without CUDA: empty tables, and the reason.
#include "samesum/operation/reduction.hpp"
#include "samesum/operation/softmax_backends.hpp"
#include "samesum/recipe.hpp"

namespace samesum::gpu {

const std::string& absence() {
  static const std::string reason = "this library was built without CUDA";
  return reason;
}

bool has_softmax() { return false; }

template <std::size_t shard> std::vector<Variant> table() { return {}; }
template <std::size_t shard> std::vector<Reduction> reductions() { return {}; }

// One instantiation for each format of the list.
template <std::size_t... shard> auto tables(std::index_sequence<shard...>) {
  return std::pair{std::array{&table<shard>...}, std::array{&reductions<shard>...}};
}
template auto tables(std::make_index_sequence<Formats::size>);

}  // namespace samesum::gpu
