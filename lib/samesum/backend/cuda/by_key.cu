/// Reductions by key on a GPU: selects the schedule of a call, and enqueues its kernels.
#include <optional>

#include "samesum/backend/cuda/by_key_call.cuh"
#include "samesum/backend/cuda/by_key_partitions.cuh"
#include "samesum/backend/cuda/by_key_rows.cuh"
#include "samesum/backend/cuda/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

/// A sum in integers, or a count.
class SumByKey : public CallByKey {
 public:
  explicit SumByKey(Launch& work) : CallByKey{work} {}

  /// Sums elements of format T; `format` is the format index of the results.
  template <class T> cudaError_t sum(std::size_t format, bool exact, bool mean) {
    const Window w = window(*work_.call.x.format, formats[format], exact);
    const std::uint64_t results = all_.results();
    const bool sorted = sorts_rows();
    const std::optional<SharedPlan> plan = sorted ? std::nullopt : plan_shared(w.words, results);
    const bool partitioned = !sorted && uses_partitions(w.words, sizeof(T), plan.has_value());
    std::uint8_t* const present = sorted ? add<std::uint8_t>(all_.bins) : nullptr;
    RowRuns runs = sorted ? add_runs(w.words, format) : RowRuns{};
    auto* const counts = mean ? add<unsigned long long>(all_.bins) : nullptr;
    if (sorted) clear_up_to_here();
    all_.flags = add<std::uint32_t>((results + 3) / 4);
    auto* const totals = add<unsigned long long>(sorted ? 0 : results * words_of_total(w.words));
    if (!sorted) clear_up_to_here();
    const Partitions<T> partitions = partitioned ? add_partitions_of<T>(w.words) : Partitions<T>{};
    const Sorting sorting = sorted ? add_sorting() : Sorting{};
    const bool full_range = std::max(Format<T>::precision, formats[format].precision) > 24;
    const SecondLook look = add_second_look(format, exact, full_range, !sorted);
    if (!begin()) return error_;
    const KeyResults r = destination(totals, counts);
    if (mean) count(all_.rows(), counts);
    if (!w.given) find_largest_of<T>(exact);
    if (sorted) {
      runs.rows = sort(sorting);
      add_by_rows<T>(w, r, runs, r.combines ? nullptr : present);
    } else {
      if (partitioned)
        add_by_partition(w, partitions, totals);
      else
        add_in_place<T>(w, plan, totals);
      with_format(formats[format], [&]<class F>() { enqueue_finish(finish_sums<F>, 256, all_, w, r); });
    }
    if (exact || w.given || r.combines)
      full_range ? look_again<Digits>(w, r, look) : look_again<NarrowDigits>(w, r, look);
    return error_;
  }

  cudaError_t count() {
    auto* const totals = add<unsigned long long>(all_.results());
    clear_up_to_here();
    if (!begin()) return error_;
    count(all_, totals);
    enqueue_finish(finish_counts, 256, all_, destination(totals));
    return error_;
  }

 private:
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
    constexpr std::uint64_t most = 1 << 13;  // elements of a sample: what one block loads at once
    const std::uint64_t step = sample ? std::max<std::uint64_t>(all_.elements / most, 1) : 1,
                        blocks = blocks_for(all_.elements / step, key_tile_length, 2);
    enqueue(find_largest<T>, std::max<std::uint64_t>(blocks, all_.elements > 0), key_threads,
            static_cast<const BitsOf<T>*>(all_.x), all_.elements, step, all_.events);
  }

  /// Calls run.operator()<words>() for the number of words of a cell of elements of format T.
  template <class T, class Run> static void with_words(int words, Run run) {
    if constexpr (sizeof(T) < 8) {
      if (words == 2) return run.template operator()<2>();
      if (words == 3) return run.template operator()<3>();
    }
    run.template operator()<4>();
  }

  // --- in place: every block adds the elements that it reads to cells --------------------------------------

  std::size_t most_shared() {
    return static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  }
  /// Plans cells of so many words in shared memory. Returns none if global memory is faster.
  std::optional<SharedPlan> plan_shared(int words, std::uint64_t results) {
    const std::size_t cell = 4 * static_cast<std::size_t>(words);
    const std::uint64_t room = most_shared() / cell;
    if (room == 0) return {};
    const std::uint64_t ranges = blocks_of(results, room),
                        limit = work_.key_schedule == KeySchedule::shared ? multiprocessors() : most_ranges;
    if (work_.key_schedule > KeySchedule::shared || ranges > limit || results == 0) return {};
    SharedPlan plan{static_cast<std::uint32_t>(ranges),
                    static_cast<std::uint32_t>(blocks_of(results, ranges)), 1, words};
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
                 std::min(blocks_of(all_.elements, key_tile_length), per_range) * plan.ranges, key_threads,
                 argument...);
  }
  template <class T>
  void add_in_place(const Window& w, const std::optional<SharedPlan>& plan, unsigned long long* totals) {
    if (!plan)
      enqueue(add_in_global<T>, blocks_for(all_.elements, 256, 8), 256, all_, w, totals);
    else
      with_words<T>(w.words, [&]<int words>() {
        enqueue_planned(*plan, add_in_shared<T, words>, all_, w, *plan, totals);
      });
  }
  void count(const KeyedElements& all, unsigned long long* totals) {
    if (const std::optional<SharedPlan> plan = plan_shared(2, all.results()))
      enqueue_planned(*plan, count_in_shared, all, *plan, totals);
    else
      enqueue(count_in_global, blocks_for(all_.elements, 256, 8), 256, all, totals);
  }

  // --- by rows that are sorted by key ----------------------------------------------------------------------

  /// Where sorting the rows is worth it: they are long, so that there are few keys for many elements.
  bool sorts_rows() const {
    if (!can_sort()) return false;
    return work_.key_schedule == KeySchedule::sorted ||
           (work_.key_schedule == KeySchedule::automatic && all_.inner >= shortest_sorted &&
            all_.elements >= fewest_to_sort);
  }
  RowRuns add_runs(int words, std::size_t format) {
    const std::uint64_t totals = blocks_of(work_.call.layout.n, rows_of_piece) * all_.inner;
    auto* const of_totals = add<unsigned long long>(totals * words_of_total(words));
    return {{}, format, of_totals, add<std::uint32_t>((totals + 3) / 4)};
  }
  /// `present` is null if keys without elements keep their results.
  template <class T>
  void add_by_rows(const Window& w, const KeyResults& r, const RowRuns& runs, std::uint8_t* present) {
    // Results are written as soon as they are known, so what `out` holds must not be needed later.
    if (r.combines && (w.exact || w.given))
      enqueue(look_for_misses<T>, blocks_for(all_.elements, row_threads, 8), row_threads, all_, w);
    const std::uint64_t pieces = blocks_of(runs.rows.count, rows_of_piece),
                        columns = blocks_of(all_.inner, columns_of_warp), warps = row_threads / warp;
    with_words<T>(w.words, [&]<int words>() {
      enqueue(add_runs_of_rows<T, words>, blocks_of(pieces * columns, warps), row_threads, all_, w, runs, r,
              present);
    });
    enqueue(finish_open_runs, blocks_of(pieces * all_.inner + 1, row_threads), row_threads, all_, w, runs, r);
    if (present != nullptr)
      with_format(formats[runs.format], [&]<class F>() {
        enqueue(finish_absent_keys<F>, blocks_of(all_.bins * columns, warps), row_threads, all_, r, present);
      });
  }

  // --- by partitions of the results ------------------------------------------------------------------------

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
  template <class T> Partitions<T> add_partitions_of(int words) {
    Partitions<T> p{};
    p.log2_results = log2_partition(words);
    p.count = static_cast<std::uint32_t>(blocks_of(all_.results(), std::uint64_t{1} << p.log2_results));
    p.copies = 1;
    // Few partitions get several counters each, so that threads rarely meet.
    while (p.copies < warp && p.copies * p.count < 2 * warp) p.copies *= 2;
    p.tile_length = with_tiles<T>(p.count, [&]<class Tiles>() { return length_of<Tiles>; });
    p.tiles = static_cast<std::uint32_t>(blocks_of(all_.elements, p.tile_length));
    const std::uint64_t elements = std::uint64_t{p.tiles} * p.tile_length;
    p.size = add<PartitionSize>(p.count + 1);
    clear_up_to_here();
    p.begin = add<std::uint16_t>(std::uint64_t{p.tiles} * (p.count + 1));
    p.place = add<std::uint16_t>(elements);
    p.x = add<BitsOf<T>>(elements);
    return p;
  }
  template <class T>
  void add_by_partition(const Window& w, const Partitions<T>& p, unsigned long long* totals) {
    const std::uint64_t processors = multiprocessors();
    with_tiles<T>(p.count, [&]<class Tiles>() {
      enqueue_with(bytes_to_sort(sizeof(T), p.tile_length, p.count * p.copies), sort_tiles<T, Tiles>,
                   std::min<std::uint64_t>(p.tiles, Tiles::blocks * processors), Tiles::threads, all_, p);
    });
    enqueue(measure_partitions<T>, blocks_of(p.count, warp) * blocks_of(p.tiles, measured_tiles), warp, p);
    enqueue_with(p.count * sizeof(std::uint32_t), share_out<T>, 1, key_threads, p,
                 std::max<std::uint64_t>(all_.elements / (32 * processors), 1));
    with_words<T>(w.words, [&]<int words>() {
      enqueue_with(bytes_to_add(w.words), add_partitions<T, words>, processors, key_threads, all_, w, p,
                   totals);
    });
  }

  // --- the second look -------------------------------------------------------------------------------------

  SecondLook add_second_look(std::size_t format, bool exact, bool full_range, bool has_flags) {
    const std::size_t digits_of_result = !exact ? 4 : full_range ? Digits::count : NarrowDigits::count;
    const std::uint64_t results =
        std::min<std::uint64_t>(all_.results(), (std::size_t{32} << 20) / (8 * digits_of_result));
    auto* const digits = add<std::int64_t>(results * digits_of_result);
    const int word_bits = word_bits_for(formats[format].precision);
    return {work_.call.x.format->index, format, digits, results, work_.call.layout.n, word_bits, has_flags};
  }
  template <class AnyDigits> void look_again(const Window& w, const KeyResults& r, const SecondLook& look) {
    std::size_t blocks = 0;
    keep(resident_blocks(second_look<AnyDigits>, 512, blocks));
    cudaLaunchConfig_t config{};
    cudaLaunchAttribute cooperative{};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(512);
    config.stream = work_.stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    if (error_ == cudaSuccess) keep(cudaLaunchKernelEx(&config, second_look<AnyDigits>, all_, w, r, look));
  }

  static constexpr std::uint64_t most_ranges = 4, fewest_to_sort = std::uint64_t{1} << 20,
                                 shortest_sorted = 32;
};

/// An extremum, or a plain sum in the order of arrival or in turn.
class PlainByKey : public CallByKey {
 public:
  explicit PlainByKey(Launch& work) : CallByKey{work} {}

  template <class F> cudaError_t extremum(bool smallest) {
    using Key = typename KeyOf<F>::Key;
    const std::uint64_t results = all_.results();
    Key* const keys = add<Key>(results);
    clear_up_to_here();
    if (!begin()) return error_;
    const bool shared =
        work_.key_schedule != KeySchedule::global && results * sizeof(Key) <= shared_by_default;
    enqueue_with(shared ? results * sizeof(Key) : 0, find_extrema<F>, blocks_for(all_.elements, 512, 4), 512,
                 all_, input(), smallest, static_cast<std::uint32_t>(shared ? results : 0), keys);
    enqueue_finish(finish_extrema<F>, 256, all_, destination(), smallest, keys);
    return error_;
  }

  template <class F> cudaError_t in_arrival_order() {
    if (!begin()) return error_;
    if (!work_.call.options.combine) clear(work_.call.out.data, all_.results() * sizeof(F));
    enqueue(add_on_arrival<F>, blocks_for(all_.elements, 256, 16), 256, all_, input(),
            static_cast<F*>(work_.call.out.data));
    enqueue_finish(finish_on_arrival<F>, 256, all_, destination());
    return error_;
  }

  template <class Reducer> cudaError_t in_turn(const Reducer& reducer) {
    if (!can_sort()) return cudaErrorInvalidValue;
    const Sorting sorting = add_sorting();
    if (!begin()) return error_;
    const SortedRows rows = sort(sorting);
    const auto add_all = [&](const auto& with) {
      enqueue_finish(add_in_turn<std::decay_t<decltype(with)>>, 128, with, all_, input(), rows,
                     destination());
    };
    add_all(reducer);
    if constexpr (requires { reducer.replacement(); })
      if (reducer.mean) add_all(reducer.replacement());
    return error_;
  }

 private:
  /// Format index of the elements.
  std::size_t input() const { return work_.call.x.format->index; }
};

template <class Operation, bool exact, class F> cudaError_t run_order_free(Launch& work) {
  return with_format(*work.call.x.format, [&]<class T>() {
    return SumByKey{work}.sum<T>(Formats::index_of<F>(), exact, exact_kind<Operation>.mean);
  });
}

template <class Operation, class Order, class F> cudaError_t run(Launch& work) {
  if constexpr (Operation::inputs == 0)
    return SumByKey{work}.count();
  else if constexpr (!Operation::has_order)
    return PlainByKey{work}.extremum<F>(Operation::template reducer<Plain, F>({}).smallest);
  else if constexpr (std::is_same_v<Order, AtomicElement>)
    return PlainByKey{work}.in_arrival_order<F>();
  else
    return PlainByKey{work}.in_turn(Operation::template reducer<Plain, F>({}));
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
