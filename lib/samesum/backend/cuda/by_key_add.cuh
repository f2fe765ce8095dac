/// Sums and counts by key without moving the elements: in the shared memory of each block, or in global
/// memory.
///
/// The kernels add the elements to one total per result, all 0 before, and leave out those with bad keys,
/// which they report. SharedSums also adds the partitions of by_key_partitions.cuh.
#pragma once

#include "samesum/backend/cuda/by_key_cells.cuh"

namespace samesum::gpu {
namespace {

/// The results of a part of the range of keys, in the shared memory of each block.
struct SharedPlan {
  std::uint32_t ranges;   ///< parts; block b has part b % ranges
  std::uint32_t results;  ///< results of a part
  std::uint32_t copies;   ///< cells of a result, a power of two up to the size of a warp
  int words;              ///< words of 32 bits per cell

  std::size_t bytes() const {
    return sizeof(std::uint32_t) * results * copies * static_cast<std::size_t>(words);
  }
};

/// The results whose cells a block has in shared memory.
struct CellsOfBlock {
  std::uint64_t first;    ///< the first of them
  std::uint32_t results;  ///< number of results
  std::uint32_t copies;   ///< cells of a result; neighbouring threads add to different ones
  std::uint32_t* own;     ///< the first cell that this thread adds to

  __device__ std::uint32_t stride() const { return results * copies; }  ///< between the words of a cell
  __device__ std::uint32_t* cell_of(std::uint32_t place) const { return own + place * copies; }
  __device__ void clear(int words) const {
    for (std::uint32_t i = threadIdx.x; i < stride() * words; i += blockDim.x) shared_words[i] = 0;
    __syncthreads();
  }
  /// Adds the cells to the totals in global memory, which are 0 if no other block has elements of them.
  template <Cells cells> __device__ void flush(const Totals& totals, bool is_only = false) const {
    constexpr int words = words_of_total(cells);
    __syncthreads();  // all elements are added
    for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x) {
      Int192 sum;
      for (std::uint32_t c = 0; c < copies; ++c) sum = sum + cell_sum<cells>(r * copies + c, stride());
      if (!is_only) {
        add_to_total(totals, first + r, words, sum);
      } else {
#pragma unroll
        for (int w = 0; w < words; ++w) *totals.at(first + r, w) = sum.word[w];
      }
    }
  }
};

/// Which results and which elements a block has.
struct RangeOfBlock {
  CellsOfBlock cells;
  std::uint64_t begin, step;  ///< first element of its first tile; elements between its tiles

  __device__ RangeOfBlock(const KeyedElements& all, const SharedPlan& plan)
      : cells{std::uint64_t{blockIdx.x % plan.ranges} * plan.results, 0, plan.copies,
              shared_words + (threadIdx.x & (plan.copies - 1))},
        begin{blockIdx.x / plan.ranges * std::uint64_t{key_tile_length}},
        step{gridDim.x / plan.ranges * std::uint64_t{key_tile_length}} {
    cells.results = static_cast<std::uint32_t>(min(all.results() - cells.first, std::uint64_t{plan.results}));
  }
};

/// Adds elements of format T to cells in shared memory.
template <class T, Cells kind> class SharedSums {
 public:
  using Bits = BitsOf<T>;

  __device__ SharedSums(const Windows& windows, const Window& w, const KeyedElements& all,
                        const CellsOfBlock& cells)
      : cells_{cells}, elements_{windows, w, all} {}

  __device__ void add(Bits x, std::uint32_t place) const {
    Units units;
    if (!elements_.units(x, cells_.first + place, units)) return;
    if constexpr (kind == Cells::counted) {
      CellAndNumber to[1];
      to[0].set(units.shifted(), cells_.cell_of(place));
      add_to_cells<true>(to, cells_.stride());
    } else {
      add_to_cell<words_of(kind), parts>(units, cells_.cell_of(place), cells_.stride());
    }
  }

  /// Adds elements that a thread has loaded, with the cells key - origin; keys of cells of other blocks are
  /// skipped. again(j, add) calls add(key, bits) with element j, loaded once more: an index that is known at
  /// run time cannot address registers. bad(j) is called for element j if its key is at least `bins`.
  template <class Key, class Again, class Bad>
  __device__ __forceinline__ void add_loaded(const Key (&key)[key_elements], const Bits (&bits)[key_elements],
                                             Key origin, Key bins, Again again, Bad bad) const {
    const auto add_one = [&](Key k, Bits x, int j) {
      const auto place = static_cast<Offset<Key>>(k - origin);  // a negative key becomes large
      if (place < cells_.results)
        add(x, static_cast<std::uint32_t>(place));
      else if (k >= bins)
        bad(j);
    };
    bool alike = true;
    if constexpr (are_fast(kind)) {
      const std::uint32_t stride = cells_.stride();
      CellAndNumber to[key_elements];
      unsigned uncommon = 0;
#pragma unroll
      for (int j = 0; j < key_elements; ++j) {
        const auto place = static_cast<Offset<Key>>(key[j] - origin);
        if (place < cells_.results && elements_.is_common(bits[j]))
          to[j].set(elements_.converted(bits[j]),
                    cells_.cell_of(static_cast<std::uint32_t>(place)) + (kind == Cells::of_96 ? stride : 0));
        else if (place < cells_.results || key[j] >= bins)
          uncommon |= 1u << j;
      }
      // If many are uncommon, adding all of them alike is faster.
      alike = kind == Cells::of_96 && __reduce_max_sync(whole_warp, __popc(uncommon)) > 2;
      if (!alike) {
        add_to_cells<kind == Cells::counted>(to, stride);
        for (; uncommon != 0; uncommon &= uncommon - 1) {
          const int j = __ffs(static_cast<int>(uncommon)) - 1;
          again(j, [&](Key k, Bits x) { add_one(k, x, j); });
        }
      }
    }
    if (alike)
#pragma unroll
      for (int j = 0; j < key_elements; ++j) add_one(key[j], bits[j], j);
  }

  /// Adds tiles of elements, `step` apart. Element e has the cell key_of(e) - origin; keys of cells of other
  /// blocks are skipped. bad(e) is called for elements whose key is at least `bins`.
  template <class Key, class KeyOf, class Bad>
  __device__ __forceinline__ void add_tiles(KeyOf key_of, Key origin, const Bits* x, std::uint64_t base,
                                            std::uint64_t end, std::uint64_t step, Key bins, Bad bad) const {
    const SharedSums own = *this;  // a copy in registers
    for (; base + key_tile_length <= end; base += step) {
      const auto at = [&](int j) { return base + threadIdx.x + static_cast<unsigned>(j) * key_threads; };
      const Bits* const own_x = x + base + threadIdx.x;
      Key key[key_elements];
      Bits bits[key_elements];
#pragma unroll
      for (int j = 0; j < key_elements; ++j) key[j] = key_of(at(j));
#pragma unroll
      for (int j = 0; j < key_elements; ++j) bits[j] = own_x[j * key_threads];
      own.add_loaded(
          key, bits, origin, bins, [&](int j, auto add) { add(key_of(at(j)), x[at(j)]); },
          [&](int j) { bad(at(j)); });
    }
    for (; base < end; base += step)
      for (std::uint64_t e = base + threadIdx.x; e < min(base + key_tile_length, end); e += key_threads) {
        const Key key = key_of(e);
        const auto place = static_cast<Offset<Key>>(key - origin);
        if (place < cells_.results)
          add(x[e], static_cast<std::uint32_t>(place));
        else if (key >= bins)
          bad(e);
      }
  }

 private:
  static constexpr int parts = Format<T>::precision <= 24 ? 2 : 3;
  template <class Key> using Offset = std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t>;

  CellsOfBlock cells_;
  GriddedFor<T, kind> elements_;
};

/// Adds all elements to cells in shared memory, then the cells of each block to those in global memory, if
/// the window of the call has such cells.
template <class T, Cells cells>
__global__ void __launch_bounds__(key_threads)
    add_in_shared(KeyedElements all, Windows windows, SharedPlan plan, Totals totals) {
  const Window w = windows.placed(*all.events);
  if (w.cells != cells) return clear_top(totals, windows.is_wide(cells) ? 0 : all.results());
  const RangeOfBlock range{all, plan};
  range.cells.clear(words_of(cells));
  const SharedSums<T, cells> sums{windows, w, all, range.cells};
  const auto* x = static_cast<const BitsOf<T>*>(all.x);
  if (all.inner == 1) {
    with_key_bits(all.format, [&]<class Key>() {
      const Key* const keys = static_cast<const Key*>(all.keys);
      sums.add_tiles([=](std::uint64_t e) { return keys[e]; }, static_cast<Key>(range.cells.first), x,
                     range.begin, all.elements, range.step, static_cast<Key>(all.bins),
                     [&](std::uint64_t e) { report_bad_key(all.events, e); });
    });
  } else {
    // Results fit the shared memory of a few blocks, so 32 bits number them.
    const auto result_of = [&](std::uint64_t e) {
      const std::uint64_t row = quotient(e, all.inner), key = key_at(all.format, all.keys, row);
      return key < all.bins ? static_cast<std::uint32_t>(key * all.inner + (e - row * all.inner)) : ~0u;
    };
    sums.add_tiles(result_of, static_cast<std::uint32_t>(range.cells.first), x, range.begin, all.elements,
                   range.step, ~0u,
                   [&](std::uint64_t e) { report_bad_key(all.events, quotient(e, all.inner)); });
  }
  range.cells.flush<cells>(totals);
}

/// Counts the elements of each result.
__global__ void __launch_bounds__(key_threads)
    count_in_shared(KeyedElements all, SharedPlan plan, Totals totals) {
  const RangeOfBlock range{all, plan};
  range.cells.clear(2);
  for (std::uint64_t base = range.begin; base < all.elements; base += range.step)
    for (std::uint64_t e = base + threadIdx.x; e < min(base + key_tile_length, all.elements);
         e += key_threads)
      with_result(all, e, [&](std::uint64_t result) {
        if (result - range.cells.first >= range.cells.results) return;
        std::uint32_t* const own =
            range.cells.cell_of(static_cast<std::uint32_t>(result - range.cells.first));
        if (atomicAdd(own, 1u) == ~0u) atomicAdd(own + range.cells.stride(), 1u);
      });
  range.cells.flush<Cells::of_64>(totals);
}

/// Adds all elements to cells in global memory, if the window of the call has such cells.
template <class T>
__global__ void __launch_bounds__(256)
    add_in_global(KeyedElements all, Windows windows, Cells cells, Totals totals) {
  const Window w = windows.placed(*all.events);
  if (w.cells != cells) return clear_top(totals, windows.is_wide(cells) ? 0 : all.results());
  const Gridded<T> elements{windows, w, all};
  for_each_in_range(all, [&](std::uint64_t e, std::uint64_t result) {
    Units u;
    if (elements.units(static_cast<const BitsOf<T>*>(all.x)[e], result, u))
      add_to_total(totals, result, words_of_total(cells), u.wide());
  });
}

/// Counts the elements of each result.
__global__ void __launch_bounds__(256) count_in_global(KeyedElements all, Totals totals) {
  for_each_in_range(all, [&](std::uint64_t, std::uint64_t result) { atomicAdd(totals.word + result, 1ull); });
}

}  // namespace
}  // namespace samesum::gpu
