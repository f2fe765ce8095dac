/// The integers of a sum by key: which exponents they cover, which cells hold them, and how both follow from
/// a sample of the elements.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cuda/by_key/by_key.cuh"

namespace samesum::gpu {

/// The integers in cells, by their words of 32 bits. A cell that is `counted` has a sum of 64 bits that may
/// wrap, and in a third word the number of times that it did.
enum class Cells { of_64, counted, of_96, of_128, of_192 };

/// Words of 32 bits of a cell.
SAMESUM_HD constexpr int words_of(Cells cells) {
  return cells == Cells::of_64 ? 2 : cells <= Cells::of_96 ? 3 : cells == Cells::of_128 ? 4 : 6;
}
/// Words of 64 bits of a sum of cells.
SAMESUM_HD constexpr int words_of_total(Cells cells) {
  return cells == Cells::of_64 ? 1 : cells <= Cells::of_128 ? 2 : 3;
}
/// Whether the cells are for elements most of which one instruction converts.
constexpr bool are_fast(Cells cells) { return cells <= Cells::of_96; }
/// Bits of a cell below the units of such elements.
constexpr int skipped_bits(Cells cells) { return cells == Cells::of_96 ? 32 : 0; }

/// Multiples of 2^grid.
struct CellWindow {
  Cells cells;
  int bits;  ///< |element| < 2^(grid + bits)
  int grid;
};

/// The windows of a call. The wide one is for elements that the narrow one would miss too often. An element
/// that does not fit the chosen window becomes an outlier.
struct CellWindows {
  CellWindow narrow, wide;
  bool has_wide;
  bool exact;       ///< whether only multiples of the unit fit; otherwise elements are rounded to multiples
  bool given;       ///< whether the grid is given; otherwise it follows from KeyEvents::seen
  bool is_sampled;  ///< whether KeyEvents::range is that of a part of the elements
  int lowest;  ///< exponent of the smallest number of the elements; a grid that is not given is at least that
  int min_exponent;  ///< exponent of the smallest normal element

  /// The window of the call, with its grid.
  __device__ CellWindow placed(const KeyEvents& events) const {
    const ExponentRange seen = events.seen(is_sampled);
    const int top = seen.top();
    if (given) return has_wide && top > narrow.grid + narrow.bits ? wide : narrow;
    CellWindow w = narrow;
    w.grid = top + (exact ? least_headroom : 0) - w.bits;
    if (has_wide && seen.lowest() < w.grid) {  // half of the bits to spare are above the largest element
      w = wide;
      w.grid = top + max((w.bits - (top - seen.lowest())) / 2, least_headroom) - w.bits;
    }
    w.grid = max(w.grid, lowest);
    return w;
  }

  /// Whether sums of the wide cells need one word more.
  bool has_top() const { return has_wide && words_of_total(wide.cells) > words_of_total(narrow.cells); }
  __device__ bool is_wide(Cells cells) const { return has_wide && cells == wide.cells; }

  /// Elements of an exact sum may exceed the largest of the sample by so many binades.
  static constexpr int least_headroom = 3;
};

constexpr int key_threads = 1024,
              key_elements = 8;  ///< elements that a thread loads at once
constexpr std::uint32_t key_tile_length = key_threads * key_elements;

/// Merges the ranges of all threads of a block into a part of the events. The caller clears that part.
__device__ inline void merge_ranges(const ExponentRange& seen, ExponentRange& part) {
  __shared__ std::uint32_t above, below;
  if (threadIdx.x == 0) above = below = 0;
  __syncthreads();  // both are 0
  merge_of_warp(seen, above, below);
  __syncthreads();  // all warps have merged theirs
  if (threadIdx.x > 0) return;
  atomicMax(&part.above, above);
  atomicMax(&part.below, below);
}

namespace {

/// Finds the largest finite element.
template <class T> __global__ void __launch_bounds__(key_threads) find_largest(KeyedElements keyed) {
  const auto* const x = static_cast<const BitsOf<T>*>(keyed.x);
  BitsOf<T> most = 0;
  for (std::uint64_t first = std::uint64_t{blockIdx.x} * key_tile_length; first < keyed.elements;
       first += std::uint64_t{gridDim.x} * key_tile_length) {
    BitsOf<T> bits[key_elements];
#pragma unroll
    for (int j = 0; j < key_elements; ++j) {
      const std::uint64_t i = first + j * key_threads + threadIdx.x;
      bits[j] = i < keyed.elements ? x[i] : BitsOf<T>{0};
    }
#pragma unroll
    for (int j = 0; j < key_elements; ++j) {
      const auto magnitude = static_cast<BitsOf<T>>(bits[j] & ~Format<T>::sign_bit);
      if (magnitude < Format<T>::infinity) most = max(most, magnitude);
    }
  }
  merge_ranges(ExponentRange::of<T>(most), keyed.events->range[blockIdx.x % KeyEvents::ranges]);
}

constexpr int log2_sample = 14;

/// Clears the first bytes of the workspace, which begin with the events, and finds the exponents of a sample
/// of the elements. Its places are pseudorandom, so that it has elements of all columns, whatever the length
/// of a row. Each part of the sample is spread over all elements.
template <class T>
__global__ void __launch_bounds__(key_threads) clear_and_sample(KeyedElements keyed, std::uint64_t bytes) {
  constexpr std::uint32_t of_block = (1 << log2_sample) / KeyEvents::ranges;
  constexpr std::uint64_t words_of_events = 256 / sizeof(uint4);
  static_assert(sizeof(KeyEvents) <= words_of_events * sizeof(uint4));
  if (blockIdx.x < KeyEvents::ranges) {
    if (threadIdx.x == 0) {
      if (blockIdx.x == 0)
        keyed.events->bad_key = keyed.events->missed = keyed.events->ambiguous = keyed.events->outliers =
            keyed.events->expected = keyed.events->overflowed = 0;
      keyed.events->range[blockIdx.x] = {};
    }
    ExponentRange seen;
#pragma unroll
    for (std::uint32_t j = 0; j < of_block / key_threads; ++j) {
      const std::uint32_t k = (j * key_threads + threadIdx.x) * KeyEvents::ranges + blockIdx.x;
      const std::uint64_t begin = keyed.elements * k >> log2_sample,
                          end = keyed.elements * (k + 1) >> log2_sample;
      if (begin == end) continue;
      const std::uint32_t within = __umulhi(k * 0x9e3779b9u, static_cast<std::uint32_t>(end - begin));
      seen.merge(ExponentRange::of<T>(static_cast<const BitsOf<T>*>(keyed.x)[begin + within]));
    }
    merge_ranges(seen, keyed.events->range[blockIdx.x]);
  }
  auto* const word = reinterpret_cast<uint4*>(keyed.events);
  for (std::uint64_t i = words_of_events + index_in_grid(); i < bytes / sizeof(uint4);
       i += std::uint64_t{gridDim.x} * key_threads)
    word[i] = {};
}

}  // namespace
}  // namespace samesum::gpu
