/// Checks of keys, and runs of equal keys.
#include "samesum/call/keys.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "samesum/call/validation.hpp"

namespace samesum {

std::size_t first_bad_key(const Keys& keys, std::size_t bins) {
  return with_key_format(keys.format, [&]<class K>() {
    constexpr std::size_t block = 4096;  // the first loop has no exit, so that it can be vectorised
    const K* const all = static_cast<const K*>(keys.data);
    const auto is_bad = [bins](K key) { return key < 0 || static_cast<std::uint64_t>(key) >= bins; };
    for (std::size_t begin = 0; begin < keys.size; begin += block) {
      const std::size_t end = keys.size - begin < block ? keys.size : begin + block;
      std::make_unsigned_t<K> largest = 0;  // a negative key becomes a large one
      for (std::size_t i = begin; i < end; ++i)
        largest = std::max(largest, static_cast<std::make_unsigned_t<K>>(all[i]));
      constexpr std::uint64_t most = std::numeric_limits<K>::max();
      if (largest < bins && largest <= most) continue;
      for (std::size_t i = begin; i < end; ++i)
        if (is_bad(all[i])) return i;
    }
    return no_bad_key;
  });
}

std::string message_of_bad_key(std::size_t place, std::uint64_t key, std::size_t bins) {
  const bool is_negative = key >> 63 != 0;
  return "keys[" + std::to_string(place) + "] is " +
         (is_negative ? std::to_string(static_cast<std::int64_t>(key)) : std::to_string(key)) +
         (is_negative ? "; it must not be negative"
                      : "; it must be less than " + std::to_string(bins) + ", the number of results");
}

KeySegments segments_of(Keys keys) {
  if (const std::string wrong = validation_error(keys); !wrong.empty())
    throw std::invalid_argument("samesum: segments_of: " + wrong);
  KeySegments runs;
  with_key_format(keys.format, [&]<class K>() {
    const K* const all = static_cast<const K*>(keys.data);
    for (std::size_t i = 0; i < keys.size; ++i)
      if (i == 0 || all[i] != all[i - 1]) {
        runs.keys.push_back(static_cast<std::int64_t>(all[i]));
        runs.offsets.push_back(i);
      }
  });
  runs.offsets.push_back(keys.size);
  return runs;
}

}  // namespace samesum
