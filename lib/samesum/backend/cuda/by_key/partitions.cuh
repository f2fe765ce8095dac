/// Sums by key of many results: each tile of elements is sorted by partitions of the results, so that the
/// results of a partition fit shared memory. The elements of a partition are then a run of each tile.
///
/// The kernels run in the order sort_tiles, measure_partitions, share_out, add_partitions. They fill a
/// Partitions, whose sizes are 0 before, and add its elements to one total per result, as add.cuh
/// does.
#pragma once

#include "samesum/backend/cuda/by_key/add.cuh"

namespace samesum::gpu {
namespace {

constexpr std::uint32_t most_partitions = 4096;
/// How tiles are sorted. Long tiles have longer runs; two blocks with short tiles hide each other's latency.
struct ShortTiles {
  static constexpr std::uint32_t threads = 512, elements_of_thread = 16;
  static constexpr std::uint32_t blocks = 2;  ///< blocks at once on a multiprocessor
};
struct LongTiles {
  static constexpr std::uint32_t threads = 1024, elements_of_thread = 32, blocks = 1;
};
template <class Tiles> inline constexpr std::uint32_t length_of = Tiles::threads* Tiles::elements_of_thread;
constexpr std::uint32_t most_partitions_with_short_tiles = 256;

/// The size of a partition, and where its elements are.
struct PartitionSize {
  unsigned long long elements;
  std::uint32_t until_first;  ///< number of tiles minus the index of the first tile that has any
  std::uint32_t end;          ///< 1 + index of the last tile that has any
  std::uint32_t first_share;  ///< index of its first share of the work
};

/// Tiles of elements, each sorted by partition. The order within a run is that of arrival, which integers do
/// not depend on.
template <class T> struct Partitions {
  int log2_results;      ///< log2 of the results per partition
  std::uint32_t count;   ///< number of partitions
  std::uint32_t copies;  ///< counters of a partition in shared memory, a power of two
  std::uint32_t tiles, tile_length;
  std::uint16_t* begin;  ///< run p of tile t begins at begin[t (count + 1) + p] in the tile; the last run
                         ///< ends at begin[t (count + 1) + count]
  std::uint16_t* place;  ///< place of each element within its partition
  BitsOf<T>* x;
  PartitionSize* size;  ///< size of each partition, and the end of all shares; 0 at first

  __device__ const std::uint16_t* begin_of(std::uint64_t tile, std::uint32_t p) const {
    return begin + tile * (count + 1) + p;
  }
};

/// The sum of the numbers of the threads of a warp up to this one.
__device__ inline std::uint32_t sum_up_to(std::uint32_t sum) {
#pragma unroll
  for (int delta = 1; delta < warp; delta *= 2) {
    const std::uint32_t left = __shfl_up_sync(whole_warp, sum, delta);
    if (thread() >= delta) sum += left;
  }
  return sum;
}

/// Replaces each of `count` numbers in shared memory by the sum of those before it; returns the sum of all. A
/// whole block calls it, and all threads see the results afterwards.
template <int threads> __device__ std::uint32_t sum_before(std::uint32_t count, std::uint32_t* number) {
  // Each warp has rows of 32 neighbours, so that no two threads use the same bank.
  const std::uint32_t rows = (count + threads - 1) / threads;
  std::uint32_t* const column = number + static_cast<std::uint32_t>(warp_index()) * rows * warp + thread();
  const auto exists = [&](std::uint32_t r) { return column + r * warp < number + count; };
  __shared__ std::uint32_t of_warp[threads / warp];
  std::uint32_t before = 0;
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::uint32_t mine = exists(r) ? column[r * warp] : 0, up_to = sum_up_to(mine);
    if (exists(r)) column[r * warp] = before + up_to - mine;
    before += __shfl_sync(whole_warp, up_to, warp - 1);
  }
  if (thread() == 0) of_warp[warp_index()] = before;
  __syncthreads();  // all warps have written their sums
  const std::uint32_t mine = thread() < threads / warp ? of_warp[thread()] : 0, up_to = sum_up_to(mine),
                      base = __shfl_sync(whole_warp, up_to - mine, warp_index());
  for (std::uint32_t r = 0; r < rows; ++r)
    if (exists(r)) column[r * warp] += base;
  __syncthreads();  // all numbers are written
  return __shfl_sync(whole_warp, up_to, warp - 1);
}

constexpr std::uint32_t sort_batch = 8;     ///< elements that a thread loads at once
constexpr std::uint32_t left_out = 0xffff;  ///< rank of an element that is left out
template <class Tiles> using RanksOfThread = std::uint32_t[Tiles::elements_of_thread / 2];

/// Loads items j0 and following of a thread, whose item 0 has index `first`; the last item of the call where
/// there are fewer.
template <class Tiles, class Item>
__device__ __forceinline__ void load_batch(const Item* from, std::uint64_t first, std::uint32_t j0,
                                           std::uint64_t elements, Item (&item)[sort_batch]) {
#pragma unroll
  for (std::uint32_t j = 0; j < sort_batch; ++j)
    item[j] = from[min(first + (j0 + j) * Tiles::threads, elements - 1)];
}

/// Counts the elements of each partition, and ranks them in the order of arrival: two ranks per word.
template <class Tiles, class Key, class CounterOf>
__device__ __forceinline__ void rank_elements(const KeyedElements& keyed, const Key* keys,
                                              std::uint64_t first, CounterOf counter_of,
                                              RanksOfThread<Tiles>& rank) {
#pragma unroll
  for (std::uint32_t j0 = 0; j0 < Tiles::elements_of_thread; j0 += sort_batch) {
    Key key[sort_batch];
    load_batch<Tiles>(keys, first, j0, keyed.elements, key);
#pragma unroll
    for (std::uint32_t j = 0; j < sort_batch; ++j) {
      std::uint32_t arrival = left_out;
      if (first + (j0 + j) * Tiles::threads < keyed.elements) {
        if (key[j] < keyed.bins)
          arrival = atomicAdd(counter_of(key[j]), 1u);
        else
          report_bad_key(keyed.events, first + (j0 + j) * Tiles::threads);
      }
      std::uint32_t& both = rank[(j0 + j) / 2];
      both = j % 2 == 0 ? arrival : both | arrival << 16;
    }
  }
}

/// Calls visit(key, bits, rank) for the elements that are not left out. The keys are loaded again, since
/// registers are scarce.
template <class Tiles, class Key, class Bits, class Visit>
__device__ __forceinline__ void for_each_ranked(const KeyedElements& keyed, const Key* keys, const Bits* x,
                                                std::uint64_t first, const RanksOfThread<Tiles>& rank,
                                                Visit visit) {
#pragma unroll
  for (std::uint32_t j0 = 0; j0 < Tiles::elements_of_thread; j0 += sort_batch) {
    Key key[sort_batch];
    Bits bits[sort_batch];
    load_batch<Tiles>(keys, first, j0, keyed.elements, key);
    load_batch<Tiles>(x, first, j0, keyed.elements, bits);
#pragma unroll
    for (std::uint32_t j = 0; j < sort_batch; ++j) {
      const std::uint32_t arrival = rank[(j0 + j) / 2] >> 16 * (j % 2) & 0xffff;
      if (arrival != left_out) visit(key[j], bits[j], arrival);
    }
  }
}

/// Copies a sorted tile to global memory.
template <class Tiles, class Item> __device__ __forceinline__ void write_tile(Item* out, const Item* in) {
  constexpr std::uint32_t of_vector = sizeof(uint4) / sizeof(Item);
#pragma unroll
  for (std::uint32_t i = 0; i < Tiles::elements_of_thread / of_vector; ++i)
    reinterpret_cast<uint4*>(out)[i * Tiles::threads + threadIdx.x] =
        reinterpret_cast<const uint4*>(in)[i * Tiles::threads + threadIdx.x];
}

/// Sorts each tile by partition. Elements with bad keys are left out.
template <class T, class Tiles>
__global__ void __launch_bounds__(Tiles::threads, Tiles::blocks)
    sort_tiles(KeyedElements keyed, Partitions<T> to) {
  constexpr std::uint32_t threads = Tiles::threads, length = length_of<Tiles>;
  auto* const value = reinterpret_cast<BitsOf<T>*>(shared_words);
  auto* const place = reinterpret_cast<std::uint16_t*>(value + length);
  auto* const counter = reinterpret_cast<std::uint32_t*>(place + length);
  const std::uint32_t counters = to.count * to.copies, copy = threadIdx.x & (to.copies - 1);
  with_key_bits(keyed.format, [&]<class Key>() {
    const auto* const keys = static_cast<const Key*>(keyed.keys);
    const auto* const x = static_cast<const BitsOf<T>*>(keyed.x);
    const auto counter_of = [&](Key key) {
      return counter + (static_cast<std::uint32_t>(key >> to.log2_results) * to.copies + copy);
    };
    for (std::uint64_t t = blockIdx.x; t < to.tiles; t += gridDim.x) {
      const std::uint64_t first = t * length + threadIdx.x;
      for (std::uint32_t i = threadIdx.x; i < counters; i += threads) counter[i] = 0;
      __syncthreads();  // all counters are 0, and the previous tile has been written
      RanksOfThread<Tiles> rank;
      rank_elements<Tiles>(keyed, keys, first, counter_of, rank);
      __syncthreads();  // all elements are counted
      const std::uint32_t sorted = sum_before<threads>(counters, counter);
      for (std::uint32_t p = threadIdx.x; p <= to.count; p += threads)
        to.begin[t * (to.count + 1) + p] =
            static_cast<std::uint16_t>(p < to.count ? counter[p * to.copies] : sorted);
      for_each_ranked<Tiles>(
          keyed, keys, x, first, rank, [&](Key key, BitsOf<T> bits, std::uint32_t arrival) {
            const std::uint32_t at = *counter_of(key) + arrival;
            value[at] = bits;
            place[at] = static_cast<std::uint16_t>(key & ((Key{1} << to.log2_results) - 1));
          });
      __syncthreads();  // the tile is sorted
      write_tile<Tiles>(to.x + t * length, value);
      write_tile<Tiles>(to.place + t * length, place);
    }
  });
}

constexpr std::uint32_t measured_tiles = 16;
/// Measures the partitions. Each warp counts the elements of 32 partitions in some of the tiles.
template <class T> __global__ void __launch_bounds__(warp) measure_partitions(Partitions<T> from) {
  const std::uint32_t columns = (from.count + warp - 1) / warp, p = blockIdx.x % columns * warp + threadIdx.x,
                      first = blockIdx.x / columns * measured_tiles;
  if (p >= from.count) return;
  std::uint64_t elements = 0;
  std::uint32_t begin = from.tiles, end = 0;
#pragma unroll 8
  for (std::uint32_t t = first; t < min(first + measured_tiles, from.tiles); ++t) {
    const std::uint16_t* const at = from.begin_of(t, p);
    const unsigned length = at[1] - at[0];
    elements += length;
    if (length > 0) {
      begin = min(begin, t);
      end = t + 1;
    }
  }
  if (elements == 0) return;
  atomicAdd(&from.size[p].elements, elements);
  atomicMax(&from.size[p].until_first, from.tiles - begin);
  atomicMax(&from.size[p].end, end);
}

/// Divides the work into shares: ranges of tiles of one partition, with about `elements_of_share` elements.
template <class T>
__global__ void __launch_bounds__(key_threads)
    share_out(Partitions<T> from, std::uint64_t elements_of_share) {
  for (std::uint32_t p = threadIdx.x; p < from.count; p += key_threads) {
    const PartitionSize& size = from.size[p];
    shared_words[p] = static_cast<std::uint32_t>(
        min((size.elements + elements_of_share - 1) / elements_of_share,
            static_cast<unsigned long long>(size.end + size.until_first - from.tiles)));
  }
  __syncthreads();
  const std::uint32_t shares = sum_before<key_threads>(from.count, shared_words);
  for (std::uint32_t p = threadIdx.x; p <= from.count; p += key_threads)
    from.size[p].first_share = p < from.count ? shared_words[p] : shares;
}

/// Adds the runs of partition p in the tiles from `begin` to `end` whose cells are in shared memory; the
/// first of these cells has the place `origin`. A warp takes up to 32 runs at a time. A thread loads a chunk
/// of neighbouring elements at once, and adds those that belong to its run.
template <class T, Cells cells>
__device__ void add_runs(const SharedSums<T, cells>& sums, const Partitions<T>& from, std::uint32_t p,
                         std::uint32_t begin, std::uint32_t end, std::uint16_t origin) {
  constexpr std::uint32_t warps = key_threads / warp;
  constexpr std::uint16_t none = 0x8000, bins = 0xffff;
  struct alignas(16) Places {
    std::uint16_t item[key_elements];
  };
  struct alignas(16) Items {
    BitsOf<T> item[key_elements];
  };
  const SharedSums<T, cells> copy = sums;  // in registers
  const std::uint32_t runs = min((end - begin + warps - 1) / warps, std::uint32_t{warp}), lane = thread();
  for (std::uint32_t t = begin + warp_index() * runs; t < end; t += warps * runs) {
    std::uint32_t first = 0, last = 0;
    if (lane < runs && t + lane < end) {
      const std::uint16_t* const at = from.begin_of(t + lane, p);
      first = at[0];
      last = at[1];
    }
    const std::uint32_t chunks = first < last ? (last - 1) / key_elements - first / key_elements + 1 : 0,
                        until = sum_up_to(chunks), chunks_of_warp = __shfl_sync(whole_warp, until, warp - 1),
                        shift = lane * (from.tile_length / key_elements) + first / key_elements -
                                (until - chunks),
                        range = last << 16 | first;
    for (std::uint32_t i = lane; i - lane < chunks_of_warp; i += warp) {
      std::uint32_t run = __popc(__ballot_sync(whole_warp, until <= i - lane));
      while (true) {
        const bool is_later = min(i, chunks_of_warp - 1) >= __shfl_sync(whole_warp, until, run);
        if (!__any_sync(whole_warp, is_later)) break;
        run += is_later;
      }
      const std::uint32_t chunk = i + __shfl_sync(whole_warp, shift, run),
                          in_run = __shfl_sync(whole_warp, range, run),
                          at = chunk * key_elements - run * from.tile_length;  // place in the tile
      const std::uint64_t base = std::uint64_t{t} * from.tile_length + std::uint64_t{chunk} * key_elements;
      std::uint16_t place[key_elements];
      BitsOf<T> bits[key_elements];
      if (i < chunks_of_warp) {
        const auto places = *reinterpret_cast<const Places*>(from.place + base);
        const auto elements = *reinterpret_cast<const Items*>(from.x + base);
#pragma unroll
        for (std::uint32_t j = 0; j < key_elements; ++j) {
          place[j] = at + j >= (in_run & 0xffff) && at + j < in_run >> 16 ? places.item[j] : none;
          bits[j] = elements.item[j];
        }
      } else {
#pragma unroll
        for (std::uint32_t j = 0; j < key_elements; ++j) place[j] = none;
      }
      copy.add_loaded(
          place, bits, origin, bins, [&](int j, auto add) { add(from.place[base + j], from.x[base + j]); },
          [](int) {});
    }
  }
}

/// Adds the elements of partition p in the tiles from `begin` to `end` to cells in shared memory, and these
/// to those in global memory. If there is not enough shared memory for the cells of all its results, the
/// elements are read once for each part of them.
template <class T, Cells cells>
__device__ void add_tiles_of(const KeyedElements& keyed, const CellWindows& windows, const CellWindow& w,
                             const Partitions<T>& from, std::uint32_t p, std::uint32_t begin,
                             std::uint32_t end, int log2_cells, const Totals& totals, bool is_whole) {
  for (std::uint32_t origin = 0; origin < 1u << from.log2_results; origin += 1u << log2_cells) {
    CellsOfBlock part{(std::uint64_t{p} << from.log2_results) + origin, 0, 1, shared_words};
    if (part.first >= keyed.results()) return;
    part.results =
        static_cast<std::uint32_t>(min(keyed.results() - part.first, std::uint64_t{1} << log2_cells));
    __syncthreads();  // the previous cells are added to the totals
    part.clear(words_of(cells));
    add_runs(SharedSums<T, cells>{windows, w, keyed, part}, from, p, begin, end,
             static_cast<std::uint16_t>(origin));
    part.flush<cells>(totals, is_whole);
  }
}

/// Adds the elements of the partitions, if the window of the call has such cells. Each block has the same
/// number of shares, of one or more partitions.
template <class T, Cells cells>
__global__ void __launch_bounds__(key_threads)
    add_partitions(KeyedElements keyed, CellWindows windows, Partitions<T> from, int log2_cells,
                   Totals totals) {
  const CellWindow w = windows.placed(*keyed.events);
  if (w.cells != cells) return clear_top(totals, windows.is_wide(cells) ? 0 : keyed.results());
  const auto first_share = [&](std::uint32_t p) { return from.size[p].first_share; };
  const std::uint64_t shares = first_share(from.count);
  auto share = static_cast<std::uint32_t>(shares * blockIdx.x / gridDim.x);
  const auto last = static_cast<std::uint32_t>(shares * (blockIdx.x + 1) / gridDim.x);
  std::uint32_t p = 0, high = from.count;  // first_share(p) <= share < first_share(high)
  while (high - p > 1) {
    const std::uint32_t middle = (p + high) / 2;
    (first_share(middle) <= share ? p : high) = middle;
  }
  for (; share < last; ++p) {
    const std::uint32_t until = min(first_share(p + 1), last);
    if (share >= until) continue;
    const PartitionSize& size = from.size[p];
    const std::uint32_t first = from.tiles - size.until_first;
    const std::uint64_t tiles = size.end - first, of_partition = first_share(p + 1) - first_share(p);
    const auto tile_of = [&](std::uint32_t s) {
      return first + static_cast<std::uint32_t>((s - first_share(p)) * tiles / of_partition);
    };
    add_tiles_of<T, cells>(keyed, windows, w, from, p, tile_of(share), tile_of(until), log2_cells, totals,
                           share == first_share(p) && until == first_share(p + 1));
    share = until;
  }
}

}  // namespace
}  // namespace samesum::gpu
