/// Sums by key of many results: the elements are moved to partitions, so that the results of each fit shared
/// memory.
#pragma once

#include "samesum/backend/cuda/by_key_add.cuh"

namespace samesum::gpu {
// Internal linkage, as for all kernels that one translation unit uses.
namespace {

/// Elements that are moved to partitions of results, so that the results of each fit shared memory. The order
/// within a partition is that of arrival, which integers do not depend on.
template <class T> struct Partitions {
  int log2_results;           ///< of a partition
  std::uint32_t count;        ///< of partitions
  std::uint32_t copies;       ///< counters of a partition in shared memory; count·copies <= most_partitions
  unsigned long long* begin;  ///< count + 1 places, and then `count` counters
  std::uint16_t* place;       ///< of each element that was moved, within its partition
  BitsOf<T>* x;
};
constexpr std::uint32_t most_partitions = 4096;
constexpr int move_threads = 512, move_each = 16, move_tile = move_threads * move_each;

/// Counts the elements of each partition in begin[count + 1 …].
template <class T>
__global__ void __launch_bounds__(key_threads) count_partitions(KeyedElements all, Partitions<T> to) {
  for (std::uint32_t i = threadIdx.x; i < to.count; i += key_threads) shared_words[i] = 0;
  __syncthreads();
  const auto none = static_cast<std::uint32_t>(all.bins);
  with_key_bits(all.format, [&]<class Key>() {
    for (std::uint64_t base = std::uint64_t{blockIdx.x} * tile; base < all.elements;
         base += std::uint64_t{gridDim.x} * tile) {
      Key raw[each];
      std::uint32_t key[each];
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const std::uint64_t e = base + j * key_threads + threadIdx.x;
        raw[j] = static_cast<const Key*>(all.keys)[min(e, all.elements - 1)];
      }
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const std::uint64_t e = base + j * key_threads + threadIdx.x;
        key[j] = none;
        if (e < all.elements)
          raw[j] < all.bins ? void(key[j] = static_cast<std::uint32_t>(raw[j]))
                            : report_bad_key(all.events, e);
      }
#pragma unroll
      for (int j = 0; j < each; ++j)
        if (key[j] < none) atomicAdd(&shared_words[key[j] >> to.log2_results], 1u);
    }
  });
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < to.count; i += key_threads)
    if (shared_words[i] != 0)
      atomicAdd(to.begin + to.count + 1 + i, static_cast<unsigned long long>(shared_words[i]));
}

/// Sums of the counts before each of `count` <= most_partitions; a whole block calls it.
/// next(i, before) is called with the sum of the counts before i; returns the sum of all.
template <int threads, class Count, class Next>
__device__ std::uint64_t sum_counts(std::uint32_t count, Count count_of, Next next) {
  const std::uint32_t own = (count + threads - 1) / threads;
  __shared__ std::uint64_t of_warp[threads / warp];
  std::uint64_t mine = 0;
  for (std::uint32_t i = 0; i < own; ++i) {
    const std::uint32_t at = threadIdx.x * own + i;
    if (at < count) mine += count_of(at);
  }
  std::uint64_t before = mine;
  for (int delta = 1; delta < warp; delta *= 2) {
    const std::uint64_t left = __shfl_up_sync(whole_warp, before, delta);
    if (thread() >= delta) before += left;
  }
  if (thread() == warp - 1) of_warp[warp_index()] = before;
  before -= mine;
  __syncthreads();
  std::uint64_t all = 0;
  for (int i = 0; i < threads / warp; ++i) {
    if (i < warp_index()) before += of_warp[i];
    all += of_warp[i];
  }
  for (std::uint32_t i = 0; i < own; ++i) {
    const std::uint32_t at = threadIdx.x * own + i;
    if (at >= count) break;
    const std::uint64_t size = count_of(at);
    next(at, before);
    before += size;
  }
  __syncthreads();
  return all;
}

/// Turns counts into begins, and sets the counters to the begins.
template <class T> __global__ void __launch_bounds__(key_threads) place_partitions(Partitions<T> to) {
  const auto* counts = to.begin + to.count + 1;
  const std::uint64_t all = sum_counts<key_threads>(
      to.count, [&](std::uint32_t i) { return counts[i]; },
      [&](std::uint32_t i, std::uint64_t before) { to.begin[i] = before; });
  for (std::uint32_t i = threadIdx.x; i < to.count; i += key_threads)
    to.begin[to.count + 1 + i] = to.begin[i];
  if (threadIdx.x == 0) to.begin[to.count] = all;
}

/// Moves the elements to their partitions, by way of shared memory, where a tile is sorted by partition.
template <class T>
__global__ void __launch_bounds__(move_threads, 2) move_to_partitions(KeyedElements all, Partitions<T> to) {
  auto* const target =
      reinterpret_cast<std::uint64_t*>(shared_words + most_partitions);  // minus the place in the tile
  auto* const keys = reinterpret_cast<std::uint32_t*>(target + most_partitions);
  auto* const values = reinterpret_cast<BitsOf<T>*>(keys + move_tile);
  const auto* x = static_cast<const BitsOf<T>*>(all.x);
  const auto none = static_cast<std::uint32_t>(all.bins);
  const std::uint32_t counters = to.count * to.copies;
  const auto counter_of = [&](std::uint32_t key) {
    return (key >> to.log2_results) * to.copies + (threadIdx.x & (to.copies - 1));
  };
  with_key_bits(all.format, [&]<class Key>() {
    for (std::uint64_t base = std::uint64_t{blockIdx.x} * move_tile; base < all.elements;
         base += std::uint64_t{gridDim.x} * move_tile) {
      std::uint32_t key[move_each], at[move_each];
      BitsOf<T> value[move_each];
#pragma unroll
      for (int j = 0; j < move_each; ++j) {
        const std::uint64_t e = base + j * move_threads + threadIdx.x;
        const Key raw = static_cast<const Key*>(all.keys)[min(e, all.elements - 1)];
        key[j] = e < all.elements && raw < all.bins ? static_cast<std::uint32_t>(raw) : none;
      }
#pragma unroll
      for (int j = 0; j < move_each; ++j) {
        const std::uint64_t e = base + j * move_threads + threadIdx.x;
        value[j] = x[min(e, all.elements - 1)];
      }
      for (std::uint32_t i = threadIdx.x; i < counters; i += move_threads) shared_words[i] = 0;
      __syncthreads();
#pragma unroll
      for (int j = 0; j < move_each; ++j)
        at[j] = key[j] == none ? 0 : atomicAdd(&shared_words[counter_of(key[j])], 1u);
      __syncthreads();
      const auto moved = static_cast<std::uint32_t>(sum_counts<move_threads>(
          counters, [&](std::uint32_t i) { return shared_words[i]; },
          [&](std::uint32_t i, std::uint64_t before) {
            shared_words[i] = static_cast<std::uint32_t>(before);
          }));
      for (std::uint32_t p = threadIdx.x; p < to.count; p += move_threads) {
        const std::uint32_t begin = shared_words[p * to.copies],
                            end = p + 1 < to.count ? shared_words[(p + 1) * to.copies] : moved;
        if (begin < end)
          target[p] =
              atomicAdd(to.begin + to.count + 1 + p, static_cast<unsigned long long>(end - begin)) - begin;
      }
#pragma unroll
      for (int j = 0; j < move_each; ++j) {
        if (key[j] == none) continue;
        at[j] += shared_words[counter_of(key[j])];
        keys[at[j]] = key[j];
        values[at[j]] = value[j];
      }
      __syncthreads();
      for (std::uint32_t i = threadIdx.x; i < moved; i += move_threads) {
        const std::uint32_t own = keys[i];
        const std::uint64_t at = target[own >> to.log2_results] + i;
        to.x[at] = values[i];
        to.place[at] = static_cast<std::uint16_t>(own & ((1u << to.log2_results) - 1));
      }
      __syncthreads();
    }
  });
}

/// Adds the elements of the partitions to cells in shared memory, and these to those in global memory. Each
/// block has the same number of elements, from one or more partitions.
template <class T, int words>
__global__ void __launch_bounds__(key_threads)
    add_partitions(KeyedElements all, Window w, Partitions<T> from, unsigned long long* totals) {
  const std::uint64_t moved = from.begin[from.count];
  const std::uint64_t share = (moved + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share,
                      last = min(first + share, moved);
  if (first >= last) return;
  std::uint32_t low = 0,
                high = from.count;  // the partition of the first element: begin[low] <= first < begin[high]
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (from.begin[middle] <= first ? low : high) = middle;
  }
  for (std::uint32_t p = low; p < from.count && from.begin[p] < last; ++p) {
    const std::uint64_t begin = max(std::uint64_t{from.begin[p]}, first),
                        end = min(std::uint64_t{from.begin[p + 1]}, last);
    if (begin >= end) continue;
    CellsOfBlock cells{std::uint64_t{p} << from.log2_results, 0, 1, shared_words};
    cells.results =
        static_cast<std::uint32_t>(min(all.results() - cells.first, std::uint64_t{1} << from.log2_results));
    __syncthreads();
    cells.clear(words);
    const SharedSums<T, words> sums{w, all, cells};
    sums.add_tiles(from.place, std::uint16_t{0}, from.x, begin, end, tile, std::uint16_t{0xffff},
                   [](std::uint64_t) {});
    cells.flush<words>(totals);
  }
}

}  // namespace
}  // namespace samesum::gpu
