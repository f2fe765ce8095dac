/// Schedules batches of reductions over threads. The schedule cannot change the bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "samesum/backend/cpu/loops/column_leaf.hpp"
#include "samesum/backend/cpu/schedule/reduce_leaf.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/call/layout.hpp"
#include "samesum/format/formats.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum::cpu {

/// Whether elements of that size can be copied from column to column.
constexpr bool has_word(std::size_t bytes) { return bytes == 2 || bytes == 4 || bytes == 8; }
static_assert(std::ranges::all_of(formats, has_word, &FormatInfo::bytes),
              "samesum: copy_columns has no word for the elements of a format; add one");

/// Elements between the copies of neighbouring columns of n elements. Element i of all copies would lie in
/// the same few sets of the cache if that were a power of two.
constexpr std::size_t column_pitch(std::size_t n, std::size_t bytes) { return n + 64 / bytes; }

/// Copies n elements of each of `width` neighbouring columns, so that each column is contiguous. The copies
/// begin `pitch` elements apart (column_pitch).
inline void copy_columns(const std::byte* from, std::size_t bytes, std::size_t stride, std::size_t n,
                         std::size_t width, std::byte* to, std::size_t pitch) {
  const auto copy = [&]<class Word>(const Word* source, Word* out) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; ++c) out[c * pitch + i] = source[i * stride + c];
  };
  if (bytes == 2)
    copy(reinterpret_cast<const std::uint16_t*>(from), reinterpret_cast<std::uint16_t*>(to));
  else if (bytes == 4)
    copy(reinterpret_cast<const std::uint32_t*>(from), reinterpret_cast<std::uint32_t*>(to));
  else
    copy(reinterpret_cast<const std::uint64_t*>(from), reinterpret_cast<std::uint64_t*>(to));
}

/// A batch of reductions over one or two arrays.
struct Batch {
  const std::byte *x, *y;  ///< y is null for one input
  std::size_t bytes;       ///< per element
  const Layout& layout;
  int threads;

  const std::byte* x_at(std::size_t place) const { return x + place * bytes; }
  const std::byte* y_at(std::size_t place) const { return y ? y + place * bytes : nullptr; }
};

/// Writes the states of up to `group` neighbouring leaves with n >= 1 contiguous elements in total. `index`
/// is the index of the first element in its reduction.
template <class State>
using ReduceLeaves =
    std::function<void(const void* x, const void* y, std::uint64_t index, std::size_t n, State* out)>;

/// Writes the states of `count` rows of n elements each, at least one and at most a leaf; the rows are
/// `pitch` elements apart.
template <class State>
using ReduceRows =
    std::function<void(const void* x, std::size_t pitch, std::size_t n, std::size_t count, State* out)>;

/// Writes the states of one leaf of several columns. Without a function, columns are copied one by one.
template <class State> struct ReduceColumns {
  std::function<void(const ColumnLeaf& leaf, void* scratch, State* out)> leaf;
  std::size_t (*scratch)(const ColumnLeaf& leaf) = nullptr;  ///< the size of `scratch` in bytes
};

/// The loops that reduce parts of a batch. Only the first is needed.
template <class State> struct BatchLoops {
  ReduceLeaves<State> leaves;
  ReduceRows<State> rows;
  ReduceColumns<State> columns;
};

/// Reduces rows of at most one leaf, many rows at a time.
template <class Reducer>
void reduce_short_rows(const Reducer& reducer, const Batch& batch,
                       const ReduceRows<typename Reducer::State>& rows, Destination out) {
  const Layout& l = batch.layout;
  const std::size_t each = std::max<std::size_t>(group * 4096 / l.n, 1), tasks = (l.outer - 1) / each + 1;
  for_each_task(thread_count(batch.threads, l.outer * l.n, tasks), tasks, [&](std::size_t task) {
    constexpr std::size_t at_once = 64;
    typename Reducer::State states[at_once];
    const std::size_t end = std::min(l.outer, (task + 1) * each);
    for (std::size_t o = task * each; o < end; o += at_once) {
      const std::size_t count = std::min(end - o, at_once);
      rows(batch.x_at(l.first(o)), l.outer_stride, l.n, count, states);
      for (std::size_t k = 0; k < count; ++k) out.write(reducer, states[k], l.n, o + k);
    }
  });
}

/// Cuts a batch into units of work: an aligned group of leaves of one result, or one leaf of each of several
/// neighbouring columns. The states of a result with several units are merged when all units are done.
template <class Shape, class Reducer> class BatchSchedule {
 public:
  using State = typename Reducer::State;

  BatchSchedule(const Reducer& reducer, const Batch& batch, const BatchLoops<State>& loops, Destination out)
      : reducer_{reducer}, batch_{batch}, layout_{batch.layout}, loops_{loops}, out_{out} {
    const Layout& l = layout_;
    if (l.offsets) {
      first_unit_.resize(l.outer + 1);
      for (std::size_t o = 0; o < l.outer; ++o) first_unit_[o + 1] = first_unit_[o] + units_of(l.length(o));
      units_ = first_unit_.back();
      elements_ = static_cast<std::size_t>(l.offsets[l.outer] - l.offsets[0]);
      if (units_ > l.outer) waiting_.resize(units_);
    } else {
      units_ = l.outer * across_ * each_;
      elements_ = l.results() * l.n;
      if (each_ > 1) waiting_.resize(l.results() * each_);
    }
  }

  void run() {
    // A task holds enough units to outweigh the cost of taking it from the queue.
    const std::size_t per_task =
        std::max<std::size_t>(1, units_ / std::max<std::size_t>(elements_ / (group * 4096), 1));
    const std::size_t tasks = (units_ - 1) / per_task + 1;
    for_each_task(thread_count(batch_.threads, elements_, tasks), tasks, [&](std::size_t task) {
      ColumnScratch scratch;
      for (std::size_t u = task * per_task; u < std::min(units_, (task + 1) * per_task); ++u)
        columns_ ? reduce_columns(u, scratch) : reduce_group(u);
    });
    if (!waiting_.empty()) merge_waiting();
  }

 private:
  /// Room for the columns of a unit, which the units of a task share.
  struct ColumnScratch {
    std::vector<std::byte> x, y;
  };

  std::size_t units_of(std::size_t n) const {
    return (std::max<std::size_t>(Shape::leaves(n), 1) - 1) / (columns_ ? 1 : group) + 1;
  }
  std::size_t first_unit_of(std::size_t at) const { return layout_.offsets ? first_unit_[at] : at * each_; }
  std::size_t length_of(std::size_t at) const { return layout_.length(at / layout_.inner); }
  std::size_t result_of(std::size_t unit) const {
    if (!layout_.offsets) return unit / each_;
    return static_cast<std::size_t>(std::ranges::upper_bound(first_unit_, unit) - first_unit_.begin()) - 1;
  }

  /// Receives the state of unit k of result `at`: finishes a result of one unit, else stores the state.
  void done(const State& state, std::size_t at, std::size_t k) {
    if (units_of(length_of(at)) == 1)
      out_.write(reducer_, state, length_of(at), at);
    else
      waiting_[first_unit_of(at) + k] = state;
  }

  void reduce_columns(std::size_t unit, ColumnScratch& scratch) {
    const Layout& l = layout_;
    const std::size_t k = unit % each_, first_column = unit / each_ % across_ * tile_,
                      o = unit / each_ / across_;
    const std::size_t first = k * Shape::leaf, n = std::min(l.n - first, Shape::leaf);
    const std::size_t width = std::min(tile_, l.inner - first_column);
    const std::size_t place = l.first(o) + first * l.stride + first_column;
    State states[ColumnLeaf::most];
    if (n > 0) {
      const ColumnLeaf leaf{batch_.x_at(place), batch_.y_at(place), l.stride, n, width};
      loops_.columns.leaf&& width >= ColumnLeaf::least ? reduce_side_by_side(leaf, scratch, states)
                                                       : reduce_copied(leaf, first, scratch, states);
    }
    for (std::size_t c = 0; c < width; ++c) done(states[c], o * l.inner + first_column + c, k);
  }
  void reduce_side_by_side(const ColumnLeaf& leaf, ColumnScratch& scratch, State* out) const {
    constexpr std::size_t alignment = 64;
    const std::size_t bytes = loops_.columns.scratch(leaf);
    std::size_t space = bytes + alignment;
    if (scratch.x.size() < space) scratch.x.resize(space);
    void* aligned = scratch.x.data();
    loops_.columns.leaf(leaf, std::align(alignment, bytes, aligned, space), out);
  }
  void reduce_copied(const ColumnLeaf& leaf, std::size_t index, ColumnScratch& scratch, State* out) const {
    const std::size_t pitch = column_pitch(leaf.n, batch_.bytes), column = pitch * batch_.bytes;
    const auto copy = [&](const void* from, std::vector<std::byte>& to) {
      to.resize(leaf.count * column);
      copy_columns(static_cast<const std::byte*>(from), batch_.bytes, leaf.pitch, leaf.n, leaf.count,
                   to.data(), pitch);
    };
    copy(leaf.x, scratch.x);
    if (leaf.y) copy(leaf.y, scratch.y);
    for (std::size_t c = 0; c < leaf.count; ++c)
      loops_.leaves(scratch.x.data() + c * column, leaf.y ? scratch.y.data() + c * column : nullptr, index,
                    leaf.n, out + c);
  }

  void reduce_group(std::size_t unit) {
    const Layout& l = layout_;
    const std::size_t at = result_of(unit), k = unit - first_unit_of(at);
    const std::size_t first = k * group * Shape::leaf,
                      n = std::min(length_of(at) - first, group * Shape::leaf);
    const std::size_t place = l.first(at / l.inner) + at % l.inner + first;
    State states[group];
    if (n > 0) {
      loops_.leaves(batch_.x_at(place), batch_.y_at(place), first, n, states);
      reduce_by_stride_doubling(reducer_, std::span{states}.first(Shape::leaves(n)));
    }
    done(states[0], at, k);
  }

  void merge_waiting() {
    for (std::size_t at = 0; at < layout_.results(); ++at)
      if (const std::size_t count = units_of(length_of(at)); count > 1)
        out_.write(reducer_,
                   reduce_by_stride_doubling(reducer_, std::span{waiting_}.subspan(first_unit_of(at), count)),
                   length_of(at), at);
  }

  const Reducer& reducer_;
  const Batch& batch_;
  const Layout& layout_;
  const BatchLoops<State>& loops_;
  Destination out_;
  const bool columns_ = !layout_.offsets && layout_.stride != 1;
  const std::size_t tile_ =  ///< columns per unit
      loops_.columns.leaf ? std::min(ColumnLeaf::most, ColumnLeaf::row_bytes / batch_.bytes) : 16;
  const std::size_t across_ = columns_ ? (layout_.inner - 1) / tile_ + 1 : layout_.inner;
  const std::size_t each_ = units_of(layout_.n);  ///< units per result, if there are no offsets
  std::vector<std::size_t> first_unit_;           ///< first unit of each segment, and the number of units
  std::size_t units_ = 0, elements_ = 0;
  std::vector<State> waiting_;
};

/// Writes all results of a batch to `out`. A result without elements is finished from a fresh state.
template <class Shape, class Reducer>
void reduce_batch(const Reducer& reducer, const Batch& batch,
                  const BatchLoops<typename Reducer::State>& loops, Destination out) {
  const Layout& l = batch.layout;
  if (l.results() == 0) return;
  if (loops.rows && !l.offsets && l.inner == 1 && l.stride == 1 && l.n > 0 && l.n <= Shape::leaf)
    return reduce_short_rows(reducer, batch, loops.rows, out);
  BatchSchedule<Shape, Reducer>{reducer, batch, loops, out}.run();
}

}  // namespace samesum::cpu
