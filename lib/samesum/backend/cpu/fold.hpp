/// Reductions of any kind on a CPU: leaves of a fold, and who computes which of them when. None of it can
/// change the bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "samesum/backend/cpu/tasks.hpp"
#include "samesum/operation/layout.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::cpu {

/// The state of a leaf of n >= 1 elements: the merges of its literal reading (read_leaf), row by row.
template <class Shape, class Fold, class At>
typename Fold::State fold_leaf(const Fold& fold, std::size_t n, At at) {
  using State = typename Fold::State;
  constexpr std::size_t lanes = Shape::lanes, levels = Shape::in_turn ? 1 : ceil_log2(Shape::rows) + 1;
  // Waiting at level i: the merge of the 2^i rows before, where bit i of the number of rows is set.
  std::array<std::array<State, lanes>, levels> waiting;
  const std::size_t rows = (n - 1) / lanes + 1;
  const auto members = [&](std::size_t row) { return std::min(n - row * lanes, lanes); };
  std::array<State, lanes>& lane = waiting[0];
  if constexpr (Shape::in_turn) {
    for (std::size_t l = 0; l < members(0); ++l) lane[l] = fold.start(fold.item(at(l)));
    for (std::size_t r = 1; r < rows; ++r)
      for (std::size_t l = 0; l < members(r); ++l) fold.add(lane[l], fold.item(at(r * lanes + l)), r);
  } else {
    const auto merge = [&](std::size_t level, std::size_t first_row, const std::array<State, lanes>& right) {
      for (std::size_t l = 0; l < members(first_row); ++l) fold.merge(waiting[level][l], right[l]);
    };
    std::array<State, lanes> sum{};  // g++ does not see that it is written before it is read
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t l = 0; l < members(r); ++l) sum[l] = fold.start(fold.item(at(r * lanes + l)));
      std::size_t level = 0;
      for (; r >> level & 1; ++level) {
        merge(level, r + 1 - (std::size_t{1} << level), sum);
        std::copy_n(waiting[level].begin(), lanes, sum.begin());
      }
      waiting[level] = sum;
    }
    std::size_t level = 0, first_row = rows;
    while (!(rows >> level & 1)) ++level;
    sum = waiting[level];
    first_row -= std::size_t{1} << level;
    while (rows >> ++level)
      if (rows >> level & 1) {
        merge(level, first_row, sum);
        sum = waiting[level];
        first_row -= std::size_t{1} << level;
      }
    lane = sum;
  }
  std::size_t count = std::min(n, lanes);
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l + half < count && l < half; ++l) fold.merge(lane[l], lane[l + half]);
    count = std::min(count, half);
  }
  return lane[0];
}

/// Stride doubling, as merge_by_stride_doubling.
template <class Fold, class State> State fold_by_stride_doubling(const Fold& fold, std::span<State> states) {
  for (std::size_t stride = 1; stride < states.size(); stride *= 2)
    for (std::size_t k = 0; k + stride < states.size(); k += 2 * stride)
      fold.merge(states[k], states[k + stride]);
  return states.front();
}

/// Copies n elements of each of `width` neighbouring columns to where they lie one after the other.
inline void copy_columns(const std::byte* from, std::size_t bytes, std::size_t stride, std::size_t n,
                         std::size_t width, std::byte* to) {
  const auto copy = [&]<class Word>(const Word* source, Word* out) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; ++c) out[c * n + i] = source[i * stride + c];
  };
  if (bytes == 2)
    copy(reinterpret_cast<const std::uint16_t*>(from), reinterpret_cast<std::uint16_t*>(to));
  else if (bytes == 4)
    copy(reinterpret_cast<const std::uint32_t*>(from), reinterpret_cast<std::uint32_t*>(to));
  else
    copy(reinterpret_cast<const std::uint64_t*>(from), reinterpret_cast<std::uint64_t*>(to));
}

/// A batch of reductions over elements of so many bytes.
struct Batch {
  const std::byte *x, *y;
  std::size_t bytes;
  const Layout& layout;
  int threads;
};

/// Neighbouring leaves: writes the states of up to `group` of them, of n >= 1 elements in all that lie one
/// after the other. `index` is that of the first element in its reduction.
template <class State>
using FoldLeaves =
    std::function<void(const void* x, const void* y, std::uint64_t index, std::size_t n, State* out)>;

/// Rows of at most a leaf: writes the states of `count` of them, of n >= 1 elements, `pitch` elements apart.
template <class State>
using FoldRows =
    std::function<void(const void* x, std::size_t pitch, std::size_t n, std::size_t count, State* out)>;

/// All results of a batch, each finished into `out`; of nothing, from a fresh state. `rows` may be empty.
template <class Shape, class Fold>
void reduce_batch(const Fold& fold, const Batch& batch, const FoldLeaves<typename Fold::State>& leaves,
                  const FoldRows<typename Fold::State>& rows, void* out) {
  using State = typename Fold::State;
  const Layout& l = batch.layout;
  if (l.results() == 0) return;
  if (rows && !l.offsets && l.inner == 1 && l.stride == 1 && l.n > 0 && l.n <= Shape::leaf) {
    const std::size_t each = std::max<std::size_t>(group * 4096 / l.n, 1), tasks = (l.outer - 1) / each + 1;
    return for_each_task(thread_count(batch.threads, l.outer * l.n, tasks), tasks, [&](std::size_t task) {
      constexpr std::size_t at_once = 64;
      State states[at_once];
      const std::size_t end = std::min(l.outer, (task + 1) * each);
      for (std::size_t o = task * each; o < end; o += at_once) {
        const std::size_t count = std::min(end - o, at_once);
        rows(batch.x + l.first(o) * batch.bytes, l.outer_stride, l.n, count, states);
        for (std::size_t k = 0; k < count; ++k) fold.finish(states[k], l.n, o + k, out);
      }
    });
  }
  // Units of work: an aligned group of leaves of one result, or a leaf of some neighbouring columns.
  const bool columns = !l.offsets && l.stride != 1;
  constexpr std::size_t tile = 16;
  const std::size_t per_unit = columns ? 1 : group;
  const std::size_t across = columns ? (l.inner - 1) / tile + 1 : l.inner;
  const auto units_of = [&](std::size_t n) {
    return (std::max<std::size_t>(Shape::leaves(n), 1) - 1) / per_unit + 1;
  };
  std::vector<std::size_t> first_unit;  // of each segment
  std::size_t elements = l.results() * l.n;
  if (l.offsets) {
    first_unit.resize(l.outer + 1);
    for (std::size_t o = 0; o < l.outer; ++o) first_unit[o + 1] = first_unit[o] + units_of(l.length(o));
    elements = static_cast<std::size_t>(l.offsets[l.outer] - l.offsets[0]);
  }
  const std::size_t each = units_of(l.n), units = l.offsets ? first_unit.back() : l.outer * across * each;
  const auto first_of = [&](std::size_t at) { return l.offsets ? first_unit[at] : at * each; };
  const auto length_of = [&](std::size_t at) { return l.length(at / l.inner); };
  // What waits for the other units of its result.
  const bool wait = l.offsets ? units > l.outer : each > 1;
  std::vector<State> waiting(!wait ? 0 : l.offsets ? units : l.results() * each);
  const auto done = [&](const State& state, std::size_t at, std::size_t k) {
    if (units_of(length_of(at)) == 1)
      fold.finish(state, length_of(at), at, out);
    else
      waiting[first_of(at) + k] = state;
  };

  const auto columns_unit = [&](std::size_t u) {
    const std::size_t k = u % each, first_column = u / each % across * tile, o = u / each / across;
    const std::size_t first = k * Shape::leaf, n = std::min(l.n - first, Shape::leaf);
    const std::size_t width = std::min(tile, l.inner - first_column);
    const std::size_t place = (l.first(o) + first * l.stride + first_column) * batch.bytes,
                      column = n * batch.bytes;
    std::vector<std::byte> of_x(tile * column), of_y(batch.y ? tile * column : 0);
    copy_columns(batch.x + place, batch.bytes, l.stride, n, width, of_x.data());
    if (batch.y) copy_columns(batch.y + place, batch.bytes, l.stride, n, width, of_y.data());
    for (std::size_t c = 0; c < width; ++c) {
      State state;
      if (n > 0)
        leaves(of_x.data() + c * column, batch.y ? of_y.data() + c * column : nullptr, first, n, &state);
      done(state, o * l.inner + first_column + c, k);
    }
  };
  const auto rows_unit = [&](std::size_t u) {
    const auto after = [&] {
      return static_cast<std::size_t>(std::ranges::upper_bound(first_unit, u) - first_unit.begin());
    };
    const std::size_t at = l.offsets ? after() - 1 : u / each, k = u - first_of(at);
    const std::size_t first = k * group * Shape::leaf,
                      n = std::min(length_of(at) - first, group * Shape::leaf);
    const std::size_t place = (l.first(at / l.inner) + at % l.inner + first) * batch.bytes;
    State states[group];
    if (n > 0) {
      leaves(batch.x + place, batch.y ? batch.y + place : nullptr, first, n, states);
      fold_by_stride_doubling(fold, std::span{states}.first(Shape::leaves(n)));
    }
    done(states[0], at, k);
  };
  // A task is enough units to be worth a turn.
  const std::size_t per_task =
      std::max<std::size_t>(1, units / std::max<std::size_t>(elements / (group * 4096), 1));
  const std::size_t tasks = (units - 1) / per_task + 1;
  for_each_task(thread_count(batch.threads, elements, tasks), tasks, [&](std::size_t task) {
    for (std::size_t u = task * per_task; u < std::min(units, (task + 1) * per_task); ++u)
      columns ? columns_unit(u) : rows_unit(u);
  });
  for (std::size_t at = 0; wait && at < l.results(); ++at)
    if (const std::size_t count = units_of(length_of(at)); count > 1)
      fold.finish(fold_by_stride_doubling(fold, std::span{waiting}.subspan(first_of(at), count)),
                  length_of(at), at, out);
}

}  // namespace samesum::cpu
