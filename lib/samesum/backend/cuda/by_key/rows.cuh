/// Sums by key of long rows: the rows are sorted by key, and the elements of a run of equal keys are added in
/// registers.
///
/// The kernels take the sorted rows and, for runs that span pieces, totals and flags that are 0 before. They
/// write the results themselves, unless those have outliers: add_runs_of_rows those of runs in one piece,
/// finish_open_runs the others, finish_absent_keys those of keys without elements.
#pragma once

#include "samesum/backend/cuda/by_key/column_sum.cuh"
#include "samesum/backend/cuda/by_key/finish.cuh"
#include "samesum/backend/cuda/by_key/plain.cuh"

namespace samesum::gpu {
namespace {

constexpr std::uint32_t rows_of_piece = 64;  // sorted rows that a warp adds
constexpr std::uint32_t columns_of_warp = 128;
constexpr int row_threads = 256;

/// Rows in the order of their keys. A run is a range of rows with the same key. A run that begins in one
/// piece and ends in another has totals in global memory, those of the piece in which it begins.
struct RowRuns {
  SortedRows rows;
  std::size_t format;    ///< index of the format of the results
  Totals totals;         ///< totals of each piece, per column
  std::uint32_t* flags;  ///< flags of each of the totals, as KeyedElements::flags

  __device__ std::uint64_t totals_of(const KeyedElements& keyed) const {
    return (rows.count + rows_of_piece - 1) / rows_of_piece * keyed.inner;
  }
  /// Whether rows k - 1 and k have the same key.
  __device__ bool opens(std::uint64_t k) const {
    return k > 0 && k < rows.count && rows.bins[k - 1] == rows.bins[k];
  }
};

/// Leaves a sum that has outliers to the second look.
__device__ inline void append_sum(const KeyedElements& keyed, std::uint64_t i, const WideInteger<3>& units,
                                  int grid, unsigned flags) {
  const WideInteger<3> magnitude = units.magnitude();
  for (int w = 0; w < 3; ++w)
    if (w == 0 || magnitude.word[w] != 0)
      append_outlier(keyed, i,
                     {magnitude.word[w], grid + 64 * w, static_cast<std::uint16_t>(flags | Exact::seen_any),
                      units.is_negative()});
}

/// Writes the sum of a run, all of whose elements are known. Not inlined: the code is long, and needed only
/// for sums that the fast path does not round.
__device__ __noinline__ void finish_run(const KeyedElements& keyed, const CellWindows& windows,
                                        const KeyResults& r, std::size_t format, std::uint64_t i,
                                        WideInteger<3> units, unsigned flags, std::uint64_t count) {
  const int grid = windows.placed(*keyed.events).grid;
  if (flags & has_outliers) return append_sum(keyed, i, units, grid, flags);
  visit_format(format, [&]<class F>() {
    auto& out = static_cast<BitsOf<F>*>(r.out)[i];
    const BitsOf<F> held = r.combines ? out : BitsOf<F>{0};
    if (r.combines) flags |= flags_of_number<F>(held);
    if (overflows_grid<F>(units, windows.exact, *keyed.events, out)) return;
    if (flags & Exact::special_flags) {
      out = special_bits<F>(flags);
    } else if (!units.is_zero()) {
      out = sum_bits<F>(units, windows.exact, grid, r, held, count);
    } else if ((held & ~Format<F>::sign_bit) == 0) {
      out =
          windows.exact && !(flags & Exact::seen_other_than_minus_zero) ? Format<F>::sign_bit : BitsOf<F>{0};
    }
  });
}

/// Fast path of finish_run for results in fp32 that are not divided: rounds a sum if its leading 64 bits
/// decide the result.
template <Cells cells> class LeadingRounder {
 public:
  __device__ LeadingRounder(const CellWindows& windows, const CellWindow& w, const RowRuns& runs,
                            const KeyResults& r)
      : out_{static_cast<float*>(r.out)}, combines_{r.combines}, exact_{windows.exact}, grid_{w.grid} {
    const int exponent = grid_ + max(ColumnSum<cells>::common_shift, 0);
    applies_ = runs.format == Formats::index_of<fp32>() && r.counts == nullptr && exponent >= -252 &&
               exponent <= 252 - (has_own_shifts ? 66 : 0);  // so all factors are normal numbers
    // Then no sum overflows a grid, and no subnormal result is rounded twice.
    if (has_own_shifts) applies_ = applies_ && exact_ && grid_ >= Format<fp32>::min_quantum;
    first_ = scale_of<fp32>(exponent / 2);
    second_ = scale_of<fp32>(exponent - exponent / 2);
  }
  /// Writes result i, or returns false.
  __device__ __forceinline__ bool succeeded(const ColumnSum<cells>& sum, unsigned flags,
                                            std::uint64_t i) const {
    const auto [units, shift] = sum.leading();
    // A zero of an exact sum has a sign that depends on the elements.
    if (!applies_ || units == ColumnSum<cells>::Leading::none ||
        (flags & (Exact::special_flags | has_outliers)) || (exact_ && units == 0) ||
        (combines_ && out_[i] != 0))
      return false;
    float first = first_, second = second_;
    if constexpr (has_own_shifts) {
      const int exponent = grid_ + shift;
      first = scale_of<fp32>(exponent / 2);
      second = scale_of<fp32>(exponent - exponent / 2);
    }
    out_[i] = __ll2float_rn(units) * first * second;  // exact scaling: a multiple of the smallest number
    return true;
  }

 private:
  static constexpr bool has_own_shifts = ColumnSum<cells>::common_shift < 0;
  float* out_;
  bool combines_, exact_, applies_;
  int grid_;
  float first_, second_;
};

/// The piece of a warp, and its first column for this thread.
struct Piece {
  std::uint64_t index, first_column;
  std::uint64_t first;  ///< first row
  int count;            ///< number of rows

  __device__ explicit Piece(const KeyedElements& keyed) {
    const std::uint64_t blocks_of_columns = (keyed.inner + columns_of_warp - 1) / columns_of_warp,
                        of_grid = index_in_grid() / warp;
    index = quotient(of_grid, blocks_of_columns);
    first_column = (of_grid - index * blocks_of_columns) * columns_of_warp + thread();
    first = index * rows_of_piece;
  }
};

/// The current run of a piece: the sums of a thread in its columns.
template <Cells cells> struct RunSums {
  static constexpr int columns = columns_of_warp / warp, flag_bits = 8;
  ColumnSum<cells> sum[columns];
  unsigned flags = 0;  ///< flags of all columns
  int begin = 0;       ///< first row in the piece
  std::uint32_t bin;   ///< its key

  __device__ unsigned flags_of(int j) const { return flags >> j * flag_bits & 0xff; }
  __device__ void set(int j, unsigned which) { flags |= which << j * flag_bits; }

  /// Calls visit(j, sum[j]) for the columns of a mask. A loop, since its code is long and rarely runs.
  template <class Visit> __device__ __forceinline__ void for_each_column(unsigned mask, Visit visit) {
#pragma unroll 1
    for (; mask != 0; mask &= mask - 1) {
      const int j = __ffs(static_cast<int>(mask)) - 1;
      ColumnSum<cells> column = sum[0];
#pragma unroll
      for (int c = 1; c < columns; ++c)
        if (c == j) column = sum[c];
      visit(j, column);
#pragma unroll
      for (int c = 0; c < columns; ++c)
        if (c == j) sum[c] = column;
    }
  }

  /// Adds the elements of one row of a piece. of_column(j) returns the element in column j.
  template <class T, class OfColumn>
  __device__ __forceinline__ void add(const KeyedElements& keyed, const GriddedFor<T, cells>& elements,
                                      bool exact, const Piece& piece, OfColumn of_column) {
    unsigned uncommon = (1u << columns) - 1;
    if constexpr (are_fast(cells)) {
      uncommon = 0;
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        const BitsOf<T> bits = of_column(j);
        if (!elements.is_convertible(bits)) {
          uncommon |= 1u << j;
        } else {
          sum[j].add_common(elements.converted(bits));
          if (cells == Cells::of_96) set(j, Exact::seen_other_than_minus_zero);
        }
      }
    }
    for_each_column(uncommon, [&](int j, ColumnSum<cells>& column) {
      Units u;
      const auto record = [&](unsigned which) { set(j, which); };
      const auto outside = [&] {
        record(has_outliers);
        if (bin < keyed.bins)
          elements.append(of_column(j),
                          bin * keyed.inner + piece.first_column + static_cast<unsigned>(j * warp));
      };
      if (!elements.units(of_column(j), u, record, outside)) return;
      column.add(u);
      if (exact) set(j, Exact::seen_other_than_minus_zero);
    });
  }

  /// Ends the run before row `end` of a piece: writes its results, or adds its sums to the totals of the run
  /// if it begins or ends in another piece.
  __device__ __forceinline__ void finish(const KeyedElements& keyed, const CellWindows& windows,
                                         const RowRuns& runs, const KeyResults& r,
                                         const LeadingRounder<cells>& rounder, const Piece& piece, int end) {
    if (bin == keyed.bins) return;  // the rows of bad keys
    const bool opened = begin == 0 && runs.opens(piece.first),
               open = opened || (end == piece.count && runs.opens(piece.first + piece.count));
    const std::uint64_t result = bin * keyed.inner + piece.first_column;
    unsigned others = 0;
#pragma unroll
    for (int j = 0; j < columns; ++j)
      if (piece.first_column + j * warp < keyed.inner &&
          (open || !rounder.succeeded(sum[j], flags_of(j), result + j * warp)))
        others |= 1u << j;
    if (others == 0) return;
    const std::uint64_t home = opened ? first_not_below(runs.rows, bin) / rows_of_piece : piece.index,
                        total = home * keyed.inner + piece.first_column;
    for_each_column(others, [&](int j, const ColumnSum<cells>& column) {
      const unsigned of_column = flags_of(j);
      const WideInteger<3> units = column.units();
      if (!open)
        return finish_run(keyed, windows, r, runs.format, result + j * warp, units, of_column,
                          static_cast<std::uint64_t>(end - begin));
      const std::uint64_t i = total + j * warp;
      add_to_total(runs.totals, i, words_of_total(cells), units);
      if (of_column != 0) flag(runs.flags, i, of_column);
    });
  }
};

/// Adds the elements of each run, if the window of the call has such cells. A warp has a piece of the sorted
/// rows and some columns of them. It writes the results of runs that lie in the piece. Sets present[key] for
/// each key unless `present` is null.
template <class T, Cells cells>
__global__ void __launch_bounds__(row_threads, 2)
    add_runs_of_rows(const __grid_constant__ KeyedElements keyed, const __grid_constant__ CellWindows windows,
                     const __grid_constant__ RowRuns runs, const __grid_constant__ KeyResults r,
                     std::uint8_t* present) {
  constexpr int at_once = 4, columns = RunSums<cells>::columns;
  // The rows that are being added: an index that is known at run time cannot address registers.
  __shared__ BitsOf<T> staged[at_once][columns][row_threads];
  if (keyed.events->missed != 0) return;
  const CellWindow w = windows.placed(*keyed.events);
  if (w.cells != cells) return clear_top(runs.totals, windows.is_wide(cells) ? 0 : runs.totals_of(keyed));
  Piece piece{keyed};
  if (piece.first >= runs.rows.count) return;
  piece.count = static_cast<int>(min(runs.rows.count - piece.first, std::uint64_t{rows_of_piece}));
  const int count = piece.count;
  const auto* const x = static_cast<const BitsOf<T>*>(keyed.x) + piece.first_column;
  const GriddedFor<T, cells> elements{windows, w, keyed};
  const LeadingRounder<cells> rounder{windows, w, runs, r};
  std::uint32_t own_bin[2], own_place[2];  // keys and places of two rows per thread
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t row = piece.first + min(half * warp + thread(), count - 1);
    own_bin[half] = runs.rows.bins[row];
    own_place[half] = runs.rows.places[row];
    if (present != nullptr && own_bin[half] < keyed.bins && !runs.opens(row)) present[own_bin[half]] = 1;
  }
  const auto of_row = [](const std::uint32_t(&rows)[2], int k) {
    return __shfl_sync(whole_warp, k < warp ? rows[0] : rows[1], k % warp);
  };
  BitsOf<T> next[at_once][columns];
  const auto load = [&](int k) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const BitsOf<T>* const row = x + of_row(own_place, min(k + i, count - 1)) * keyed.inner;
#pragma unroll
      for (int j = 0; j < columns; ++j)
        next[i][j] = piece.first_column + j * warp < keyed.inner ? row[j * warp] : BitsOf<T>{0};
    }
  };
  RunSums<cells> run;
  run.bin = of_row(own_bin, 0);
  load(0);
#pragma unroll 1
  for (int k = 0;; ++k) {
    if (k % at_once == 0 && k < count) {
#pragma unroll
      for (int i = 0; i < at_once; ++i)
#pragma unroll
        for (int j = 0; j < columns; ++j) staged[i][j][threadIdx.x] = next[i][j];
      if (k + at_once < count) load(k + at_once);  // while these are added
    }
    const std::uint32_t of_next = of_row(own_bin, min(k, count - 1));
    if (k == count || of_next != run.bin) {
      run.finish(keyed, windows, runs, r, rounder, piece, k);
      if (k == count) return;
      run.begin = k;
      run.bin = of_next;
      run.flags = 0;
      for (auto& column : run.sum) column = {};
    }
    run.template add<T>(keyed, elements, windows.exact, piece,
                        [&](int j) { return staged[k % at_once][j][threadIdx.x]; });
  }
}

/// Writes the results of runs that begin in one piece and end in another.
__global__ void __launch_bounds__(row_threads)
    finish_open_runs(const __grid_constant__ KeyedElements keyed, const __grid_constant__ CellWindows windows,
                     const __grid_constant__ RowRuns runs, const __grid_constant__ KeyResults r) {
  r.report(index_in_grid(), *keyed.events);
  if (keyed.events->missed != 0) return;
  const std::uint64_t i = index_in_grid(), piece = quotient(i, keyed.inner), first = piece * rows_of_piece,
                      last = first + rows_of_piece;
  if (last >= runs.rows.count || !runs.opens(last)) return;
  const std::uint32_t bin = runs.rows.bins[last];
  if (bin == keyed.bins || (runs.rows.bins[first] == bin && runs.opens(first))) return;
  const std::uint64_t count =
      r.counts != nullptr ? first_not_below(runs.rows, bin + 1) - first_not_below(runs.rows, bin) : 0;
  const int words = words_of_total(windows.placed(*keyed.events).cells);
  finish_run(keyed, windows, r, runs.format, bin * keyed.inner + (i - piece * keyed.inner),
             total(runs.totals, i, words), flags_of(runs.flags, i), count);
}

/// Writes the results of keys without elements. Each warp has some columns of one key.
template <class F>
__global__ void __launch_bounds__(row_threads)
    finish_absent_keys(KeyedElements keyed, KeyResults r, const std::uint8_t* present) {
  const std::uint64_t blocks_of_columns = (keyed.inner + columns_of_warp - 1) / columns_of_warp,
                      of_grid = index_in_grid() / warp, key = quotient(of_grid, blocks_of_columns),
                      first = (of_grid - key * blocks_of_columns) * columns_of_warp,
                      end = min(first + columns_of_warp, keyed.inner);
  if (key >= keyed.bins || present[key]) return;
  const BitsOf<F> nothing = r.counts != nullptr ? Format<F>::canonical_nan : BitsOf<F>{0};
  for (std::uint64_t column = first + thread(); column < end; column += warp)
    static_cast<BitsOf<F>*>(r.out)[key * keyed.inner + column] = nothing;
}

/// Counts the outliers. If the list may be too short for them and for the sums of their results, reports that
/// elements missed it.
template <class T>
__global__ void __launch_bounds__(row_threads) look_for_outliers(KeyedElements keyed, CellWindows windows) {
  const Gridded<T> elements{windows, windows.placed(*keyed.events), keyed};
  for (std::uint64_t e = index_in_grid(); e < keyed.elements; e += std::uint64_t{gridDim.x} * blockDim.x) {
    Units u;
    elements.units(
        static_cast<const BitsOf<T>*>(keyed.x)[e], u, [](unsigned) {},
        [&] {
          constexpr std::uint32_t most = OutlierList::room / 4;  // a sum has up to three words
          if (*static_cast<volatile std::uint32_t*>(&keyed.events->expected) > most ||
              atomicAdd(&keyed.events->expected, 1u) == most)
            miss(keyed.events);
        });
  }
}

}  // namespace
}  // namespace samesum::gpu
