/// The schedule of sums and counts by key whose blocks add the elements that they read to cells: in shared
/// memory if few ranges of results fit there, else in global memory.
#pragma once

#include <optional>

#include "samesum/backend/cuda/by_key/add.cuh"
#include "samesum/backend/cuda/by_key/call.cuh"

namespace samesum::gpu {
namespace {

/// A call whose elements are added to cells.
class CallInCells : public CallByKey {
 protected:
  explicit CallInCells(Launch& work) : CallByKey{work} {}

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
  void count_in_place(const KeyedElements& keyed, unsigned long long* counts) {
    const Totals totals{counts, nullptr, 1};
    if (const std::optional<SharedPlan> plan = plan_shared(Cells::of_64, most_ranges))
      enqueue_planned(*plan, count_in_shared, keyed, *plan, totals);
    else
      enqueue(count_in_global, blocks_for(keyed_.elements, 256, 8), 256, keyed, totals);
  }

  /// Ranges in shared memory; more are slower than global memory.
  static constexpr std::uint64_t most_ranges = 4;
};

}  // namespace
}  // namespace samesum::gpu
