/// Sets of keys, for operations by key, with the same bits on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace samesum::harness {

struct KeySet {
  std::string name;     ///< "uniform", "zipf"
  std::string meaning;  ///< description for --help
  std::function<void(std::span<std::uint32_t> keys, std::size_t bins, std::uint64_t seed)> fill;

  /// n keys less than `bins`, which must be in [1, 2^32].
  std::vector<std::uint32_t> make(std::size_t n, std::size_t bins, std::uint64_t seed) const {
    std::vector<std::uint32_t> keys(n);
    fill(keys, bins, seed);
    return keys;
  }
};

/// The list of all sets of keys.
std::span<const KeySet> key_sets();

/// The set with this name. Throws std::out_of_range if there is none.
const KeySet& key_set(const std::string& name);

/// Names and meanings for --help, one line each.
std::string key_sets_in_words();

}  // namespace samesum::harness
