/// Sums and counts by key on a GPU: selects their schedule, and enqueues their kernels.
#pragma once

#include "samesum/backend/cuda/by_key/by_partition.cuh"
#include "samesum/backend/cuda/by_key/rows.cuh"

namespace samesum::gpu {
namespace {

/// One call of a sum in integers, or of a count: selects its schedule, and enqueues it.
class SumByKey : public CallByPartition {
 public:
  explicit SumByKey(Launch& work) : CallByPartition{work} {}

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
    if (mean) count_in_place(keyed_.rows(), counts);
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
      full_range ? look_again<fp64>(w, r, look) : look_again<fp32>(w, r, look);
    return error_;
  }

  cudaError_t count() {
    auto* const totals = add<unsigned long long>(keyed_.results());
    clear_up_to_here();
    if (!begin()) return error_;
    count_in_place(keyed_, totals);
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

  // --- the second look -------------------------------------------------------------------------------------

  SecondLook add_second_look(std::size_t format, bool exact, bool full_range, bool has_flags) {
    const std::size_t digits_of_result = !exact       ? 4
                                         : full_range ? SecondLooker<fp64>::most_digits
                                                      : SecondLooker<fp32>::most_digits;
    const std::uint64_t results =
        std::min<std::uint64_t>(keyed_.results(), (std::size_t{32} << 20) / (8 * digits_of_result));
    auto* const digits = add<std::int64_t>(results * digits_of_result);
    const int word_bits = word_bits_for(formats[format].precision);
    return {work_.call.x.format->index, format,    digits,   results,
            most_terms(work_.call),     word_bits, has_flags};
  }
  template <class T> void look_again(const CellWindows& w, const KeyResults& r, const SecondLook& look) {
    std::size_t blocks = 0;
    keep(resident_blocks(second_look<T>, 512, blocks));
    if (error_ == cudaSuccess)
      keep(launch_cooperative(second_look<T>, blocks, 512, work_.stream, keyed_, w, r, look));
  }

  static constexpr std::uint64_t shortest_sorted = 32;  ///< elements of a row
};

}  // namespace
}  // namespace samesum::gpu
