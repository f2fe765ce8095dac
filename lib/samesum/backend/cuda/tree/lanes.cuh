/// Combines the rows of the lanes of a leaf in one thread, with any reducer.
#pragma once

#include "samesum/format/pack.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::gpu {

/// Combines the rows of `mine` neighbouring lanes of a leaf in one thread, four rows at a time.
template <class Shape, class Reducer, int mine> struct Lanes {
  using State = typename Reducer::State;
  using Item = typename Reducer::Item;
  static constexpr int rows = 4;
  static constexpr int levels = Shape::in_turn ? 0 : static_cast<int>(ceil_log2(Shape::rows / rows));
  static_assert(Shape::rows % rows == 0);

  State sum[mine];  ///< states of all rows so far, if their number is a power of two or they are combined in
                    ///< turn
  State waiting[levels + 1][mine];

  /// Number of calls of `add` for `count` rows. Pairwise row order needs a power of two; surplus calls have
  /// no elements.
  __device__ static int groups(int count) {
    const int needed = (count + rows - 1) / rows;
    return Shape::in_turn ? needed : static_cast<int>(std::bit_ceil(static_cast<unsigned>(needed)));
  }

  /// Adds group g of four rows. have[i] is the number of rows of lane i from this group on: 0 or less if the
  /// group has none.
  template <bool full>
  __device__ __forceinline__ void add(const Reducer& reducer, int g, const Item (&x)[rows][mine],
                                      const int (&have)[mine]) {
#pragma unroll
    for (int i = 0; i < mine; ++i) {
      const auto is_there = [&](int r) { return full || r < have[i]; };
      if constexpr (Shape::in_turn) {
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          if (!is_there(r)) break;
          if (r == 0 && g == 0)
            sum[i] = reducer.start(x[r][i]);
          else
            reducer.add(sum[i], x[r][i], static_cast<std::size_t>(g * rows + r));
        }
      } else {
        State of_row[rows];
#pragma unroll
        for (int r = 0; r < rows; ++r)
          if (is_there(r)) of_row[r] = reducer.start(x[r][i]);
        if (is_there(1)) reducer.merge(of_row[0], of_row[1]);
        if (is_there(3)) reducer.merge(of_row[2], of_row[3]);
        if (is_there(2)) reducer.merge(of_row[0], of_row[2]);
        sum[i] = of_row[0];
        // waiting[level] holds the merge of 2^level groups if bit `level` of the number of groups so far is
        // set. The right operand of a merge is not empty if the first of its groups has elements.
        bool carries = true;
#pragma unroll
        for (int level = 0; level < levels; ++level) {
          if (carries && (g >> level & 1)) {
            if (is_there(-((1 << level) - 1) * rows)) reducer.merge(waiting[level][i], sum[i]);
            sum[i] = waiting[level][i];
          } else if (carries) {
            waiting[level][i] = sum[i];
            carries = false;
          }
        }
      }
    }
  }
};

/// Maps elements to the items that the reducer adds.
template <class Reducer, class Element, int count>
__device__ __forceinline__ void items_of(const Reducer& reducer, const Element (&e)[count],
                                         typename Reducer::Item (&x)[count]) {
  if constexpr (requires { reducer.items(e, x); }) {
    reducer.items(e, x);
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) x[i] = reducer.item(e[i]);
  }
}

}  // namespace samesum::gpu
