/// Sums and counts by key on a GPU: selects their schedule, and enqueues their kernels.
#pragma once

#include <optional>

#include "samesum/backend/cuda/by_key/call.cuh"
#include "samesum/backend/cuda/by_key/partitions.cuh"
#include "samesum/backend/cuda/by_key/rows.cuh"

namespace samesum::gpu {
namespace {

/// A sum in integers, or a count.
class SumByKey : public CallByKey {
 public:
  explicit SumByKey(Launch& work) : CallByKey{work} {}

  /// Sums elements of format T; `format` is the format index of the results.
  template <class T> cudaError_t sum(std::size_t format, bool exact, bool mean) {
    const CellWindows w = windows(*work_.call.x.format, formats[format], exact);
    const std::uint64_t results = keyed_.results();
    const bool sorted = sorts_rows();
    const std::optional<SharedPlan> plan = sorted ? std::nullopt : plan_shared(w.narrow.cells, most_ranges);
    const bool partitioned = !sorted && uses_partitions(w.narrow.cells, sizeof(T), plan.has_value());
    std::uint8_t* const present = sorted ? add<std::uint8_t>(keyed_.bins) : nullptr;
    const std::uint64_t sums =
        sorted ? blocks_of(work_.call.layout.n, rows_of_piece) * keyed_.inner : results;
    Totals totals = add_totals(w, sums);
    RowRuns runs{{}, format, {}, sorted ? add<std::uint32_t>((sums + 3) / 4) : nullptr};
    auto* const counts = mean ? add<unsigned long long>(keyed_.bins) : nullptr;
    if (sorted) clear_up_to_here();
    keyed_.flags = add<std::uint32_t>((results + 3) / 4);
    if (!sorted) clear_up_to_here();
    const Partitions<T> partitions = partitioned ? add_partitions_of<T>(w.narrow.cells) : Partitions<T>{};
    const Sorting sorting = sorted ? add_sorting() : Sorting{};
    if (w.has_top()) totals.top = add<unsigned long long>(sums);
    keyed_.outliers = {add<std::uint64_t>(OutlierList::room), add<OutlierList::Term>(OutlierList::room)};
    const bool full_range = std::max(Format<T>::precision, formats[format].precision) > 24;
    const SecondLook look = add_second_look(format, exact, full_range, !sorted);
    if (!begin_sum<T>(w)) return error_;
    const KeyResults r = destination(sorted ? Totals{} : totals, counts);
    if (mean) count(keyed_.rows(), counts);
    if (sorted) {
      runs.totals = totals;
      runs.rows = sort(sorting);
      add_by_rows<T>(w, r, runs, r.combines ? nullptr : present);
    } else {
      if (partitioned)
        add_by_partition(w, partitions, totals);
      else
        add_in_place<T>(w, plan.has_value(), totals);
      with_kernel_format(formats[format],
                         [&]<class F>() { enqueue_finish(finish_sums<F>, 256, keyed_, w, r); });
    }
    if (exact || w.given || r.combines)
      full_range ? look_again<Digits>(w, r, look) : look_again<NarrowDigits>(w, r, look);
    return error_;
  }

  cudaError_t count() {
    auto* const totals = add<unsigned long long>(keyed_.results());
    clear_up_to_here();
    if (!begin()) return error_;
    count(keyed_, totals);
    enqueue_finish(finish_counts, 256, keyed_, destination({totals, nullptr, 1}));
    return error_;
  }

 private:
  CellWindows windows(const FormatInfo& input, const FormatInfo& format, bool exact) const {
    const bool is_short = input.precision <= 24, given = !exact && work_.call.options.grid.has_value();
    const int word_bits = word_bits_for(format.precision), for_terms = bits_for_terms(most_terms(work_.call)),
              grid = given ? *work_.call.options.grid : 0;
    const auto window = [&](Cells cells, int bits) { return CellWindow{cells, bits - for_terms, grid}; };
    CellWindows w{};
    w.exact = exact;
    w.given = given;
    w.lowest = input.min_quantum;
    w.min_exponent = 1 - input.max_exponent;
    if (exact) {
      w.narrow = is_short ? window(Cells::of_96, 95) : window(Cells::of_128, 127);
      w.wide = is_short ? window(Cells::of_128, 127) : window(Cells::of_192, 191);
      w.has_wide = w.narrow.bits < input.max_exponent + 1 - input.min_quantum;
    } else if (is_short && word_bits <= 62) {
      w.narrow = window(Cells::of_64, word_bits);
      w.wide = {Cells::counted, std::min(62, 95 - for_terms), grid};
      w.has_wide = given && grid + w.narrow.bits <= input.max_exponent;
    } else {
      w.narrow = window(Cells::of_128, given ? 126 : word_bits);
    }
    w.is_sampled = takes_sample(w) && keyed_.elements > std::uint64_t{1} << log2_sample;
    return w;
  }
  Totals add_totals(const CellWindows& w, std::uint64_t count) {
    const int together = words_of_total(w.narrow.cells);
    return {add<unsigned long long>(count * static_cast<unsigned>(together)), nullptr, together};
  }
  /// Whether the window follows from a sample of the elements; otherwise from all of them, or from none.
  static bool takes_sample(const CellWindows& w) { return w.exact || w.has_wide; }
  /// Accepts the workspace and clears its first parts. Enqueues the kernel that finds the range of exponents.
  template <class T> bool begin_sum(const CellWindows& w) {
    if (!takes_sample(w)) {
      if (!begin()) return false;
      if (!w.given)
        enqueue(find_largest<T>, blocks_for(keyed_.elements, key_tile_length, 2), key_threads, keyed_);
    } else {
      if (!accept()) return false;
      const std::uint64_t blocks = blocks_for(cleared_ / sizeof(uint4), 4 * key_threads, 2);
      enqueue(clear_and_sample<T>, std::max<std::uint64_t>(blocks, KeyEvents::ranges), key_threads, keyed_,
              cleared_);
    }
    return error_ == cudaSuccess;
  }

  /// Calls visit(cells) for the cells of the narrow window, then for those of the wide one.
  template <class Visit> static void for_each_window(const CellWindows& w, Visit visit) {
    visit(w.narrow.cells);
    if (w.has_wide) visit(w.wide.cells);
  }
  /// Calls run.operator()<cells>() for cells that elements of format T may have.
  template <class T, class Run> static void with_cells(Cells cells, Run run) {
    if constexpr (sizeof(T) < 8) {
      if (cells == Cells::of_64) return run.template operator()<Cells::of_64>();
      if (cells == Cells::counted) return run.template operator()<Cells::counted>();
      if (cells == Cells::of_96) return run.template operator()<Cells::of_96>();
    } else if (cells == Cells::of_192) {
      return run.template operator()<Cells::of_192>();
    }
    run.template operator()<Cells::of_128>();
  }

  // --- in place: every block adds the elements that it reads to cells --------------------------------------

  std::size_t most_shared() {
    return static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  }
  /// Plans cells in shared memory. Returns none if they need more than `limit` ranges of results: then global
  /// memory is faster.
  std::optional<SharedPlan> plan_shared(Cells cells, std::uint64_t limit) {
    const std::size_t cell = 4 * static_cast<std::size_t>(words_of(cells));
    const std::uint64_t room = most_shared() / cell, results = keyed_.results();
    if (room == 0) return {};
    const std::uint64_t ranges = blocks_of(results, room);
    if (work_.key_schedule == KeySchedule::shared) limit = std::max(limit, multiprocessors());
    if (work_.key_schedule > KeySchedule::shared || ranges > limit || results == 0) return {};
    SharedPlan plan{static_cast<std::uint32_t>(ranges),
                    static_cast<std::uint32_t>(blocks_of(results, ranges)), 1, words_of(cells)};
    // Few results get several cells each, so that threads rarely meet.
    while (plan.copies < warp && results * 2 * plan.copies * cell <= shared_by_default) plan.copies *= 2;
    return plan;
  }
  /// Enqueues a kernel with a plan: one block for each multiprocessor, as far as there is work, and at least
  /// one for each range.
  template <class... Parameter, class... Argument>
  void enqueue_planned(const SharedPlan& plan, void (*kernel)(Parameter...), Argument... argument) {
    const std::uint64_t per_range = std::max<std::uint64_t>(multiprocessors() / plan.ranges, 1);
    enqueue_with(plan.bytes(), kernel,
                 std::min(blocks_of(keyed_.elements, key_tile_length), per_range) * plan.ranges, key_threads,
                 argument...);
  }
  template <class T> void add_in_place(const CellWindows& w, bool shared, const Totals& totals) {
    for_each_window(w, [&](Cells cells) {
      if (!shared)
        enqueue(add_in_global<T>, blocks_for(keyed_.elements, 256, 8), 256, keyed_, w, cells, totals);
      else
        with_cells<T>(cells, [&]<Cells kind>() {
          const SharedPlan plan = *plan_shared(kind, keyed_.results());
          enqueue_planned(plan, add_in_shared<T, kind>, keyed_, w, plan, totals);
        });
    });
  }
  void count(const KeyedElements& keyed, unsigned long long* counts) {
    const Totals totals{counts, nullptr, 1};
    if (const std::optional<SharedPlan> plan = plan_shared(Cells::of_64, most_ranges))
      enqueue_planned(*plan, count_in_shared, keyed, *plan, totals);
    else
      enqueue(count_in_global, blocks_for(keyed_.elements, 256, 8), 256, keyed, totals);
  }

  // --- by rows that are sorted by key ----------------------------------------------------------------------

  /// Whether sorting the rows is worth it: only for long rows, which have few keys for many elements.
  bool sorts_rows() const {
    if (!can_sort()) return false;
    return work_.key_schedule == KeySchedule::sorted ||
           (work_.key_schedule == KeySchedule::automatic && keyed_.inner >= shortest_sorted &&
            keyed_.elements >= fewest_to_sort);
  }
  /// `present` is null if keys without elements keep their results.
  template <class T>
  void add_by_rows(const CellWindows& w, const KeyResults& r, const RowRuns& runs, std::uint8_t* present) {
    // Results are written as soon as they are known, so what `out` holds must not be needed later.
    if (r.combines && (w.exact || w.given))
      enqueue(look_for_outliers<T>, blocks_for(keyed_.elements, row_threads, 8), row_threads, keyed_, w);
    const std::uint64_t pieces = blocks_of(runs.rows.count, rows_of_piece),
                        columns = blocks_of(keyed_.inner, columns_of_warp), warps = row_threads / warp;
    for_each_window(w, [&](Cells cells) {
      with_cells<T>(cells, [&]<Cells kind>() {
        enqueue(add_runs_of_rows<T, kind>, blocks_of(pieces * columns, warps), row_threads, keyed_, w, runs,
                r, present);
      });
    });
    enqueue(finish_open_runs, blocks_of(pieces * keyed_.inner + 1, row_threads), row_threads, keyed_, w, runs,
            r);
    if (present != nullptr)
      with_kernel_format(formats[runs.format], [&]<class F>() {
        enqueue(finish_absent_keys<F>, blocks_of(keyed_.bins * columns, warps), row_threads, keyed_, r,
                present);
      });
  }

  // --- by partitions of the results ------------------------------------------------------------------------

  /// Whether partitions are worth it: if the results do not fit shared memory, and are at most twice as many
  /// as the elements.
  bool uses_partitions(Cells cells, std::size_t element_bytes, bool fits_shared) {
    const std::size_t longest = length_of<LongTiles> / (element_bytes == 8 ? 4 : 1);
    if (keyed_.inner != 1 || most_shared() < std::max(bytes_to_add(cells, log2_partition(cells)),
                                                      bytes_to_sort(element_bytes, longest, most_partitions)))
      return false;
    if (work_.key_schedule == KeySchedule::partitioned) return true;
    return work_.key_schedule == KeySchedule::automatic && keyed_.elements >= fewest_to_sort &&
           keyed_.elements >= keyed_.results() / 2 && !fits_shared &&
           blocks_of(keyed_.results(), std::uint64_t{1} << log2_partition(cells)) <= most_partitions;
  }
  static int log2_partition(Cells cells) { return cells == Cells::of_128 ? 13 : 14; }
  /// Shared memory of the kernels of partitions.
  static std::size_t bytes_to_add(Cells cells, int log2_cells) {
    return (std::size_t{4} << log2_cells) * static_cast<std::size_t>(words_of(cells));
  }
  static std::size_t bytes_to_sort(std::size_t element_bytes, std::size_t tile_length, std::size_t counters) {
    return tile_length * (sizeof(std::uint16_t) + element_bytes) + counters * sizeof(std::uint32_t);
  }
  /// Calls visit.operator()<Tiles>() with the tiles for so many partitions.
  template <class T, class Visit> static auto with_tiles(std::uint32_t partitions, Visit visit) {
    return sizeof(T) == 8 || partitions <= most_partitions_with_short_tiles
               ? visit.template operator()<ShortTiles>()
               : visit.template operator()<LongTiles>();
  }
  /// Clears the sizes of the partitions, too.
  template <class T> Partitions<T> add_partitions_of(Cells cells) {
    Partitions<T> p{};
    p.log2_results = log2_partition(cells);
    p.count = static_cast<std::uint32_t>(blocks_of(keyed_.results(), std::uint64_t{1} << p.log2_results));
    p.copies = 1;
    // Few partitions get several counters each, so that threads rarely meet.
    while (p.copies < warp && p.copies * p.count < 2 * warp) p.copies *= 2;
    p.tile_length = with_tiles<T>(p.count, [&]<class Tiles>() { return length_of<Tiles>; });
    p.tiles = static_cast<std::uint32_t>(blocks_of(keyed_.elements, p.tile_length));
    const std::uint64_t elements = std::uint64_t{p.tiles} * p.tile_length;
    p.size = add<PartitionSize>(p.count + 1);
    clear_up_to_here();
    p.begin = add<std::uint16_t>(std::uint64_t{p.tiles} * (p.count + 1));
    p.place = add<std::uint16_t>(elements);
    p.x = add<BitsOf<T>>(elements);
    return p;
  }
  template <class T>
  void add_by_partition(const CellWindows& w, const Partitions<T>& p, const Totals& totals) {
    const std::uint64_t processors = multiprocessors();
    with_tiles<T>(p.count, [&]<class Tiles>() {
      enqueue_with(bytes_to_sort(sizeof(T), p.tile_length, p.count * p.copies), sort_tiles<T, Tiles>,
                   std::min<std::uint64_t>(p.tiles, Tiles::blocks * processors), Tiles::threads, keyed_, p);
    });
    enqueue(measure_partitions<T>, blocks_of(p.count, warp) * blocks_of(p.tiles, measured_tiles), warp, p);
    enqueue_with(p.count * sizeof(std::uint32_t), share_out<T>, 1, key_threads, p,
                 std::max<std::uint64_t>(keyed_.elements / (32 * processors), 1));
    for_each_window(w, [&](Cells cells) {
      int log2_cells = p.log2_results;
      while (bytes_to_add(cells, log2_cells) > most_shared()) --log2_cells;
      with_cells<T>(cells, [&]<Cells kind>() {
        enqueue_with(bytes_to_add(cells, log2_cells), add_partitions<T, kind>, processors, key_threads,
                     keyed_, w, p, log2_cells, totals);
      });
    });
  }

  // --- the second look -------------------------------------------------------------------------------------

  SecondLook add_second_look(std::size_t format, bool exact, bool full_range, bool has_flags) {
    const std::size_t digits_of_result = !exact ? 4 : full_range ? Digits::count : NarrowDigits::count;
    const std::uint64_t results =
        std::min<std::uint64_t>(keyed_.results(), (std::size_t{32} << 20) / (8 * digits_of_result));
    auto* const digits = add<std::int64_t>(results * digits_of_result);
    const int word_bits = word_bits_for(formats[format].precision);
    return {work_.call.x.format->index, format,    digits,   results,
            most_terms(work_.call),     word_bits, has_flags};
  }
  template <class AnyDigits>
  void look_again(const CellWindows& w, const KeyResults& r, const SecondLook& look) {
    std::size_t blocks = 0;
    keep(resident_blocks(second_look<AnyDigits>, 512, blocks));
    if (error_ == cudaSuccess)
      keep(launch_cooperative(second_look<AnyDigits>, blocks, 512, work_.stream, keyed_, w, r, look));
  }

  static constexpr std::uint64_t most_ranges = 4, fewest_to_sort = std::uint64_t{1} << 20,
                                 shortest_sorted = 32;
};

}  // namespace
}  // namespace samesum::gpu
