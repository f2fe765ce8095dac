/// Reductions of which only some elements take part: blocks of packed results, blocks with stand-ins, and
/// long results, portion by portion.
#include <cstring>
#include <vector>

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/backend/cpu/selection/stand_ins.hpp"

namespace samesum::cpu {
namespace {

/// Portions of a long vector that one task reduces to a state.
constexpr std::size_t portions_of_task = 8;

class SelectiveReduction : public CallWithStandIns {
 public:
  using CallWithStandIns::CallWithStandIns;
  void reduce() {
    const std::size_t results = layout().results();
    if (results == 0) return;
    if (finds_extremum() && !elements_.where) return skip_in_place();
    const std::size_t elements = elements_of_all(), longest = layout().offsets ? 0 : layout().n;
    if (can_stay() && (are_rows() ? longest <= packed_at_a_time : are_columns()))
      return reduce_in_place(elements);
    if (longest > packed_at_a_time) {
      for (std::size_t r = 0; r < results; ++r) reduce_long(r);
      return;
    }
    const std::size_t step = std::max<std::size_t>(
                          1, packed_at_a_time * results / std::max<std::size_t>(1, elements)),
                      blocks = (results + step - 1) / step;
    for_each_task(thread_count(call_.options.threads, elements, blocks), blocks, [&](std::size_t b) {
      const std::size_t first = b * step, count = std::min(step, results - first);
      std::size_t most = 0;
      for (std::size_t r = first; r < first + count; ++r) most += elements_of(r).n;
      reduce_results(first, count, most, blocks == 1 ? call_.options.threads : 1);
    });
  }

 private:
  const PartialForm* form() const { return Code::of(method()).partial_form; }
  /// Number of elements of all results.
  std::size_t elements_of_all() const {
    if (!layout().offsets) return layout().n * layout().results();
    return layout().offsets[layout().outer] - layout().offsets[0];
  }

  bool are_rows() const { return !layout().offsets && layout().inner == 1 && layout().stride == 1; }
  /// Whether there are blocks of neighbouring columns that are not too long.
  bool are_columns() const {
    return layout().inner >= least_columns && layout().n <= packed_at_a_time / least_columns;
  }
  static constexpr std::size_t least_columns = 8, least_counted = 64;

  /// Finds extrema by loops that skip NaN.
  void skip_in_place() {
    Call all = call_;
    all.options.skip_nan = true;
    HostRun run{all};
    Code::of(method()).backend->run(run);
  }

  /// Reduces blocks of rows, or of neighbouring columns, in which something stands in for elements that take
  /// no part.
  void reduce_in_place(std::size_t elements) {
    const Layout& l = layout();
    const bool rows = are_rows();
    const std::size_t along = rows ? l.outer : l.inner,
                      step = std::min(
                          along, std::max<std::size_t>(rows ? 1 : least_columns,
                                                       packed_at_a_time / std::max<std::size_t>(1, l.n))),
                      blocks = (along + step - 1) / step, all = rows ? blocks : blocks * l.outer;
    for_each_task(thread_count(call_.options.threads, elements, all), all, [&](std::size_t b) {
      const std::size_t first = b % blocks * step;
      reduce_block(rows ? 0 : b / blocks, first, std::min(step, along - first),
                   all == 1 ? call_.options.threads : 1);
    });
  }
  /// Reduces a block of rows, or of columns of matrix o.
  void reduce_block(std::size_t o, std::size_t first, std::size_t count, int threads) {
    const Layout& l = layout();
    const bool rows = are_rows(), is_mean = adds_elements() && adds_elements()->mean;
    const std::size_t r = o * l.inner + first;
    const std::unique_ptr<std::byte[]> room = room_for(l.n * count * elements_.bytes());
    std::vector<std::size_t> counts;  // not of short rows, which are kept as one
    if (!rows)
      keep(l.first(o) + first, l.stride, l.n, count, room.get(), &counts);
    else if (is_mean || l.n >= least_counted)
      for (std::size_t k = 0; k < count; ++k)
        counts.push_back(keep(l.first(first + k), 0, 1, l.n, room.get() + k * l.n * elements_.bytes()));
    else if (l.outer_stride == l.n)
      keep(l.first(first), 0, 1, count * l.n, room.get());
    else
      keep(l.first(first), l.outer_stride, count, l.n, room.get());
    // With +0 in it, the sum of a result without elements is +0.
    for (std::size_t k = 0; adds_elements() && k < counts.size(); ++k)
      if (counts[k] == 0 && l.n > 0)
        std::memset(room.get() + k * (rows ? l.n : 1) * elements_.bytes(), 0, elements_.bytes());
    if (is_mean) return find_means(r, count, room.get(), counts);
    Call part = call_;
    part.x = {*call_.x.format, room.get(), l.n * count};
    part.layout = rows ? Layout::rows(count, l.n) : Layout::axis(1, l.n, count);
    part.out = result(r, count);
    run_packed(part, threads);
    for (std::size_t k = 0; k < count; ++k)
      if (method().returns_index)
        check_index(r + k);
      else if (adds_elements() && counts.empty())
        clear_if_empty(r + k);
  }
  /// Writes the means of a block, from number r on. Those that words do not tell are found from packed
  /// elements.
  void find_means(std::size_t r, std::size_t count, const std::byte* block,
                  const std::vector<std::size_t>& counts) {
    constexpr std::size_t at_once = 64;
    const std::size_t n = layout().n;
    ExactSums sums[at_once];
    for (std::size_t k = 0; k < count; k += at_once) {
      const std::size_t some = n == 0 ? 0 : std::min(at_once, count - k);
      with_format(*call_.x.format, [&]<class T>() {
        const T* const x = reinterpret_cast<const T*>(block) + k * (are_rows() ? n : 1);
        if (some > 0)
          sum_exactly<T>(*adds_elements(), are_rows(), x, nullptr, some, n, are_rows() ? n : count, sums);
      });
      with_format(*call_.out.format, [&]<class F>() {
        for (std::size_t i = 0; i < std::min(at_once, count - k); ++i) {
          const std::size_t at = r + k + i, taking = counts[k + i];
          if (taking == 0 || !round_sum(sums[i], taking, true, *static_cast<F*>(result(at).data)))
            reduce_results(at, 1, n, 1);
        }
      });
    }
  }
  /// Replaces the sum -0 of no elements by +0.
  void clear_if_empty(std::size_t r) const {
    with_format(*call_.out.format, [&]<class F>() {
      F& sum = *static_cast<F*>(result(r).data);
      if (to_bits(sum) == Format<F>::sign_bit && !any_takes(elements_of(r))) sum = from_bits<F>(0);
    });
  }
  /// Finds an index again if it is that of an element which stands in for others.
  void check_index(std::size_t r) {
    const std::int64_t index = *static_cast<const std::int64_t*>(result(r).data);
    const Stretch all = elements_of(r);
    if (index >= 0 && !any_takes({all.first + static_cast<std::size_t>(index) * all.stride, 1}))
      reduce_in_parallel(r, false);
  }

  /// Reduces `count` results from number `first` on, which have `most` elements, as segments.
  void reduce_results(std::size_t first, std::size_t count, std::size_t most, int threads) {
    PackedElements packed{elements_, most};
    std::vector<std::uint64_t> offsets(count + 1);
    for (std::size_t r = 0; r < count; ++r) {
      packed.append(elements_of(first + r));
      offsets[r + 1] = packed.size();
    }
    Call part = call_;
    part.x = packed.x();
    part.y = packed.y();
    part.layout = count == 1 ? Layout::vector(packed.size()) : Layout::segments(offsets.data(), count);
    part.out = result(first, count);
    run_packed(part, threads);
    for (std::size_t r = first; r < first + count; ++r) restore_index(r);
  }

  /// Reduces one long result.
  void reduce_long(std::size_t r) {
    const Stretch all = elements_of(r);
    if (!form() || (method().takes_grid && !call_.options.grid))
      return reduce_results(r, 1, all.n, call_.options.threads);
    if (const ExactKind* const adds = adds_elements(); adds && all.stride == 1) return sum_in_place(r, *adds);
    const bool stays =
        method().accumulator == "exact" && !call_.y.is_given();  // to an exact sum, -0 adds nothing
    if (form()->leaf == 0)
      return reduce_in_parallel(r, elements_of(r).stride == 1 && (stays || finds_extremum()));
    Partial partial{method(), 0, call_.options.grid};
    PackedElements packed{elements_, packed_at_a_time};
    for (std::size_t k = 0; k < all.n; k += packed_at_a_time) {
      packed.clear();
      packed.append({all.first + k * all.stride, std::min(packed_at_a_time, all.n - k), all.stride});
      partial.add(packed.x(), packed.y(), call_.options);
    }
    partial.finish(result(r), call_.options);
  }

  /// Sums the elements of one result exactly, or finds their mean.
  void sum_in_place(std::size_t r, ExactKind kind) {
    const Stretch all = elements_of(r);
    const Values x{*call_.x.format,
                   static_cast<const std::byte*>(call_.x.data) + all.first * elements_.bytes(), all.n};
    SelectedSum sum = sum_selected(x, elements_.where ? elements_.where + all.first : nullptr,
                                   elements_.skip_nan, call_.options.threads);
    ExactBatchState state;
    state.terms.sum = sum.sum;
    state.finish(kind, *method().format, sum.count, 0, 0, result(r).data);
  }

  /// The state of a part of a result, and its number of elements.
  struct State {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t count = 0;
  };

  /// Takes the next elements into a state of a method whose order is free.
  void add(State& state, const Values& x, const Values& y, std::size_t count) {
    if (count == 0) return;
    Call part = call_;
    part.x = x;
    part.y = y;
    part.layout = Layout::vector(x.size);
    part.options.threads = 1;
    std::unique_ptr<std::byte[]> room = room_for(form()->state_bytes);
    part.out = {nullptr, room.get(), 0};
    HostRun run{part, true};
    Code::of(method()).backend->run(run);
    merge(state, {std::move(room), count});
  }
  /// Appends a state of later elements.
  void merge(State& state, State next) {
    if (next.count == 0) return;
    if (form()->move_index) form()->move_index(next.bytes.get(), state.count);
    if (state.count == 0)
      state.bytes = std::move(next.bytes);
    else
      form()->merge(state.bytes.get(), next.bytes.get());
    state.count += next.count;
  }

  /// Reduces one result by a method whose order is free. If `stay`, its elements are contiguous and do not
  /// move.
  void reduce_in_parallel(std::size_t r, bool stay) {
    const Stretch all = elements_of(r);
    constexpr std::size_t task = packed_at_a_time * portions_of_task;
    std::vector<State> states((all.n + task - 1) / task);
    for_each_task(
        thread_count(call_.options.threads, all.n, states.size()), states.size(), [&](std::size_t t) {
          PackedElements packed{elements_, packed_at_a_time};
          const std::size_t end = std::min(all.n, (t + 1) * task);
          for (std::size_t k = t * task; k < end; k += packed_at_a_time) {
            const Stretch part{all.first + k * all.stride, std::min(packed_at_a_time, end - k), all.stride};
            if (stay) {
              const std::size_t count = keep(part.first, 0, 1, part.n, packed.data());
              // An index counts what stands in for others, too.
              add(states[t], {*call_.x.format, packed.data(), part.n}, {}, finds_extremum() ? part.n : count);
            } else {
              packed.clear();
              packed.append(part);
              add(states[t], packed.x(), packed.y(), packed.size());
            }
          }
        });
    State whole;
    for (State& state : states) merge(whole, std::move(state));
    if (whole.count > 0 && form()->overflows && form()->overflows(whole.bytes.get(), whole.count))
      overflowed_ = true;
    form()->finish({call_.options.ddof, call_.options.grid.value_or(0)},
                   whole.count > 0 ? whole.bytes.get() : nullptr, whole.count, result(r).data);
    if (!stay)
      restore_index(r);
    else if (method().returns_index)
      check_index(r);
  }

  /// Replaces the index of a packed element by its place in x.
  void restore_index(std::size_t r) {
    if (!method().returns_index) return;
    std::int64_t& index = *static_cast<std::int64_t*>(result(r).data);
    if (index >= 0)
      index = static_cast<std::int64_t>(elements_.place_of(static_cast<std::size_t>(index), elements_of(r)));
  }
};

}  // namespace

bool reduce_selected(const Call& call) {
  SelectiveReduction reduction{call};
  reduction.reduce();
  return reduction.overflowed();
}

}  // namespace samesum::cpu
