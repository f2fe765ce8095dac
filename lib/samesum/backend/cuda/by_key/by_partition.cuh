/// The schedule of sums by key of many results: tiles of elements are sorted by partitions of the results,
/// and each partition is added to cells in shared memory.
#pragma once

#include "samesum/backend/cuda/by_key/in_place.cuh"
#include "samesum/backend/cuda/by_key/partitions.cuh"

namespace samesum::gpu {
namespace {

/// A call whose elements may be partitioned before they are added to cells.
class CallByPartition : public CallInCells {
 protected:
  explicit CallByPartition(Launch& work) : CallInCells{work} {}

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
  /// Bytes of shared memory of the kernels of partitions.
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
  /// Appends the memory of the partitions to the workspace. begin() also clears their sizes.
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

  static constexpr std::uint64_t fewest_to_sort = std::uint64_t{1} << 20;  ///< elements
};

}  // namespace
}  // namespace samesum::gpu
