/// Keys: the numbers of the results to which elements belong.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "samesum/base/config.hpp"

namespace samesum {

/// The integers that can be keys, and the value for a call without keys.
enum class KeyFormat { int32, uint32, int64, none };

/// K is a type of keys.
template <class K>
concept Key =
    std::same_as<K, std::int32_t> || std::same_as<K, std::uint32_t> || std::same_as<K, std::int64_t>;

/// A view of keys, or no keys at all. It does not own them. A key is valid if it is not negative and less
/// than the number of results.
struct Keys {
  KeyFormat format = KeyFormat::none;
  const void* data = nullptr;  ///< the first key, aligned to its size; may be null if `size` is 0
  std::size_t size = 0;        ///< number of keys

  /// No keys.
  Keys() = default;
  /// Views the keys of a span.
  Keys(std::span<const std::int32_t> keys) : format{KeyFormat::int32}, data{keys.data()}, size{keys.size()} {}
  Keys(std::span<const std::uint32_t> keys)
      : format{KeyFormat::uint32}, data{keys.data()}, size{keys.size()} {}
  Keys(std::span<const std::int64_t> keys) : format{KeyFormat::int64}, data{keys.data()}, size{keys.size()} {}
  /// Views the keys of a contiguous range.
  template <std::ranges::contiguous_range R>
  requires Key<std::remove_cv_t<std::ranges::range_value_t<R>>> Keys(const R& x)
      : Keys{std::span<const std::ranges::range_value_t<R>>{x}} {}
  /// Views n keys of format f from `first` on.
  Keys(KeyFormat f, const void* first, std::size_t n) : format{f}, data{first}, size{n} {}

  /// Whether there are keys, perhaps none of them.
  bool is_given() const { return format != KeyFormat::none; }
};

/// Whether the value is a format of keys.
constexpr bool is_listed(KeyFormat format) {
  return format >= KeyFormat::int32 && format <= KeyFormat::int64;
}

/// Size of a key in bytes.
SAMESUM_HD constexpr std::size_t bytes_of(KeyFormat format) { return format == KeyFormat::int64 ? 8 : 4; }

/// Returns key i. A negative key becomes 2^63 or more, and so exceeds every number of results.
SAMESUM_HD inline std::uint64_t key_at(KeyFormat format, const void* data, std::size_t i) {
  if (format == KeyFormat::uint32) return static_cast<const std::uint32_t*>(data)[i];
  if (format == KeyFormat::int32)
    return static_cast<std::uint64_t>(std::int64_t{static_cast<const std::int32_t*>(data)[i]});
  return static_cast<std::uint64_t>(static_cast<const std::int64_t*>(data)[i]);
}

/// Calls `visit.operator()<K>()` with the type of the keys, and returns its result.
template <class Visit> decltype(auto) with_key_format(KeyFormat format, Visit&& visit) {
  if (format == KeyFormat::int32) return visit.template operator()<std::int32_t>();
  if (format == KeyFormat::uint32) return visit.template operator()<std::uint32_t>();
  return visit.template operator()<std::int64_t>();
}

/// The place of a bad key if there is none.
inline constexpr std::size_t no_bad_key = ~std::size_t{0};

/// Returns the place of the first key that is negative or not less than `bins`; no_bad_key if there is none.
/// The keys are in host memory.
std::size_t first_bad_key(const Keys& keys, std::size_t bins);

/// Returns a message about key `place`, whose value is `key` as key_at returns it.
std::string message_of_bad_key(std::size_t place, std::uint64_t key, std::size_t bins);

/// Runs of equal keys that follow each other.
struct KeySegments {
  std::vector<std::int64_t> keys;      ///< the key of each run
  std::vector<std::uint64_t> offsets;  ///< where each run begins, and the number of all keys
};

/// Returns the runs of equal keys, which may be any integers. `offsets` is that of Layout::segments, so every
/// operation can reduce the elements of each run:
///   reduce(method, x, Layout::segments(runs.offsets.data(), runs.keys.size()), out).
/// @throws std::invalid_argument if keys is null but not empty, is misaligned, or has an unknown format.
KeySegments segments_of(Keys keys);

}  // namespace samesum
