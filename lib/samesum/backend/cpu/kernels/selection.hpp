/// Loops over elements of which some take no part.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samesum::cpu {

/// Rows of elements of which some take no part: those whose flag is 0, and, if `skip_nan`, NaN.
struct SelectedRows {
  const void* x;
  const std::uint8_t* where;  ///< null if all flags are 1
  std::size_t pitch;          ///< elements, and flags, between rows
  std::size_t rows, count;    ///< at most 2^15 elements in all
  bool skip_nan;
  std::uint64_t stand_in;  ///< bits of what stands in for them
  static constexpr std::size_t pack = 32;
};
/// Copies the rows, one behind the other. Returns how many elements take part. If `counts` is not null, adds
/// the numbers of them in each column to it: integers as wide as the elements, with room for a multiple of
/// `pack`.
using KeepSelected = std::size_t (*)(const SelectedRows& rows, void* out, void* counts);
inline constexpr std::size_t most_selected = std::size_t{1} << 15;

}  // namespace samesum::cpu
