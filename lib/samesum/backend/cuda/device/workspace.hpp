/// Layout of a workspace: a header that is kept clean between calls, then states.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "samesum/accumulator/exact.hpp"

namespace samesum::gpu {

/// Digits and flags that all blocks of an exact sum add to. The upper bits of each word count the blocks that
/// have added to it. The waiting block polls these words, and needs neither a fence nor a separate arrival
/// counter.
struct GridDigits {
  static constexpr int sum_bits = 52, counter_bits = 12;
  static constexpr unsigned most_blocks = (1u << counter_bits) - 1;
  static constexpr std::uint64_t one = std::uint64_t{1} << sum_bits;
  std::array<std::uint64_t, Exact::digit_count + 1> word;

  SAMESUM_HD static std::int64_t sum(std::uint64_t word) {
    return static_cast<std::int64_t>(word << counter_bits) >> counter_bits;
  }
  SAMESUM_HD static unsigned arrivals(std::uint64_t word) {
    return static_cast<unsigned>((word - static_cast<std::uint64_t>(sum(word))) >> sum_bits);
  }

  /// The flags as counters, one per flag except the first, which either all blocks have or none.
  SAMESUM_HD static std::uint64_t counters(unsigned flags) {
    std::uint64_t counters = 0;
    for (int f = 1; f <= 4; ++f) counters |= std::uint64_t{flags >> f & 1} << (f - 1) * counter_bits;
    return counters;
  }
  SAMESUM_HD static unsigned flags(std::int64_t counters) {
    unsigned flags = 0;
    for (int f = 1; f <= 4; ++f)
      if (counters >> (f - 1) * counter_bits & most_blocks) flags |= 1u << f;
    return flags;
  }
};
static_assert(Exact::seen_any == 1 && Exact::seen_minus_infinity == 1 << 4);

/// Start of a workspace, shared by all blocks of a call. Between calls all of it is zero except the cells,
/// which are -0.
struct Header {
  GridDigits grid_digits;
  std::array<std::uint64_t, Formats::size> cell;  ///< cells by format index, in the low bytes
  std::array<std::uint32_t, 15 * 1024> arrived;   ///< arrival counters
};
inline constexpr std::size_t header_bytes = std::size_t{1} << 16;
static_assert(sizeof(Header) <= header_bytes);

/// The states of a workspace. They follow the header, so that each method leaves the workspace prepared for
/// any other. A function that takes a workspace may use its header: it must be given a whole workspace, never
/// one that begins elsewhere.
inline void* states(void* workspace) { return static_cast<std::byte*>(workspace) + header_bytes; }

/// Size that a query returns for a method that needs no workspace. It is not 0, since an allocation of 0
/// bytes may be null, which would make the next call a size query.
inline constexpr std::size_t size_if_none_needed = 1;

/// If the workspace is null (a size query), sets call.bytes and returns false. If it is too small, sets
/// `error` and returns false. Otherwise returns true.
template <class AnyCall> bool accept_workspace(AnyCall& call, std::size_t needed, cudaError_t& error) {
  error = cudaSuccess;
  if (call.workspace != nullptr && call.bytes < needed) error = cudaErrorInvalidValue;
  const bool go_on = call.workspace != nullptr && error == cudaSuccess;
  if (call.workspace == nullptr) call.bytes = needed;
  return go_on;
}

}  // namespace samesum::gpu
