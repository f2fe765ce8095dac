/// Reductions by key on a GPU: selects the schedule, and enqueues the kernels.
#include <cub/device/device_radix_sort.cuh>
#include <optional>

#include "samesum/backend/cuda/by_key_extrema.cuh"
#include "samesum/backend/cuda/by_key_partitions.cuh"
#include "samesum/backend/cuda/by_key_rows.cuh"
#include "samesum/backend/cuda/by_key_second_look.cuh"
#include "samesum/backend/cuda/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

/// Parts of a workspace, one after another.
class Parts {
 public:
  /// Appends a part of `count` items; returns its offset.
  template <class T> std::size_t add(std::uint64_t count) {
    const std::size_t at = size_;
    size_ = (size_ + count * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

/// One call by key: its arguments, its workspace, and the first error of an enqueued operation.
class CallByKey {
 public:
  CallByKey(Launch& work) : work_{work} {
    all_.format = work.call.keys.format;
    all_.keys = work.call.keys.data;
    all_.x = work.call.x.data;
    all_.inner = work.call.layout.inner;
    all_.elements = work.call.layout.n * work.call.layout.inner;
    all_.bins = bins(work.call);
    events_ = parts_.add<KeyEvents>(1);
  }

  cudaError_t sum(std::size_t format, bool exact, bool mean) {
    const FormatInfo& input = *work_.call.x.format;
    const Window w = window(input, formats[format], exact);
    const bool sorted = sorts_rows();
    const std::uint64_t results = all_.results();
    const std::optional<SharedPlan> plan = sorted ? std::nullopt : plan_shared(w.words, all_.results());
    const bool partitioned = !sorted && uses_partitions(w.words, input.bytes, plan.has_value());
    const RowParts rows = sorted ? add_rows(w.words) : RowParts{};
    const std::size_t counts = mean ? parts_.add<std::uint64_t>(all_.bins) : 0,
                      cleared_of_rows = parts_.size(), flags = parts_.add<std::uint32_t>((results + 3) / 4),
                      totals = parts_.add<std::uint64_t>(sorted ? 0 : results * words_of_total(w.words));
    const PartitionParts partitions = partitioned ? add_parts(w.words, input.bytes) : PartitionParts{};
    const std::size_t cleared = sorted ? cleared_of_rows : partitioned ? partitions.begin : parts_.size();
    const Sorting sorting = sorted ? add_sorting() : Sorting{};
    SecondLook look{
        input.index, format, nullptr, 0, work_.call.layout.n, word_bits_for(formats[format].precision),
        !sorted};
    const bool full_range = std::max(input.precision, formats[format].precision) > 24;
    const std::size_t digits_each = exact ? (full_range ? Digits::count : NarrowDigits::count) : 4;
    look.results = std::min<std::uint64_t>(results, (std::size_t{32} << 20) / (8 * digits_each));
    const std::size_t digits = parts_.add<std::int64_t>(look.results * digits_each);
    if (!begin(cleared)) return error_;
    all_.flags = at<std::uint32_t>(flags);
    look.digits = at<std::int64_t>(digits);
    const KeyResults r{at<unsigned long long>(totals), mean ? at<unsigned long long>(counts) : nullptr,
                       work_.call.out.data, work_.call.options.combine, work_.status};
    if (mean) count(all_.rows(), at<unsigned long long>(counts));
    with_format(input, [&]<class T>() {
      if (!w.given) find_largest_of<T>(exact);
      if (sorted)
        add_by_rows<T>(w, r, rows, sorting, format);
      else if (partitioned)
        add_by_partition<T>(w, partitions, at<unsigned long long>(totals));
      else
        add<T>(w, plan, at<unsigned long long>(totals));
    });
    if (!sorted)
      with_format(formats[format],
                  [&]<class F>() { enqueue(finish_sums<F>, blocks_of(results + 1, 256), 256, all_, w, r); });
    if (exact || w.given || work_.call.options.combine)
      full_range ? look_again<Digits>(w, r, look) : look_again<NarrowDigits>(w, r, look);
    return error_;
  }

  cudaError_t count() {
    const std::size_t totals = parts_.add<std::uint64_t>(all_.results());
    if (!begin(parts_.size())) return error_;
    count(all_, at<unsigned long long>(totals));
    enqueue(finish_counts, blocks_of(all_.results() + 1, 256), 256, all_,
            KeyResults{at<unsigned long long>(totals), nullptr, work_.call.out.data,
                       work_.call.options.combine, work_.status});
    return error_;
  }

  template <class F> cudaError_t extremum(bool smallest) {
    using Key = typename KeyOf<F>::Key;
    const std::size_t keys = parts_.add<Key>(all_.results());
    if (!begin(parts_.size())) return error_;
    const std::uint64_t results = all_.results();
    const bool shared = work_.key_schedule != KeySchedule::global && results * sizeof(Key) <= without_opt_in;
    const int processors = multiprocessors();
    enqueue_with(shared ? results * sizeof(Key) : 0, find_extrema<F>,
                 std::min<std::uint64_t>(blocks_of(all_.elements, 512), std::uint64_t{4} * processors), 512,
                 all_, work_.call.x.format->index, smallest, static_cast<std::uint32_t>(shared ? results : 0),
                 at<Key>(keys));
    enqueue(finish_extrema<F>, blocks_of(results + 1, 256), 256, all_,
            KeyResults{nullptr, nullptr, work_.call.out.data, work_.call.options.combine, work_.status},
            smallest, at<Key>(keys));
    return error_;
  }

  template <class F> cudaError_t in_arrival_order() {
    if (!begin(parts_.size())) return error_;
    if (!work_.call.options.combine) clear(work_.call.out.data, all_.results() * sizeof(F));
    enqueue(add_on_arrival<F>, std::min<std::uint64_t>(blocks_of(all_.elements, 256), 16 * multiprocessors()),
            256, all_, work_.call.x.format->index, static_cast<F*>(work_.call.out.data));
    enqueue(finish_on_arrival<F>, blocks_of(all_.results() + 1, 256), 256, all_,
            KeyResults{nullptr, nullptr, work_.call.out.data, work_.call.options.combine, work_.status});
    return error_;
  }

  template <class Reducer> cudaError_t in_turn(Reducer reducer) {
    if (!can_sort()) return cudaErrorInvalidValue;
    const Sorting sorting = add_sorting();
    if (!begin(sizeof(KeyEvents))) return error_;
    const SortedRows rows = sort(sorting);
    const auto add_all = [&](auto with) {
      enqueue(add_in_turn<decltype(with)>, blocks_of(all_.results() + 1, 128), 128, with, all_,
              work_.call.x.format->index, rows,
              KeyResults{nullptr, nullptr, work_.call.out.data, work_.call.options.combine, work_.status});
    };
    add_all(reducer);
    if constexpr (requires { reducer.replacement(); })
      if (reducer.mean) add_all(reducer.replacement());
    return error_;
  }

 private:
  static std::uint64_t blocks_of(std::uint64_t items, std::uint64_t each_block) {
    return (items + each_block - 1) / each_block;
  }
  template <class T> T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(states(work_.workspace)) + offset);
  }
  int multiprocessors() {
    int count = 1;
    keep(look_up(cudaDevAttrMultiProcessorCount, count));
    return count;
  }
  /// Shared memory that a block can have.
  std::size_t most_shared() {
    int bytes = 0;
    keep(look_up(cudaDevAttrMaxSharedMemoryPerBlockOptin, bytes));
    return static_cast<std::size_t>(bytes);
  }
  void keep(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }
  void clear(void* from, std::size_t bytes) {
    if (error_ == cudaSuccess && bytes > 0) error_ = cudaMemsetAsync(from, 0, bytes, work_.stream);
  }

  /// Accepts the workspace, and clears its first bytes. Returns false for a size query or after an error.
  bool begin(std::size_t cleared) {
    if (error_ != cudaSuccess || !accept_workspace(work_, header_bytes + parts_.size(), error_)) return false;
    all_.events = at<KeyEvents>(events_);
    clear(all_.events, cleared);
    return error_ == cudaSuccess;
  }

  template <class... Parameter, class... Argument>
  void enqueue_with(std::size_t shared, void (*kernel)(Parameter...), std::uint64_t blocks, int threads,
                    Argument... argument) {
    if (error_ != cudaSuccess || blocks == 0) return;
    error_ = launch_with(shared, kernel, blocks, threads, work_.stream, argument...);
  }
  template <class... Parameter, class... Argument>
  void enqueue(void (*kernel)(Parameter...), std::uint64_t blocks, int threads, Argument... argument) {
    enqueue_with(0, kernel, blocks, threads, argument...);
  }

  Window window(const FormatInfo& input, const FormatInfo& format, bool exact) const {
    const bool narrow = input.precision <= 24;
    Window w{};
    w.exact = exact;
    w.min_exponent = 1 - input.max_exponent;
    w.lowest = input.min_quantum;
    w.given = !exact && work_.call.options.grid.has_value();
    if (w.given) w.grid = *work_.call.options.grid;
    const int word_bits = word_bits_for(format.precision);
    w.words = !narrow || (!exact && word_bits > 62) ? 4 : exact ? 3 : 2;
    w.headroom = exact ? 3 : 0;
    w.bits = (exact ? 32 * w.words - 1 : word_bits) - bits_for_terms(work_.call.layout.n);
    return w;
  }

  template <class T> void find_largest_of(bool sample) {
    constexpr std::uint64_t most = 1 << 13;  // of a sample: what one block loads at once
    const std::uint64_t step = sample ? std::max<std::uint64_t>(all_.elements / most, 1) : 1,
                        blocks = blocks_of(all_.elements / step, key_threads * each);
    enqueue(
        find_largest<T>,
        std::min<std::uint64_t>(std::max<std::uint64_t>(blocks, all_.elements > 0), 2 * multiprocessors()),
        key_threads, static_cast<const BitsOf<T>*>(all_.x), all_.elements, step, all_.events);
  }

  /// Plans cells of so many words in shared memory. Returns none if global memory is faster.
  std::optional<SharedPlan> plan_shared(int words, std::uint64_t results) {
    const std::size_t cell = 4 * static_cast<std::size_t>(words);
    const std::uint64_t room = most_shared() / cell;
    if (room == 0) return {};
    const std::uint64_t ranges = blocks_of(results, room);
    const auto limit = static_cast<std::uint64_t>(
        work_.key_schedule == KeySchedule::shared ? multiprocessors() : most_ranges);
    if (work_.key_schedule > KeySchedule::shared || ranges > limit || results == 0) return {};
    SharedPlan plan{static_cast<std::uint32_t>(ranges),
                    static_cast<std::uint32_t>(blocks_of(results, ranges)), 1, words};
    // Few results get several cells each, so that threads rarely meet.
    while (plan.copies < warp && results * 2 * plan.copies * cell <= without_opt_in) plan.copies *= 2;
    return plan;
  }
  /// Blocks for a plan: one for each multiprocessor, as far as there is work, and at least one for each
  /// range.
  std::uint64_t blocks_for(const SharedPlan& plan) {
    const auto processors = static_cast<std::uint64_t>(multiprocessors());
    return std::min(blocks_of(all_.elements, tile), std::max<std::uint64_t>(processors / plan.ranges, 1)) *
           plan.ranges;
  }
  std::uint64_t blocks_for_global() {
    return std::min<std::uint64_t>(blocks_of(all_.elements, 256),
                                   8 * static_cast<std::uint64_t>(multiprocessors()));
  }

  /// Whether the rows can be sorted by key: both numbers have 31 bits.
  bool can_sort() const { return work_.call.layout.n >> 31 == 0 && all_.bins >> 31 == 0; }
  /// Where sorting the rows is worth it: they are long, so that there are few keys for many elements.
  bool sorts_rows() const {
    if (!can_sort()) return false;
    return work_.key_schedule == KeySchedule::sorted ||
           (work_.key_schedule == KeySchedule::automatic && all_.inner >= shortest_sorted &&
            all_.elements >= fewest_to_sort);
  }

  /// Places of SortedRows in the workspace.
  struct Sorting {
    std::size_t bins, places, sorted_bins, sorted, temporary, bytes;
  };
  Sorting add_sorting() {
    const std::uint64_t rows = work_.call.layout.n;
    Sorting s{parts_.add<std::uint32_t>(rows),
              parts_.add<std::uint32_t>(rows),
              parts_.add<std::uint32_t>(rows),
              parts_.add<std::uint32_t>(rows),
              0,
              0};
    const std::uint32_t* from = nullptr;
    std::uint32_t* to = nullptr;
    keep(sort_pairs(nullptr, s.bytes, from, to, from, to));
    s.temporary = parts_.add<std::byte>(s.bytes);
    return s;
  }
  cudaError_t sort_pairs(void* temporary, std::size_t& bytes, const std::uint32_t* bins,
                         std::uint32_t* sorted_bins, const std::uint32_t* places, std::uint32_t* sorted) {
    return cub::DeviceRadixSort::SortPairs(temporary, bytes, bins, sorted_bins, places, sorted,
                                           static_cast<int>(work_.call.layout.n), 0,
                                           std::bit_width(all_.bins), work_.stream);
  }
  /// Sorts the rows by key.
  SortedRows sort(Sorting s) {
    const std::uint64_t rows = work_.call.layout.n;
    enqueue(number_rows, blocks_of(rows, 256), 256, all_, rows, at<std::uint32_t>(s.bins),
            at<std::uint32_t>(s.places));
    if (rows > 0 && error_ == cudaSuccess)
      error_ = sort_pairs(at<std::byte>(s.temporary), s.bytes, at<std::uint32_t>(s.bins),
                          at<std::uint32_t>(s.sorted_bins), at<std::uint32_t>(s.places),
                          at<std::uint32_t>(s.sorted));
    return {at<std::uint32_t>(s.sorted_bins), at<std::uint32_t>(s.sorted), rows};
  }

  /// Places of RowRuns in the workspace.
  struct RowParts {
    std::size_t present, flags, totals;
  };
  RowParts add_rows(int words) {
    const std::uint64_t totals = blocks_of(work_.call.layout.n, rows_of_piece) * all_.inner;
    return {parts_.add<std::uint8_t>(all_.bins), parts_.add<std::uint32_t>((totals + 3) / 4),
            parts_.add<std::uint64_t>(totals * words_of_total(words))};
  }
  template <class T>
  void add_by_rows(const Window& w, const KeyResults& r, const RowParts& parts, const Sorting& sorting,
                   std::size_t format) {
    std::uint8_t* const present = r.combines ? nullptr : at<std::uint8_t>(parts.present);
    const RowRuns runs{sort(sorting), format, at<unsigned long long>(parts.totals),
                       at<std::uint32_t>(parts.flags)};
    // Results are written as soon as they are known, so what `out` holds must not be needed later.
    if (r.combines && (w.exact || w.given))
      enqueue(look_for_misses<T>,
              std::min<std::uint64_t>(blocks_of(all_.elements, row_threads),
                                      8 * static_cast<std::uint64_t>(multiprocessors())),
              row_threads, all_, w);
    const std::uint64_t pieces = blocks_of(runs.rows.count, rows_of_piece),
                        columns = blocks_of(all_.inner, columns_of_warp), warps = row_threads / warp;
    const auto run = [&](auto kernel) {
      enqueue(kernel, blocks_of(pieces * columns, warps), row_threads, all_, w, runs, r, present);
    };
    if (w.words == 4) run(add_runs_of_rows<T, 4>);
    if constexpr (sizeof(T) < 8) {
      if (w.words == 2) run(add_runs_of_rows<T, 2>);
      if (w.words == 3) run(add_runs_of_rows<T, 3>);
    }
    enqueue(finish_open_runs, blocks_of(pieces * all_.inner + 1, row_threads), row_threads, all_, w, runs, r);
    if (!r.combines)
      with_format(formats[format], [&]<class F>() {
        enqueue(finish_absent_keys<F>, blocks_of(all_.bins * columns, warps), row_threads, all_, r, present);
      });
  }

  /// Where partitions are worth it: results do not fit shared memory, and are not many more than elements.
  bool uses_partitions(int words, std::size_t element_bytes, bool fits_shared) {
    const std::size_t longest = length_of<LongTiles> / (element_bytes == 8 ? 4 : 1);
    if (all_.inner != 1 ||
        most_shared() < std::max(bytes_to_add(words), bytes_to_sort(element_bytes, longest, most_partitions)))
      return false;
    if (work_.key_schedule == KeySchedule::partitioned) return true;
    return work_.key_schedule == KeySchedule::automatic && all_.elements >= fewest_to_sort &&
           all_.elements >= all_.results() / 2 && !fits_shared &&
           blocks_of(all_.results(), std::uint64_t{1} << log2_partition(words)) <= most_partitions;
  }
  static int log2_partition(int words) { return words == 4 ? 13 : 14; }
  /// Shared memory of the kernels of partitions.
  static std::size_t bytes_to_add(int words) {
    return (std::size_t{4} << log2_partition(words)) * static_cast<std::size_t>(words);
  }
  static std::size_t bytes_to_sort(std::size_t element_bytes, std::size_t tile, std::size_t counters) {
    return tile * (sizeof(std::uint16_t) + element_bytes) + counters * sizeof(std::uint32_t);
  }
  /// Calls visit.operator()<Tiles>() with the tiles for so many partitions.
  template <class Visit>
  static auto with_tiles(std::size_t element_bytes, std::uint32_t partitions, Visit visit) {
    return element_bytes == 8 || partitions <= most_partitions_with_short_tiles
               ? visit.template operator()<ShortTiles>()
               : visit.template operator()<LongTiles>();
  }

  /// Places of Partitions in the workspace.
  struct PartitionParts {
    std::uint32_t count = 0, tiles = 0, tile = 0;
    std::size_t size = 0, begin = 0, place = 0, x = 0;
  };
  PartitionParts add_parts(int words, std::size_t element_bytes) {
    PartitionParts parts;
    parts.count =
        static_cast<std::uint32_t>(blocks_of(all_.results(), std::uint64_t{1} << log2_partition(words)));
    parts.tile = with_tiles(element_bytes, parts.count, [&]<class Tiles>() { return length_of<Tiles>; });
    parts.tiles = static_cast<std::uint32_t>(blocks_of(all_.elements, parts.tile));
    const std::uint64_t elements = std::uint64_t{parts.tiles} * parts.tile;
    parts.size = parts_.add<PartitionSize>(parts.count + 1);
    parts.begin = parts_.add<std::uint16_t>(std::uint64_t{parts.tiles} * (parts.count + 1));
    parts.place = parts_.add<std::uint16_t>(elements);
    parts.x = parts_.add<std::byte>(elements * element_bytes);
    return parts;
  }

  template <class T>
  void add_by_partition(const Window& w, const PartitionParts& parts, unsigned long long* totals) {
    Partitions<T> to{log2_partition(w.words),
                     parts.count,
                     1,
                     parts.tiles,
                     parts.tile,
                     at<std::uint16_t>(parts.begin),
                     at<std::uint16_t>(parts.place),
                     at<BitsOf<T>>(parts.x),
                     at<PartitionSize>(parts.size)};
    // Few partitions get several counters each, so that threads rarely meet.
    while (to.copies < warp && to.copies * to.count < 2 * warp) to.copies *= 2;
    const auto processors = static_cast<std::uint64_t>(multiprocessors());
    with_tiles(sizeof(T), to.count, [&]<class Tiles>() {
      enqueue_with(bytes_to_sort(sizeof(T), to.tile, to.count * to.copies), sort_tiles<T, Tiles>,
                   std::min<std::uint64_t>(to.tiles, Tiles::blocks * processors), Tiles::threads, all_, to);
    });
    enqueue(measure_partitions<T>, blocks_of(to.count, warp) * blocks_of(to.tiles, measured_tiles), warp, to);
    enqueue_with(to.count * sizeof(std::uint32_t), share_out<T>, 1, key_threads, to,
                 std::max<std::uint64_t>(all_.elements / (32 * processors), 1));
    const auto run = [&](auto kernel) {
      enqueue_with(bytes_to_add(w.words), kernel, processors, key_threads, all_, w, to, totals);
    };
    if constexpr (sizeof(T) < 8) {
      if (w.words == 2) return run(add_partitions<T, 2>);
      if (w.words == 3) return run(add_partitions<T, 3>);
    }
    run(add_partitions<T, 4>);
  }

  template <class T>
  void add(const Window& w, const std::optional<SharedPlan>& plan, unsigned long long* totals) {
    if (!plan) return enqueue(add_in_global<T>, blocks_for_global(), 256, all_, w, totals);
    const auto run = [&](auto kernel) {
      enqueue_with(plan->bytes(), kernel, blocks_for(*plan), key_threads, all_, w, *plan, totals);
    };
    if constexpr (sizeof(T) < 8) {
      if (w.words == 2) return run(add_in_shared<T, 2>);
      if (w.words == 3) return run(add_in_shared<T, 3>);
    }
    run(add_in_shared<T, 4>);
  }

  void count(const KeyedElements& all, unsigned long long* totals) {
    if (const std::optional<SharedPlan> plan = plan_shared(2, all.results()))
      enqueue_with(plan->bytes(), count_in_shared, blocks_for(*plan), key_threads, all, *plan, totals);
    else
      enqueue(count_in_global, blocks_for_global(), 256, all, totals);
  }

  template <class AnyDigits> void look_again(const Window& w, const KeyResults& r, const SecondLook& look) {
    int resident = 0;
    keep(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, second_look<AnyDigits>, 512, 0));
    if (error_ != cudaSuccess) return;
    cudaLaunchConfig_t config{};
    cudaLaunchAttribute cooperative{};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    config.gridDim = dim3(static_cast<unsigned>(resident * multiprocessors()));
    config.blockDim = dim3(512);
    config.stream = work_.stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    keep(cudaLaunchKernelEx(&config, second_look<AnyDigits>, all_, w, r, look));
  }

  static constexpr std::size_t without_opt_in = std::size_t{48} << 10;  // shared memory of a block
  static constexpr std::uint64_t most_ranges = 4, fewest_to_sort = std::uint64_t{1} << 20,
                                 shortest_sorted = 32;
  Launch& work_;
  KeyedElements all_{};
  Parts parts_;
  std::size_t events_;
  cudaError_t error_ = cudaSuccess;
};

template <class Operation, bool exact, class F> cudaError_t run_order_free(Launch& work) {
  return CallByKey{work}.sum(Formats::index_of<F>(), exact, exact_kind<Operation>.mean);
}

template <class Operation, class Order, class F> cudaError_t run(Launch& work) {
  if constexpr (Operation::inputs == 0)
    return CallByKey{work}.count();
  else if constexpr (!Operation::has_order)
    return CallByKey{work}.extremum<F>(Operation::template reducer<Plain, F>({}).smallest);
  else if constexpr (std::is_same_v<Order, AtomicElement>)
    return CallByKey{work}.in_arrival_order<F>();
  else
    return CallByKey{work}.in_turn(Operation::template reducer<Plain, F>({}));
}

}  // namespace

std::vector<Entry> methods_by_key() {
  std::vector<Entry> all;
  Formats::for_each([&]<class F>() {
    for_each_method_by_key<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
      Entry e = describe<Operation, Order, A, F>("cuda");
      Formats::for_each([&]<class T>() {
        if constexpr (Operation::inputs == 0 || can_read<T, F>)
          e.code.device.any[Formats::index_of<T>()] = run_launch<run<Operation, Order, F>>;
      });
      e.facts.is_slow = Operation::has_order && std::is_same_v<Order, Serial>;
      // atomicAdd of fp32 flushes subnormal numbers to zero: each addition may lose that much.
      if (Operation::has_order && Order::promise == Promise::none && std::is_same_v<F, fp32>)
        e.code.lost_per_arrival = 0x1p-126;
      all.push_back(e);
    });
    OrderFree::for_each([&]<class Accumulator>() {
      for_each_order_free_by_key<Accumulator>([&]<class Operation>() {
        Entry e = describe_order_free<Operation, Accumulator, F>("cuda");
        e.code.device.any.fill(
            run_launch<run_order_free<Operation, std::is_same_v<Accumulator, Exactly>, F>>);
        all.push_back(e);
      });
    });
  });
  return all;
}

}  // namespace samesum::gpu
