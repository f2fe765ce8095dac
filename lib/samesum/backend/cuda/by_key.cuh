/// Kernels of reductions by key. Their schedules do not show in the bits: sums are integers, and extrema are
/// integers that are ordered like their numbers.
#pragma once

#include <cooperative_groups.h>

#include "samesum/backend/cuda/by_key_cells.cuh"
#include "samesum/backend/cuda/pair.cuh"
#include "samesum/operation/extremum.hpp"
#include "samesum/operation/term_reducer.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum::gpu {
// Internal linkage, as for all kernels that one translation unit uses.
namespace {

constexpr int key_threads = 1024, each = 8;  // elements that a thread loads at once
constexpr std::uint32_t tile = key_threads * each;

// --- the largest element ---------------------------------------------------------------------------------

/// Finds the largest finite element among those at multiples of `step`.
template <class T>
__global__ void __launch_bounds__(key_threads)
    find_largest(const BitsOf<T>* x, std::uint64_t elements, std::uint64_t step, KeyEvents* events) {
  constexpr int fraction_bits = Format<T>::precision - 1;
  BitsOf<T> most = 0;
  const std::uint64_t count = (elements + step - 1) / step;
  for (std::uint64_t first = std::uint64_t{blockIdx.x} * key_threads * each; first < count;
       first += std::uint64_t{gridDim.x} * key_threads * each) {
    BitsOf<T> bits[each];
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const std::uint64_t i = first + j * key_threads + threadIdx.x;
      bits[j] = i < count ? x[i * step] : BitsOf<T>{0};
    }
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const auto magnitude = static_cast<BitsOf<T>>(bits[j] & ~Format<T>::sign_bit);
      if (magnitude < Format<T>::infinity) most = max(most, magnitude);
    }
  }
  const auto field = static_cast<std::uint32_t>(most >> fraction_bits);
  const std::uint32_t found = field > 0 ? field + fraction_bits : 64 - leading_zeros(std::uint64_t{most});
  const std::uint32_t of_warp = __reduce_max_sync(whole_warp, found);
  __shared__ std::uint32_t of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  if (thread() == 0) atomicMax(&of_block, of_warp);
  __syncthreads();
  if (threadIdx.x == 0 && of_block != 0) atomicMax(&events->largest, of_block);
}

// --- adding ----------------------------------------------------------------------------------------------

/// The results of a part of the range of keys, in the shared memory of each block.
struct SharedPlan {
  std::uint32_t ranges;   ///< parts; block b has part b % ranges
  std::uint32_t results;  ///< in a part
  std::uint32_t copies;   ///< cells of a result, a power of two up to the size of a warp
};

/// The results whose cells a block has in shared memory.
struct CellsOfBlock {
  std::uint64_t first;    ///< result
  std::uint32_t results;  ///< how many
  std::uint32_t copies;   ///< cells of a result; neighbouring threads add to different ones
  std::uint32_t* own;     ///< the first cell that this thread adds to

  __device__ std::uint32_t stride() const { return results * copies; }  ///< between the words of a cell
  __device__ std::uint32_t* cell_of(std::uint32_t place) const { return own + place * copies; }
  __device__ void clear(int words) const {
    for (std::uint32_t i = threadIdx.x; i < stride() * words; i += blockDim.x) shared_words[i] = 0;
    __syncthreads();
  }
  /// Adds the cells to the totals in global memory.
  template <int words> __device__ void flush(unsigned long long* totals) const {
    __syncthreads();
    for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x) {
      Int128 sum;
      for (std::uint32_t c = 0; c < copies; ++c) sum.add(cell_sum<words>(r * copies + c, stride()));
      add_to_total(totals + (first + r) * (words == 2 ? 1 : 2), words, sum.low,
                   static_cast<std::uint64_t>(sum.high));
    }
  }
};

/// Which results and which elements a block has.
struct RangeOfBlock {
  CellsOfBlock cells;
  std::uint64_t begin, step;  ///< of tiles of elements

  __device__ RangeOfBlock(const KeyedElements& all, const SharedPlan& plan)
      : cells{std::uint64_t{blockIdx.x % plan.ranges} * plan.results, 0, plan.copies,
              shared_words + (threadIdx.x & (plan.copies - 1))},
        begin{blockIdx.x / plan.ranges * std::uint64_t{tile}},
        step{gridDim.x / plan.ranges * std::uint64_t{tile}} {
    cells.results = static_cast<std::uint32_t>(min(all.results() - cells.first, std::uint64_t{plan.results}));
  }

  /// Calls visit(e, place) for the elements of this range.
  template <class Visit> __device__ void for_each(const KeyedElements& all, Visit visit) const {
    for (std::uint64_t base = begin; base < all.elements; base += step)
      for (std::uint64_t e = base + threadIdx.x; e < min(base + tile, all.elements); e += key_threads) {
        const std::uint64_t k = all.inner == 1 ? e : e / all.inner, key = key_at(all.format, all.keys, k);
        if (key >= all.bins) {
          report_bad_key(all.events, k);
          continue;
        }
        const std::uint64_t place = key * all.inner + (e - k * all.inner) - cells.first;
        if (place < cells.results) visit(e, static_cast<std::uint32_t>(place));
      }
  }
};

/// Adds elements of format T to cells of so many words in shared memory.
template <class T, int words> class SharedSums {
 public:
  using Bits = BitsOf<T>;

  __device__ SharedSums(const Window& w, const KeyedElements& all, const CellsOfBlock& cells)
      : cells_{cells}, elements_{make(w, all)} {}

  __device__ void add(Bits x, std::uint32_t place) const {
    Units units;
    if (!elements_.units(x, cells_.first + place, units)) return;
    add_to_cell<words, parts>(units, cells_.cell_of(place), cells_.stride());
  }

  /// Adds tiles of elements, `step` apart. Element e has the cell keys[e] - origin; keys of cells of other
  /// blocks are skipped. bad(e) is called for elements whose key is at least `bins`.
  template <class Key, class Bad>
  __device__ __forceinline__ void add_tiles(const Key* keys, Key origin, const Bits* x, std::uint64_t base,
                                            std::uint64_t end, std::uint64_t step, Key bins, Bad bad) const {
    const CellsOfBlock cells = cells_;  // in registers
    const Elements elements = elements_;
    const std::uint32_t stride = cells.stride();
    for (; base + tile <= end; base += step) {
      const Key* const own_keys = keys + base + threadIdx.x;
      const Bits* const own_x = x + base + threadIdx.x;
      Key key[each];
      Bits bits[each];
#pragma unroll
      for (int j = 0; j < each; ++j) key[j] = own_keys[j * key_threads];
#pragma unroll
      for (int j = 0; j < each; ++j) bits[j] = own_x[j * key_threads];
      unsigned uncommon = 0;
      if constexpr (is_fast) {
        CellAndNumber to[each];
#pragma unroll
        for (int j = 0; j < each; ++j) {
          const auto place = static_cast<Offset<Key>>(key[j] - origin);  // a negative key becomes large
          if (place < cells.results && elements.is_common(bits[j]))
            to[j].set(elements.converted(bits[j]),
                      cells.cell_of(static_cast<std::uint32_t>(place)) + (words == 3 ? stride : 0));
          else if (place < cells.results || key[j] >= bins)
            uncommon |= 1u << j;
        }
        if (words == 2 || __reduce_max_sync(whole_warp, __popc(uncommon)) <= 2)
          add_to_cells(to, stride);
        else
          uncommon = (1u << each) - 1;
      } else {
        uncommon = (1u << each) - 1;
      }
      if (words == 2 || uncommon != (1u << each) - 1) {
        for (; uncommon != 0; uncommon &= uncommon - 1) {
          // loads again, since an index that is known at run time cannot address registers
          const int j = (__ffs(static_cast<int>(uncommon)) - 1) * key_threads;
          add_one(own_keys[j], origin, own_x[j], base + threadIdx.x + j, bins, bad);
        }
      } else {
#pragma unroll
        for (int j = 0; j < each; ++j)
          add_one(key[j], origin, bits[j], base + threadIdx.x + j * key_threads, bins, bad);
      }
    }
    for (; base < end; base += step)
      for (std::uint64_t e = base + threadIdx.x; e < min(base + tile, end); e += key_threads)
        add_one(keys[e], origin, x[e], e, bins, bad);
  }

 private:
  static constexpr int parts = Format<T>::precision <= 24 ? 2 : 3;
  static constexpr bool is_fast = words < 4;
  using Elements = std::conditional_t<is_fast, FastGridded<T>, Gridded<T>>;
  template <class Key> using Offset = std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t>;

  __device__ static Elements make(const Window& w, const KeyedElements& all) {
    if constexpr (is_fast)
      return {w, all, words == 3 ? 32 : 0};
    else
      return {w, all};
  }
  template <class Key, class Bad>
  __device__ void add_one(Key key, Key origin, Bits x, std::uint64_t e, Key bins, Bad bad) const {
    const auto place = static_cast<Offset<Key>>(key - origin);
    if (place < cells_.results)
      add(x, static_cast<std::uint32_t>(place));
    else if (key >= bins)
      bad(e);
  }

  CellsOfBlock cells_;
  Elements elements_;
};

/// Adds all elements to cells in shared memory, then the cells of each block to those in global memory.
template <class T, int words>
__global__ void __launch_bounds__(key_threads)
    add_in_shared(KeyedElements all, Window w, SharedPlan plan, unsigned long long* totals) {
  const RangeOfBlock range{all, plan};
  range.cells.clear(words);
  const SharedSums<T, words> sums{w, all, range.cells};
  const auto* x = static_cast<const BitsOf<T>*>(all.x);
  if (all.inner == 1)
    with_key_bits(all.format, [&]<class Key>() {
      sums.add_tiles(static_cast<const Key*>(all.keys), static_cast<Key>(range.cells.first), x, range.begin,
                     all.elements, range.step, static_cast<Key>(all.bins),
                     [&](std::uint64_t e) { report_bad_key(all.events, e); });
    });
  else
    range.for_each(all, [&](std::uint64_t e, std::uint32_t place) { sums.add(x[e], place); });
  range.cells.flush<words>(totals);
}

/// Counts the elements of each result.
__global__ void __launch_bounds__(key_threads)
    count_in_shared(KeyedElements all, SharedPlan plan, unsigned long long* totals) {
  const RangeOfBlock range{all, plan};
  range.cells.clear(2);
  range.for_each(all, [&](std::uint64_t, std::uint32_t place) {
    std::uint32_t* const own = range.cells.cell_of(place);
    if (atomicAdd(own, 1u) == ~0u) atomicAdd(own + range.cells.stride(), 1u);
  });
  range.cells.flush<2>(totals);
}

// --- partitions ------------------------------------------------------------------------------------------

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

/// Calls visit(e, result) for the elements of a block, if their keys are in range.
template <class Visit> __device__ void for_each_in_range(const KeyedElements& all, Visit visit) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t e = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; e < all.elements; e += step) {
    const std::uint64_t k = all.inner == 1 ? e : e / all.inner, key = key_at(all.format, all.keys, k);
    if (key < all.bins)
      visit(e, key * all.inner + (e - k * all.inner));
    else
      report_bad_key(all.events, k);
  }
}

/// Adds all elements to cells in global memory.
template <class T>
__global__ void __launch_bounds__(256)
    add_in_global(KeyedElements all, Window w, unsigned long long* totals) {
  const Gridded<T> elements{w, all};
  for_each_in_range(all, [&](std::uint64_t e, std::uint64_t result) {
    Units u;
    if (elements.units(static_cast<const BitsOf<T>*>(all.x)[e], result, u))
      add_to_total(totals + result * (w.words == 2 ? 1 : 2), w.words, u);
  });
}

/// Counts the elements of each result.
__global__ void __launch_bounds__(256) count_in_global(KeyedElements all, unsigned long long* totals) {
  for_each_in_range(all, [&](std::uint64_t, std::uint64_t result) { atomicAdd(totals + result, 1ull); });
}

// --- results ---------------------------------------------------------------------------------------------

/// Where the results of a call by key come from and go to.
struct KeyResults {
  const unsigned long long* totals;
  const unsigned long long* counts;  ///< null unless the sums are divided by the number of elements
  void* out;
  bool combines;      ///< whether what `out` holds is one more term
  KeyStatus* status;  ///< may be null

  /// Tells the caller of a bad key. Kernels that run later add an overflow.
  __device__ void report(std::uint64_t i, const KeyEvents& events) const {
    if (i == 0 && status != nullptr) *status = {~events.bad_key, 0};
  }
  __device__ void report_overflow() const {
    if (status != nullptr) status->overflowed = 1;
  }
};

__device__ inline std::uint64_t index_in_grid() {
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

/// The flags of a number.
template <class F> __device__ unsigned flags_of_number(BitsOf<F> bits) {
  if (is_nan_bits<F>(bits)) return key_nan;
  if (bits == Format<F>::infinity) return key_plus_infinity;
  if (bits == (Format<F>::infinity | Format<F>::sign_bit)) return key_minus_infinity;
  return bits == Format<F>::sign_bit ? key_minus_zero : key_other;
}

constexpr unsigned key_special = key_nan | key_plus_infinity | key_minus_infinity;

/// Leaves a result for the second look.
__device__ inline void ask(const KeyedElements& all, std::uint64_t i) {
  all.events->ambiguous = 1;
  flag(all.flags, i, key_question);
}

/// The sum of elements of which some are special.
template <class F> __device__ BitsOf<F> special_sum(unsigned flags) {
  constexpr unsigned infinities = key_plus_infinity | key_minus_infinity;
  if ((flags & key_nan) || (flags & infinities) == infinities) return Format<F>::canonical_nan;
  return BitsOf<F>(Format<F>::infinity | (flags & key_minus_infinity ? Format<F>::sign_bit : BitsOf<F>{0}));
}

/// Rounds all sums, unless an element missed the window.
///
/// Two things are not known here, since recording them for each element would cost too much: whether a key
/// whose sum is zero has any elements, and whether -0 is all that it has. Where the result depends on that,
/// `out` gets or keeps -0 or a NaN, and second_look decides.
template <class F>
__global__ void __launch_bounds__(256) finish_sums(KeyedElements all, Window w, KeyResults r) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *all.events);
  if (all.events->missed != 0) return;
  if (i >= all.results()) return;
  auto* const out = static_cast<BitsOf<F>*>(r.out) + i;
  const BitsOf<F> held = r.combines ? *out : BitsOf<F>{0};
  const Int128 units = total(r.totals, w.words, i);
  const unsigned own = flags_of(all.flags, i), flags = own | (r.combines ? flags_of_number<F>(held) : 0);
  const std::uint64_t divisor = r.counts != nullptr ? r.counts[i] : 1;
  if (divisor == 0) {
    *out = Format<F>::canonical_nan;
  } else if (flags & key_special) {
    const BitsOf<F> bits = special_sum<F>(flags);
    if (own == 0 && units.is_zero() && bits != held)
      ask(all, i);
    else
      *out = bits;
  } else if (!units.is_zero()) {
    const int grid = w.placed(*all.events);
    const BitsOf<F> bits = r.combines            ? round_units<F, true>(units, grid, from_bits<F>(held))
                           : r.counts != nullptr ? round_quotient<F, true>(units, grid, divisor)
                                                 : round_units<F, true>(units, grid);
    *out = bits == Format<F>::sign_bit && !w.exact ? BitsOf<F>{0} : bits;
  } else if ((held & ~Format<F>::sign_bit) == 0) {
    const bool all_minus = (flags & key_minus_zero) && !(flags & key_other);
    *out = all_minus ? Format<F>::sign_bit : BitsOf<F>{0};
    if (all_minus) ask(all, i);
  }
}

/// Writes counts, added to what `out` holds if they are combined.
__global__ void __launch_bounds__(256) finish_counts(KeyedElements all, KeyResults r) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *all.events);
  if (i >= all.results()) return;
  auto* const out = static_cast<std::uint64_t*>(r.out) + i;
  *out = r.totals[i] + (r.combines ? *out : 0);
}

// --- the second look -------------------------------------------------------------------------------------

/// Digits of 32 bits in words of 64, in units of 2^lowest.
template <int lowest_exponent, int digit_count> struct DigitRange {
  static constexpr int lowest = lowest_exponent, count = digit_count;
};
using NarrowRange = DigitRange<-160, 11>;                                  // up to fp32
using FullRange = DigitRange<Exact::lowest_exponent, Exact::digit_count>;  // up to fp64

/// The sum of the digits, divided by `divisor` < 2^39, rounded once. Overwrites the digits.
template <class F, class Range>
__device__ BitsOf<F> rounded_digits(std::int64_t* digit, std::uint64_t divisor) {
  propagate_carries(digit, Range::count);
  const bool negative = digit[Range::count - 1] < 0;
  if (negative) {
    for (int i = 0; i < Range::count; ++i) digit[i] = -digit[i];
    propagate_carries(digit, Range::count);
  }
  int top = Range::count - 1;
  while (top >= 0 && digit[top] == 0) --top;
  if (top < 0) return 0;
  // Four words from the first bit on have more than 96 bits, and their quotient more than 57.
  Int128::Wide leading = 0;
  for (int i = 0; i < 4; ++i)
    leading = leading << 32 | static_cast<std::uint64_t>(top < i ? 0 : digit[top - i]);
  bool more = false;
  for (int i = 0; i <= top - 4; ++i) more = more || digit[i] != 0;
  const Int128::Wide quotient = leading / divisor;
  more = more || quotient * divisor != leading;
  return detail::round_wide<F, true>(negative, quotient, more, Range::lowest + 32 * (top - 3));
}

/// What the second look needs besides.
struct SecondLook {
  std::size_t input, format;  ///< format indices of elements and results
  std::int64_t* digits;
  std::uint64_t results;  ///< how many have room in `digits`
  std::uint64_t terms;    ///< of a result, at most
  int word_bits;          ///< usable bits of the word of a sum that is not exact
};

/// Visits each element with its value, exactly, and its result.
template <class Visit>
__device__ void for_each_element(const KeyedElements& all, std::size_t input, Visit visit) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t e = index_in_grid(); e < all.elements; e += step) {
    const std::uint64_t k = e / all.inner, key = key_at(all.format, all.keys, k);
    if (key >= all.bins) continue;
    double x = 0;
    std::size_t f = 0;
    Formats::for_each([&]<class T>() {
      if (f++ == input) x = static_cast<double>(widen(static_cast<const T*>(all.x)[e]));
    });
    visit(x, key * all.inner + (e - k * all.inner));
  }
}

/// Decides what finish_sums could not: the sums of zeros, or all sums if an element missed the window. Then
/// the digits of as many results as there is room for are summed at a time. Slow, and rarely needed.
template <class Range>
__global__ void __launch_bounds__(512)
    second_look(KeyedElements all, Window w, KeyResults r, SecondLook look) {
  const bool again = all.events->missed != 0;
  if (!again && all.events->ambiguous == 0) return;
  const auto grid = cooperative_groups::this_grid();
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  const int digits = w.exact ? Range::count : 4;
  for_each_element(all, look.input, [&](double x, std::uint64_t i) {
    if (!again && !(flags_of(all.flags, i) & key_question)) return;
    const bool minus_zero = __double_as_longlong(x) == __double_as_longlong(-0.0);
    flag(all.flags, i, minus_zero ? key_seen | key_minus_zero : key_seen | key_other);
  });
  grid.sync();
  const auto write = [&](std::uint64_t i, std::int64_t* digit) {
    std::size_t f = 0;
    Formats::for_each([&]<class F>() {
      if (f++ != look.format) return;
      auto& out = static_cast<BitsOf<F>*>(r.out)[i];
      const unsigned own = flags_of(all.flags, i);
      if (!again && !(own & key_question)) return;
      if (!(own & key_seen)) {
        if (!r.combines) out = r.counts != nullptr ? Format<F>::canonical_nan : BitsOf<F>{0};
        return;
      }
      const BitsOf<F> held = r.combines || !again ? out : BitsOf<F>{0};
      const unsigned flags = own | (r.combines ? flags_of_number<F>(held) : 0);
      const std::uint64_t divisor = r.counts != nullptr ? r.counts[i] : 1;
      const auto zero = [&] { return w.exact && !(flags & key_other) ? Format<F>::sign_bit : BitsOf<F>{0}; };
      if (flags & key_special) {
        out = special_sum<F>(flags);
      } else if (!again) {
        out = zero();
      } else if (w.exact) {
        if (r.combines) {
          const Decomposed d = decompose<F>(held);
          deposit<Range>(d.negative, d.significand, d.exponent,
                         [&](int j, std::int64_t part) { digit[j] += part; });
        }
        const BitsOf<F> bits = rounded_digits<F, Range>(digit, divisor);
        out = bits == 0 ? zero() : bits;
      } else {
        Int128 units;
        for (int j = 0; j < digits; ++j) units.add(Int128::of(digit[j]).shifted(32 * j));
        if (units.magnitude() > Int128::Wide{1} << look.word_bits) {
          r.report_overflow();
          out = Format<F>::canonical_nan;
          return;
        }
        out = r.combines            ? round_units<F>(units, w.grid, from_bits<F>(held))
              : r.counts != nullptr ? round_quotient<F>(units, w.grid, divisor)
                                    : round_units<F>(units, w.grid);
      }
    });
  };
  if (!again) {
    for (std::uint64_t i = index_in_grid(); i < all.results(); i += step) write(i, nullptr);
    return;
  }
  for (std::uint64_t first = 0; first < all.results(); first += look.results) {
    const std::uint64_t count = min(look.results, all.results() - first);
    for (std::uint64_t i = index_in_grid(); i < count * digits; i += step) look.digits[i] = 0;
    grid.sync();
    for_each_element(all, look.input, [&](double x, std::uint64_t i) {
      if (i - first >= count || !(abs(x) < INFINITY)) return;
      std::int64_t* const digit = look.digits + (i - first) * digits;
      const auto add = [&](int j, std::int64_t part) { atomic_add(digit[j], part); };
      if (w.exact) {
        Decomposed d = decompose<fp64>(to_bits(x));
        if (d.significand == 0) return;
        // A number of a narrow format has zeros below the lowest digit when it is read as a double.
        const int zeros = __ffsll(static_cast<long long>(d.significand)) - 1;
        deposit<Range>(d.negative, d.significand >> zeros, d.exponent + zeros, add);
        return;
      }
      const GridTerm term = to_grid(x, w.grid);
      if (term.bits > most_term_bits(look.terms)) {
        r.report_overflow();
        flag(all.flags, i, key_nan);
      }
      const Int128::Wide magnitude = term.units.magnitude();
      for (int j = 0; j < 4; ++j) {
        const auto part = static_cast<std::int64_t>(static_cast<std::uint32_t>(magnitude >> 32 * j));
        if (part != 0) add(j, term.units.is_negative() ? -part : part);
      }
    });
    grid.sync();
    for (std::uint64_t i = index_in_grid(); i < count; i += step) write(first + i, look.digits + i * digits);
    grid.sync();
  }
}

// --- extrema ---------------------------------------------------------------------------------------------

/// Loads an element of the format with that index, rounded to F.
template <class F> __device__ Scalar<F> load_as(std::size_t input, const void* x, std::uint64_t i) {
  Scalar<F> loaded{};
  std::size_t f = 0;
  Formats::for_each([&]<class T>() {
    if (f++ != input) return;
    if constexpr (can_read<T, F>) loaded = Scalar<F>::of(widen(static_cast<const T*>(x)[i]));
  });
  return loaded;
}

template <class Key> __device__ void raise(Key* key, Key candidate) {
  if constexpr (sizeof(Key) == 8)
    atomicMax(reinterpret_cast<unsigned long long*>(key), static_cast<unsigned long long>(candidate));
  else
    atomicMax(key, candidate);
}

/// Finds the extremum of each key, first in shared memory if `results` of them have room there.
template <class F>
__global__ void __launch_bounds__(512) find_extrema(KeyedElements all, std::size_t input, bool smallest,
                                                    std::uint32_t results, typename KeyOf<F>::Key* keys) {
  using Key = typename KeyOf<F>::Key;
  auto* const shared = reinterpret_cast<Key*>(shared_words);
  for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x) shared[r] = 0;
  __syncthreads();
  for_each_in_range(all, [&](std::uint64_t e, std::uint64_t i) {
    const Key own = KeyOf<F>::of(load_as<F>(input, all.x, e).v, smallest);
    Key* const place = results != 0 ? shared + i : keys + i;
    if (own > *static_cast<volatile Key*>(place)) raise(place, own);
  });
  __syncthreads();
  for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x)
    if (shared[r] != 0) raise(keys + r, shared[r]);
}

/// Writes extrema, merged with what `out` holds if they are combined.
template <class F>
__global__ void __launch_bounds__(256)
    finish_extrema(KeyedElements all, KeyResults r, bool smallest, const typename KeyOf<F>::Key* keys) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *all.events);
  if (i >= all.results()) return;
  auto* const out = static_cast<F*>(r.out) + i;
  auto key = keys[i];
  if (r.combines) {
    if (key == 0) return;
    key = max(key, KeyOf<F>::of(Scalar<F>::of(widen(*out)).v, smallest));
  }
  *out = KeyOf<F>::number(key, smallest);
}

// --- plain sums ------------------------------------------------------------------------------------------

/// Adds elements in the order of their arrival.
template <class F>
__global__ void __launch_bounds__(256) add_on_arrival(KeyedElements all, std::size_t input, F* out) {
  for_each_in_range(all, [&](std::uint64_t e, std::uint64_t i) {
    const F x = to_format<F>(load_as<F>(input, all.x, e));
    if constexpr (std::is_same_v<F, fp16>)
      atomicAdd(reinterpret_cast<__half*>(out + i), __ushort_as_half(x.bits));
    else if constexpr (std::is_same_v<F, bf16>)
      atomicAdd(reinterpret_cast<__nv_bfloat16*>(out + i), __ushort_as_bfloat16(x.bits));
    else
      atomicAdd(out + i, x);
  });
}

/// Tells the caller of a bad key, where no other kernel does.
__global__ void report_events(KeyedElements all, KeyResults r) { r.report(0, *all.events); }

/// Prepares a stable sort: keys as numbers of 32 bits, a bad one as `bins`, and the places of the rows.
__global__ void __launch_bounds__(256)
    number_rows(KeyedElements all, std::uint64_t rows, std::uint32_t* bins, std::uint32_t* places) {
  const std::uint64_t k = index_in_grid();
  if (k >= rows) return;
  const std::uint64_t key = key_at(all.format, all.keys, k);
  if (key >= all.bins) report_bad_key(all.events, k);
  bins[k] = static_cast<std::uint32_t>(min(key, all.bins));
  places[k] = static_cast<std::uint32_t>(k);
}

/// One thread adds the elements of a result in turn. The rows are sorted by key, those of equal keys in their
/// order. What `out` holds is the first element if it is combined.
template <class Reducer>
__global__ void __launch_bounds__(128)
    add_in_turn(Reducer reducer, KeyedElements all, std::size_t input, std::uint64_t rows,
                const std::uint32_t* bins, const std::uint32_t* places, KeyResults r) {
  using F = typename Reducer::Format;
  const std::uint64_t i = index_in_grid();
  r.report(i, *all.events);
  if (i >= all.results()) return;
  const std::uint64_t key = i / all.inner, column = i - key * all.inner;
  const auto first_not_below = [&](std::uint64_t bound) {
    std::uint64_t low = 0, high = rows;
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      if (bins[middle] < bound)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const std::uint64_t first = first_not_below(key), last = first_not_below(key + 1);
  if (first == last && r.combines) return;
  SerialWalker<Reducer> walker{reducer};
  std::uint64_t n = 0;
  const auto push = [&](Scalar<F> x) {
    walker.push(reducer.item(InputElement<F>{x, Scalar<F>::zero(), n, 0}));
    ++n;
  };
  if (r.combines) push({widen(static_cast<const F*>(r.out)[i])});
  for (std::uint64_t at = first; at < last; ++at)
    push(load_as<F>(input, all.x, std::uint64_t{places[at]} * all.inner + column));
  reducer.finish(walker.state(), n, i, r.out);
}

}  // namespace
}  // namespace samesum::gpu
