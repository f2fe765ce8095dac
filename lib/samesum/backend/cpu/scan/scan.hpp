/// Scans on a CPU, and reductions in the order prefix. A column is a vector whose prefixes are visited tile
/// by tile. The schedule of columns and tiles cannot change the bits.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/schedule/batch.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum::cpu {

/// Elements that a column takes at a time: a tile of the order prefix.
inline constexpr std::size_t tile = PrefixTree::leaf;
/// Elements per task of a long column: an aligned group of tiles.
inline constexpr std::size_t part = group * tile;

/// The state of n >= 1 items of a tile in the order prefix. item(i) returns item i.
template <class Reducer, class ItemAt>
typename Reducer::State tile_state(const Reducer& reducer, std::size_t n, ItemAt item) {
  using State = typename Reducer::State;
  constexpr std::size_t run = PrefixTree::run, row = PrefixTree::lanes;
  const auto state_of_run = [&](std::size_t first, std::size_t count) {
    State state = reducer.start(item(first));
    for (std::size_t j = 1; j < count; ++j) reducer.add(state, item(first + j), j);
    return state;
  };
  const auto state_of_runs = [&](std::size_t first, std::size_t count) {
    State runs[PrefixTree::runs];
    for (std::size_t k = 0; k < count; ++k) runs[k] = state_of_run(first + k * run, run);
    return reduce_by_stride_doubling(reducer, std::span<State>{runs}.first(count));
  };
  const std::size_t whole_rows = n / row, whole_runs = n % row / run, rest = n % run;
  // The whole rows, then the whole runs of the last row, then its last elements.
  State rows[PrefixTree::rows_of_tile], part[3];
  std::size_t parts = 0;
  for (std::size_t r = 0; r < whole_rows; ++r) rows[r] = state_of_runs(r * row, PrefixTree::runs);
  if (whole_rows > 0)
    part[parts++] = reduce_by_stride_doubling(reducer, std::span<State>{rows}.first(whole_rows));
  if (whole_runs > 0) part[parts++] = state_of_runs(whole_rows * row, whole_runs);
  if (rest > 0) part[parts++] = state_of_run(n - rest, rest);
  for (; parts > 1; --parts) reducer.merge(part[parts - 2], part[parts - 1]);
  return part[0];
}

/// How columns read their elements and write their results.
template <class Reducer> struct ColumnSetup {
  Reducer reducer;
  WriteTerms read;           ///< rounds elements to the format, as numbers of the carrier
  bool is_direct;            ///< whether the elements are such numbers already
  ScanTile scan;             ///< null if the reducer has no such loop
  ScanColumns scan_columns;  ///< null likewise
  bool exclusive;
};

/// Base of columns with a reducer: rounds the elements of a tile, and writes the results of an exclusive
/// scan.
template <class Reducer> class ReducedColumn {
 public:
  using F = typename Reducer::Format;
  using State = typename Reducer::State;
  using Setup = ColumnSetup<Reducer>;
  using Numbers = CarrierOf<F>[tile];  ///< the elements of a tile

  /// The state of all elements so far; a fresh state if there are none.
  const State& state() const { return state_; }

 protected:
  explicit ReducedColumn(const Setup& setup) : setup_{&setup} {}

  /// The n elements as numbers of the carrier, in `place` unless they are such numbers already: a copy of a
  /// tile would not leave enough of the cache to elements and results.
  const CarrierOf<F>* read(const std::byte* x, std::size_t n, Numbers& place) const {
    if (setup_->is_direct) return reinterpret_cast<const CarrierOf<F>*>(x);
    setup_->read(Term::element, x, nullptr, n, place, nullptr);
    return place;
  }
  auto item(const CarrierOf<F>* numbers, std::size_t i) const {
    return setup_->reducer.item(
        InputElement<F>{{numbers[i]}, Scalar<F>::zero(), 0, static_cast<std::uint32_t>(i)});
  }
  /// Calls visit(results) with the array for the results of n elements, which may be that of the elements. A
  /// result of an exclusive scan takes the place of the next element.
  template <class Visit> void write(F* out, std::size_t n, Visit visit) {
    if (!setup_->exclusive) return visit(out);
    F result[tile + 1];
    setup_->reducer.finish(state_, count_, 0, result);
    visit(result + 1);
    std::copy_n(result, n, out);
  }
  void finish(const State& state, std::size_t i, F* out) const {
    setup_->reducer.finish(state, count_ + i + 1, i, out);
  }

  const Setup* setup_;
  State state_{};
  std::size_t count_ = 0;  ///< elements before the tile
};

/// A column in the order prefix.
template <class Reducer> class PrefixColumn : public ReducedColumn<Reducer> {
  using Base = ReducedColumn<Reducer>;

 public:
  using typename Base::F, typename Base::State, typename Base::Setup, typename Base::Numbers;
  explicit PrefixColumn(const Setup& setup) : Base{setup}, groups_{setup.reducer} {}

  void restart() {
    groups_.restart();
    this->state_ = {};
    this->count_ = 0;
  }
  /// Restarts at element `count`, a multiple of `part`, after elements with the state `before`.
  void restart(const State& before, std::size_t count) {
    groups_.restart(before);
    this->state_ = before;
    this->count_ = count;
  }
  /// Takes the next tile; all but the last one are whole. Writes the results unless `out` is null. `end` is
  /// the state after a tile that ends a part; null if the column began at element 0.
  void take(const std::byte* x, std::size_t n, F* out, const State* end = nullptr) {
    Numbers place;
    const CarrierOf<F>* const numbers = this->read(x, n, place);
    const auto item = [&](std::size_t i) { return this->item(numbers, i); };
    if (out)
      this->write(out, n, [&](F* results) { this->state_ = scan(numbers, n, results, end); });
    else
      this->state_ = after(n, tile_state(this->setup_->reducer, n, item), end);
    this->count_ += n;
  }

 private:
  /// The state of all elements, after the next n, whose state is `last`.
  State after(std::size_t n, const State& last, const State* end) {
    if (n < tile) return groups_.after(last);
    groups_.push(last);
    return end ? *end : groups_.carry();
  }
  State scan(const CarrierOf<F>* numbers, std::size_t n, F* results, const State* end) {
    State last;
    if (this->setup_->scan)
      this->setup_->scan(numbers, n, groups_.any() ? &groups_.carry() : nullptr, results, &last);
    else
      last = walk(numbers, n, results);
    const State all = after(n, last, end);
    this->finish(all, n - 1, results);
    return all;
  }
  /// Writes all results but the last, and returns the state of the tile.
  State walk(const CarrierOf<F>* numbers, std::size_t n, F* results) {
    TileWalker<Reducer> walker{this->setup_->reducer};
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const State& prefix = walker.push(this->item(numbers, i));
      this->finish(groups_.after(prefix), i, results);
    }
    return walker.push(this->item(numbers, n - 1));
  }

  TileGroups<Reducer> groups_;
};

/// A column in the order serial.
template <class Reducer> class SerialColumn : public ReducedColumn<Reducer> {
  using Base = ReducedColumn<Reducer>;

 public:
  using typename Base::F, typename Base::State, typename Base::Setup, typename Base::Numbers;
  explicit SerialColumn(const Setup& setup) : Base{setup} {}

  void restart() {
    this->state_ = {};
    this->count_ = 0;
  }
  void take(const std::byte* x, std::size_t n, F* out) {
    Numbers place;
    const CarrierOf<F>* const numbers = this->read(x, n, place);
    this->write(out, n, [&](F* results) {
      SerialWalker<Reducer> walker{this->setup_->reducer, this->state_, this->count_};
      for (std::size_t i = 0; i < n; ++i) this->finish(walker.push(this->item(numbers, i)), i, results);
      this->state_ = walker.state();
    });
    this->count_ += n;
  }
};

/// The vectors of a call, and where the results of scans are written.
template <class F> struct ColumnsOfCall {
  const Call& call;
  const Layout& layout = call.layout;
  std::size_t bytes = call.x.format->bytes;

  bool are_contiguous() const { return layout.offsets || (layout.inner == 1 && layout.stride == 1); }
  std::size_t elements() const {
    return layout.offsets ? static_cast<std::size_t>(layout.offsets[layout.outer] - layout.offsets[0])
                          : layout.results() * layout.n;
  }
  /// Element k of column (o, i).
  const std::byte* element(std::size_t o, std::size_t k, std::size_t i) const {
    return static_cast<const std::byte*>(call.x.data) + (layout.first(o) + k * layout.stride + i) * bytes;
  }
  F* result(std::size_t o, std::size_t k, std::size_t i) const {
    return static_cast<F*>(call.out.data) + o * call.out.row_stride + k * layout.inner + i;
  }
};

/// How the columns of a call, of which there are some, are cut into strips of at most `width` neighbours, and
/// the strips are shared among tasks.
class Strips {
 public:
  template <class F>
  Strips(const ColumnsOfCall<F>& all, std::size_t width)
      : width_{width},
        inner_{all.layout.inner},
        across_{(inner_ - 1) / width + 1},
        count_{all.layout.outer * across_},
        per_task_{std::max<std::size_t>(1, count_ / std::max<std::size_t>(all.elements() / part, 1))} {}

  std::size_t tasks() const { return (count_ - 1) / per_task_ + 1; }
  /// Calls visit(o, i, count) for each strip of a task: the `count` columns from (o, i) on.
  template <class Visit> void for_each(std::size_t task, Visit visit) const {
    for (std::size_t strip = task * per_task_; strip < std::min(count_, (task + 1) * per_task_); ++strip) {
      const std::size_t i = strip % across_ * width_;
      visit(strip / across_, i, std::min(width_, inner_ - i));
    }
  }

 private:
  std::size_t width_, inner_, across_, count_, per_task_;
};

/// Writes n results of each of `count` neighbouring columns, which are `pitch` apart, to rows that are
/// `stride` apart. Not inlined: what is inlined beside it would change its code.
template <class F>
[[gnu::noinline]] void write_columns(const F* results, std::size_t pitch, std::size_t n, std::size_t count,
                                     std::size_t stride, F* out) {
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t c = 0; c < count; ++c) out[r * stride + c] = results[c * pitch + r];
}

/// Passes all columns of a call through copies of the column `fresh`. If `writes`, they write their results;
/// else done(column, n, at) receives column `at` with its n elements.
template <class F, class Column, class Done>
void pass_columns(const ColumnsOfCall<F>& all, const Column& fresh, bool writes, Done done) {
  const Layout& l = all.layout;
  if (l.results() == 0) return;
  // A strip of neighbouring columns uses whole cache lines.
  const std::size_t width = all.are_contiguous() ? 1 : std::min<std::size_t>(32, l.inner),
                    pitch = column_pitch(std::min(l.n, tile), sizeof(F));
  const Strips strips{all, width};
  const std::size_t tasks = strips.tasks();
  for_each_task(thread_count(all.call.options.threads, all.elements(), tasks), tasks, [&](std::size_t task) {
    Column first = fresh;  // most calls have no others, and then need no allocation
    std::vector<Column> others(width - 1, fresh);
    const auto column = [&](std::size_t c) -> Column& { return c == 0 ? first : others[c - 1]; };
    const std::size_t gathers = all.are_contiguous() ? 0 : width * pitch;
    std::vector<std::byte> gathered(gathers * all.bytes);
    std::vector<F> results(writes ? gathers : 0);
    strips.for_each(task, [&](std::size_t o, std::size_t i, std::size_t count) {
      const std::size_t n = l.length(o);
      for (std::size_t c = 0; c < count; ++c) {
        if constexpr (requires { first.restart(o); })
          column(c).restart(o * l.inner + i + c);
        else
          column(c).restart();
      }
      for (std::size_t k = 0; k < n; k += tile) {
        const std::size_t mine = std::min(n - k, tile);
        if (all.are_contiguous()) {
          first.take(all.element(o, k, i), mine, writes ? all.result(o, k, i) : nullptr);
          continue;
        }
        copy_columns(all.element(o, k, i), all.bytes, l.stride, mine, count, gathered.data(), pitch);
        for (std::size_t c = 0; c < count; ++c)
          column(c).take(gathered.data() + c * pitch * all.bytes, mine,
                         writes ? results.data() + c * pitch : nullptr);
        if (writes) write_columns(results.data(), pitch, mine, count, l.inner, all.result(o, k, i));
      }
      for (std::size_t c = 0; c < count; ++c) done(column(c), n, o * l.inner + i + c);
    });
  });
}

/// Scans neighbouring columns in the order prefix.
template <class Reducer>
void scan_columns(const ColumnsOfCall<typename Reducer::Format>& all, const ColumnSetup<Reducer>& setup) {
  using F = typename Reducer::Format;
  using State = typename Reducer::State;
  const Layout& l = all.layout;
  if (l.results() == 0 || l.n == 0) return;
  // Strips are parts of rows of whole cache lines and pages, whose states stay in the second-level cache.
  constexpr std::size_t alignment = 64, line = alignment / sizeof(F), most = 16384 / sizeof(F);
  const int threads = thread_count(all.call.options.threads, all.elements(), l.results());
  const std::size_t each = (l.inner - 1) / static_cast<std::size_t>(threads) + 1,
                    shared = l.outer < static_cast<std::size_t>(threads) ? (each - 1) / line * line + line
                                                                         : l.inner,
                    width = std::min({most, shared, l.inner});
  const Strips strips{all, width};
  const std::size_t tasks = strips.tasks();
  for_each_task(
      static_cast<int>(std::min(static_cast<std::size_t>(threads), tasks)), tasks, [&](std::size_t task) {
        constexpr std::size_t pack = ScannedColumns::pack;
        const std::size_t room = (width - 1) / pack * pack + pack;
        std::vector<std::byte> scratch(ScannedColumns::scratch_states * room * sizeof(State) + alignment);
        std::vector<CarrierOf<F>> numbers(setup.is_direct ? 0 : PrefixTree::run * room);
        std::vector<TileGroups<Reducer>> groups(l.n < tile ? 0 : width, TileGroups<Reducer>{setup.reducer});
        std::vector<State> states(groups.size()), carry(groups.size());
        std::vector<F> exclusive(setup.exclusive ? width : 0);
        void* aligned = scratch.data();
        std::size_t space = scratch.size();
        std::align(alignment, space - alignment, aligned, space);
        strips.for_each(task, [&](std::size_t o, std::size_t i, std::size_t count) {
          for (TileGroups<Reducer>& of_column : groups) of_column.restart();
          for (std::size_t c = 0; c < exclusive.size(); ++c)
            setup.reducer.finish(State{}, 0, c, exclusive.data());
          for (std::size_t k = 0; k < l.n; k += tile) {
            const std::size_t mine = std::min(l.n - k, tile);
            setup.scan_columns({all.element(o, k, i), setup.is_direct ? nullptr : setup.read, all.bytes,
                                l.stride, mine, count, k > 0 ? carry.data() : nullptr, all.result(o, k, i),
                                l.inner, exclusive.empty() ? nullptr : exclusive.data(), aligned,
                                numbers.data(), mine == tile ? states.data() : nullptr});
            for (std::size_t c = 0; mine == tile && c < count; ++c) {
              groups[c].push(states[c]);
              carry[c] = groups[c].carry();
              setup.reducer.finish(carry[c], k + tile, c,
                                   exclusive.empty() ? all.result(o, k + tile - 1, i) : exclusive.data());
            }
          }
        });
      });
}

/// Number of threads for each column, if that is better than one thread per column; else 1.
template <class F> int threads_per_column(const ColumnsOfCall<F>& all) {
  const Layout& l = all.layout;
  if (l.offsets || !all.are_contiguous() || l.n <= part) return 1;
  const int threads =
      thread_count(all.call.options.threads, all.elements(), l.outer * ((l.n - 1) / part + 1));
  return static_cast<std::size_t>(threads) > l.outer ? threads : 1;
}

/// Passes part k of column o through a column that was restarted there.
template <class F, class Column, class... End>
void pass_part(const ColumnsOfCall<F>& all, std::size_t o, std::size_t k, bool writes, Column& column,
               const End*... end) {
  const std::size_t last = std::min(all.layout.n, (k + 1) * part);
  for (std::size_t i = k * part; i < last; i += tile) {
    const std::size_t mine = std::min(last - i, tile);
    F* const out = writes ? all.result(o, i, 0) : nullptr;
    if (i + tile == (k + 1) * part)
      column.take(all.element(o, i, 0), mine, out, end...);
    else
      column.take(all.element(o, i, 0), mine, out);
  }
}

/// Passes column o, of more than one part, through prefix columns on several threads. All parts are read to
/// find their states, and, if `writes`, again to write the results. Returns the state of the column.
template <class Reducer>
typename Reducer::State pass_parts(const ColumnsOfCall<typename Reducer::Format>& all,
                                   const PrefixColumn<Reducer>& fresh, const Reducer& reducer, std::size_t o,
                                   bool writes, int threads) {
  using State = typename Reducer::State;
  const std::size_t n = all.layout.n, whole = n / part, parts = (n - 1) / part + 1;
  std::vector<State> up_to(whole + 1);  // first the state of part k - 1, then of all parts before k
  for_each_task(threads, whole, [&](std::size_t k) {
    PrefixColumn<Reducer> column = fresh;
    column.restart();
    pass_part(all, o, k, false, column);
    up_to[k + 1] = column.state();
  });
  TileGroups<Reducer> groups{reducer};
  for (std::size_t k = 1; k <= whole; ++k) {
    groups.push(up_to[k]);
    up_to[k] = groups.carry();
  }
  State all_of_it = up_to[whole];
  for_each_task(threads, writes ? parts : parts - whole, [&](std::size_t task) {
    const std::size_t k = writes ? task : whole;
    PrefixColumn<Reducer> column = fresh;
    k == 0 ? column.restart() : column.restart(up_to[k], k * part);
    pass_part(all, o, k, writes, column, k < whole ? &up_to[k + 1] : nullptr);
    if (k == whole) all_of_it = column.state();
  });
  return all_of_it;
}

}  // namespace samesum::cpu
