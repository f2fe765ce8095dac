/// Sums and counts by key without moving the elements: in the shared memory of each block, or in global
/// memory.
///
/// The kernels add the elements to one total per result. The caller clears the totals. Elements with bad keys
/// are reported and left out. SharedSums also adds the partitions of partitions.cuh.
#pragma once

#include "samesum/backend/cuda/by_key/cells.cuh"

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
  std::uint64_t first;        ///< the first result
  std::uint32_t results;      ///< number of results
  std::uint32_t copies;       ///< cells of a result; neighbouring threads add to different ones
  std::uint32_t* first_cell;  ///< first of the cells that this thread adds to

  __device__ std::uint32_t stride() const { return results * copies; }  ///< between the words of a cell
  __device__ std::uint32_t* cell_of(std::uint32_t place) const { return first_cell + place * copies; }
  __device__ void clear(int words) const {
    for (std::uint32_t i = threadIdx.x; i < stride() * words; i += blockDim.x) shared_words[i] = 0;
    __syncthreads();
  }
  /// Adds the cells to the totals in global memory, which are 0 if no other block has elements of them.
  template <Cells cells> __device__ void flush(const Totals& totals, bool is_only = false) const {
    constexpr int words = words_of_total(cells);
    __syncthreads();  // all elements are added
    for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x) {
      WideInteger<3> sum{};
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

/// The results and the elements of a block.
struct RangeOfBlock {
  CellsOfBlock cells;
  std::uint64_t begin, step;  ///< first element of its first tile; elements between its tiles

  __device__ RangeOfBlock(const KeyedElements& keyed, const SharedPlan& plan)
      : cells{std::uint64_t{blockIdx.x % plan.ranges} * plan.results, 0, plan.copies,
              shared_words + (threadIdx.x & (plan.copies - 1))},
        begin{blockIdx.x / plan.ranges * std::uint64_t{key_tile_length}},
        step{gridDim.x / plan.ranges * std::uint64_t{key_tile_length}} {
    cells.results =
        static_cast<std::uint32_t>(min(keyed.results() - cells.first, std::uint64_t{plan.results}));
  }
};

/// Adds elements of format T to cells in shared memory.
template <class T, Cells kind> class SharedSums {
 public:
  using Bits = BitsOf<T>;

  __device__ SharedSums(const CellWindows& windows, const CellWindow& w, const KeyedElements& keyed,
                        const CellsOfBlock& cells)
      : cells_{cells}, elements_{windows, w, keyed} {}

  __device__ void add(Bits x, std::uint32_t place) const {
    Units units;
    if (!elements_.units(x, cells_.first + place, units)) return;
    if constexpr (kind == Cells::counted) {
      Addend<2> to[1];
      to[0].set(cells_.cell_of(place), units.shifted());
      add_to_counted_cells(to, cells_.stride());
    } else {
      Addend<parts> to[1];
      set(to[0], units, place);
      add_to_cells<true>(to, cells_.stride());
      if ((to[0].word[parts - 1] != 0) != units.negative) carry(units, place);
    }
  }

  /// Adds elements that a thread has loaded, with the cells key - origin; keys of cells of other blocks are
  /// skipped. again(j, visit) calls visit(key, bits) with element j, loaded once more: an index that is known
  /// at run time cannot address registers. bad(j) is called for element j if its key is at least `bins`.
  template <class Key, class Again, class Bad>
  __device__ __forceinline__ void add_loaded(const Key (&key)[key_elements], const Bits (&bits)[key_elements],
                                             Key origin, Key bins, Again again, Bad bad) const {
    Pending pending;
    if constexpr (!are_fast(kind)) {
      pending = add_common(key, bits, origin, bins);
    } else if (!add_converted(key, bits, origin, bins, pending)) {
      // Not all words at once: that code would take registers from the common case.
#pragma unroll 1
      for (int j = 0; j < key_elements; ++j) {
        if (pending.here >> j & 1)
          again(j, [&](Key k, Bits x) { add_if_here(k, x, origin, bins, [&] { bad(j); }); });
        __syncwarp();  // as below
      }
      pending = {};
    }
#pragma unroll 1
    for (unsigned left = pending.uncommon | pending.carries; left != 0; left &= left - 1) {
      const int j = __ffs(static_cast<int>(left)) - 1;
      again(j, [&](Key k, Bits x) {
        const auto place = static_cast<Offset<Key>>(k - origin);
        if (place >= cells_.results)
          bad(j);
        else if (pending.uncommon >> j & 1)
          add(x, static_cast<std::uint32_t>(place));
        else
          carry(elements_.common_units(x), static_cast<std::uint32_t>(place));
      });
    }
    __syncwarp();  // nothing else joins the threads that have left the loop before others
  }

  /// Adds tiles of elements, `step` apart. Element e has the cell key_of(e) - origin; keys of cells of other
  /// blocks are skipped. bad(e) is called for elements whose key is at least `bins`.
  template <class Key, class KeyOf, class Bad>
  __device__ __forceinline__ void add_tiles(KeyOf key_of, Key origin, const Bits* x, std::uint64_t base,
                                            std::uint64_t end, std::uint64_t step, Key bins, Bad bad) const {
    const SharedSums copy = *this;  // its fields stay in registers
    for (; base + key_tile_length <= end; base += step) {
      const auto at = [&](int j) { return base + threadIdx.x + static_cast<unsigned>(j) * key_threads; };
      const Bits* const own_x = x + base + threadIdx.x;
      Key key[key_elements];
      Bits bits[key_elements];
#pragma unroll
      for (int j = 0; j < key_elements; ++j) key[j] = key_of(at(j));
#pragma unroll
      for (int j = 0; j < key_elements; ++j) bits[j] = own_x[j * key_threads];
      copy.add_loaded(
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
  /// Adds an element if its cell is one of these; calls bad() if its key is at least `bins`.
  template <class Key, class Bad>
  __device__ __forceinline__ void add_if_here(Key k, Bits x, Key origin, Key bins, Bad bad) const {
    const auto place = static_cast<Offset<Key>>(k - origin);  // a negative key becomes large
    if (place < cells_.results)
      add(x, static_cast<std::uint32_t>(place));
    else if (k >= bins)
      bad();
  }

  /// Words of the units of an element, and words of a cell that may be the first of them.
  static constexpr int parts = Format<T>::precision <= 24 ? 2 : 3, places = words_of(kind) - parts + 1;
  template <class Key> using Offset = std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t>;
  /// Elements that a thread has not added completely: bit j stands for its element j.
  struct Pending {
    unsigned here = 0;      ///< elements with one of these cells, or with a bad key; only of add_converted
    unsigned uncommon = 0;  ///< elements that are not added, or that have a bad key
    unsigned carries = 0;   ///< elements whose units are added, except for what they carry to further words
  };

  __device__ static int first_word(const Units& u) { return min(u.shift >> 5, places - 1); }
  __device__ void set(Addend<parts>& to, const Units& u, std::uint32_t place) const {
    const int first = first_word(u);
    to.set(cells_.cell_of(place) + static_cast<std::uint32_t>(first) * cells_.stride(), u,
           u.shift - 32 * first);
  }
  /// Adds what units carry to the words of a cell above their own: 1, or -1 if they are negative.
  __device__ void carry(const Units& u, std::uint32_t place) const {
    std::uint32_t* cell = cells_.cell_of(place);
    for (int w = first_word(u) + parts; w < words_of(kind); ++w)
      if (atomicAdd(cell + static_cast<std::uint32_t>(w) * cells_.stride(), u.negative ? ~0u : 1u) !=
          (u.negative ? 0 : ~0u))
        return;
  }

  /// Adds the elements that one instruction converts. Returns false, and adds nothing, if another method is
  /// faster, since many of the elements are not converted so.
  template <class Key>
  __device__ __forceinline__ bool add_converted(const Key (&key)[key_elements],
                                                const Bits (&bits)[key_elements], Key origin, Key bins,
                                                Pending& pending) const {
    const std::uint32_t stride = cells_.stride();
    Addend<2> to[key_elements];
#pragma unroll
    for (int j = 0; j < key_elements; ++j) {
      const auto place = static_cast<Offset<Key>>(key[j] - origin);  // a negative key becomes large
      if (place < cells_.results || key[j] >= bins) pending.here |= 1u << j;
      if (place < cells_.results && elements_.is_convertible(bits[j]))
        to[j].set(cells_.cell_of(static_cast<std::uint32_t>(place)) + (kind == Cells::of_96 ? stride : 0),
                  elements_.converted(bits[j]));
      else if (place < cells_.results || key[j] >= bins)
        pending.uncommon |= 1u << j;
    }
    if (kind == Cells::of_96 && __reduce_max_sync(whole_warp, __popc(pending.uncommon)) > 2) return false;
    if constexpr (kind == Cells::counted)
      add_to_counted_cells(to, stride);
    else
      add_to_cells<false>(to, stride);
    return true;
  }
  /// Adds the common elements, without branches.
  template <class Key>
  __device__ __forceinline__ Pending add_common(const Key (&key)[key_elements],
                                                const Bits (&bits)[key_elements], Key origin,
                                                Key bins) const {
    constexpr int at_once = parts == 2 ? key_elements : key_elements / 2;
    Pending pending;
    unsigned negative = 0, has_more = 0;  // whether units are negative, and have words above them
#pragma unroll
    for (int first = 0; first < key_elements; first += at_once) {
      Addend<parts> to[at_once];
#pragma unroll
      for (int j = first; j < first + at_once; ++j) {
        const auto place = static_cast<Offset<Key>>(key[j] - origin);
        if (place < cells_.results && elements_.is_common(bits[j])) {
          const Units u = elements_.common_units(bits[j]);
          set(to[j - first], u, static_cast<std::uint32_t>(place));
          if (u.negative) negative |= 1u << j;
          if (first_word(u) < places - 1) has_more |= 1u << j;
        } else if (place < cells_.results || key[j] >= bins) {
          pending.uncommon |= 1u << j;
        }
      }
      add_to_cells<true>(to, cells_.stride());
#pragma unroll
      for (int j = first; j < first + at_once; ++j) pending.carries |= to[j - first].word[parts - 1] << j;
    }
    pending.carries = (pending.carries ^ negative) & has_more;
    return pending;
  }

  CellsOfBlock cells_;
  GriddedFor<T, kind> elements_;
};

/// Adds all elements to cells in shared memory, then the cells of each block to those in global memory, if
/// the window of the call has such cells.
template <class T, Cells cells>
__global__ void __launch_bounds__(key_threads)
    add_in_shared(KeyedElements keyed, CellWindows windows, SharedPlan plan, Totals totals) {
  const CellWindow w = windows.placed(*keyed.events);
  if (w.cells != cells) return clear_top(totals, windows.is_wide(cells) ? 0 : keyed.results());
  const RangeOfBlock range{keyed, plan};
  range.cells.clear(words_of(cells));
  const SharedSums<T, cells> sums{windows, w, keyed, range.cells};
  const auto* x = static_cast<const BitsOf<T>*>(keyed.x);
  if (keyed.inner == 1) {
    with_key_bits(keyed.format, [&]<class Key>() {
      const Key* const keys = static_cast<const Key*>(keyed.keys);
      sums.add_tiles([=](std::uint64_t e) { return keys[e]; }, static_cast<Key>(range.cells.first), x,
                     range.begin, keyed.elements, range.step, static_cast<Key>(keyed.bins),
                     [&](std::uint64_t e) { report_bad_key(keyed.events, e); });
    });
  } else {
    // Results fit the shared memory of a few blocks, so 32 bits number them.
    const auto result_of = [&](std::uint64_t e) {
      const std::uint64_t row = quotient(e, keyed.inner), key = key_at(keyed.format, keyed.keys, row);
      return key < keyed.bins ? static_cast<std::uint32_t>(key * keyed.inner + (e - row * keyed.inner)) : ~0u;
    };
    sums.add_tiles(result_of, static_cast<std::uint32_t>(range.cells.first), x, range.begin, keyed.elements,
                   range.step, ~0u,
                   [&](std::uint64_t e) { report_bad_key(keyed.events, quotient(e, keyed.inner)); });
  }
  range.cells.flush<cells>(totals);
}

/// Counts the elements of each result.
__global__ void __launch_bounds__(key_threads)
    count_in_shared(KeyedElements keyed, SharedPlan plan, Totals totals) {
  const RangeOfBlock range{keyed, plan};
  range.cells.clear(2);
  for (std::uint64_t base = range.begin; base < keyed.elements; base += range.step)
    for (std::uint64_t e = base + threadIdx.x; e < min(base + key_tile_length, keyed.elements);
         e += key_threads)
      with_result(keyed, e, [&](std::uint64_t result) {
        if (result - range.cells.first >= range.cells.results) return;
        std::uint32_t* const cell =
            range.cells.cell_of(static_cast<std::uint32_t>(result - range.cells.first));
        if (atomicAdd(cell, 1u) == ~0u) atomicAdd(cell + range.cells.stride(), 1u);
      });
  range.cells.flush<Cells::of_64>(totals);
}

/// Adds all elements to cells in global memory, if the window of the call has such cells.
template <class T>
__global__ void __launch_bounds__(256)
    add_in_global(KeyedElements keyed, CellWindows windows, Cells cells, Totals totals) {
  const CellWindow w = windows.placed(*keyed.events);
  if (w.cells != cells) return clear_top(totals, windows.is_wide(cells) ? 0 : keyed.results());
  const Gridded<T> elements{windows, w, keyed};
  for_each_in_range(keyed, [&](std::uint64_t e, std::uint64_t result) {
    Units u;
    if (elements.units(static_cast<const BitsOf<T>*>(keyed.x)[e], result, u))
      add_to_total(totals, result, words_of_total(cells), u.wide());
  });
}

/// Counts the elements of each result.
__global__ void __launch_bounds__(256) count_in_global(KeyedElements keyed, Totals totals) {
  for_each_in_range(keyed,
                    [&](std::uint64_t, std::uint64_t result) { atomicAdd(totals.word + result, 1ull); });
}

}  // namespace
}  // namespace samesum::gpu
