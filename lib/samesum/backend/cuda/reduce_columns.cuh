/// Reduces columns: a thread reduces one leaf of one column, so that the loads of a warp are coalesced.
#pragma once

#include "samesum/backend/cuda/warp_reduce.cuh"
#include "samesum/operation/layout.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

/// Reduces lane `lane` < n of a leaf of n elements. The first element of the leaf is at `place` and has the
/// index `base`; elements are `stride` apart.
template <class Shape, class Reducer, class Reader>
__device__ __forceinline__ typename Reducer::State column_lane(const Reducer& reducer, const Reader& reader,
                                                               std::size_t place, std::size_t stride,
                                                               std::uint64_t base, int lane, int n) {
  using One = Lanes<Shape, Reducer, 1>;
  constexpr int lanes = Shape::lanes, rows = 16;  // rows in flight
  One one;
  const int count = (n - lane + lanes - 1) / lanes, groups = One::groups(count);
#pragma unroll 1
  for (int g = 0; g < groups; g += rows / One::rows) {
    const int row = g * One::rows, at = row * lanes + lane;
    typename Reader::Element e[rows];
    typename Reducer::Item x[rows];
    reader.column(place + static_cast<std::size_t>(at) * stride, lanes * stride, count - row, base, at, lanes,
                  e);
    items_of(reducer, e, x);
#pragma unroll
    for (int q = 0; q < rows / One::rows; ++q) {
      if (g + q >= groups) break;
      const int have[1] = {count - row - q * One::rows};
      typename Reducer::Item four[One::rows][1];
      for (int r = 0; r < One::rows; ++r) four[r][0] = x[q * One::rows + r];
      if (have[0] >= One::rows)
        one.template add<true>(reducer, g + q, four, have);
      else
        one.template add<false>(reducer, g + q, four, have);
    }
  }
  return one.sum[0];
}

inline constexpr int column_threads = 128;

/// Reduces columns. A thread reduces one leaf of one column. It visits the lanes in bit-reversed order, so
/// that the halving of lanes becomes stride doubling over the visits, and at most seven states wait.
/// Neighbouring threads read neighbouring elements.
template <class Shape, class Reducer, class Reader>
__global__ void __launch_bounds__(column_threads)
    reduce_columns(Reducer reducer, Reader reader, Layout l, typename Reducer::State* states,
                   Destination out) {
  using State = typename Reducer::State;
  constexpr int lanes = Shape::lanes, levels = static_cast<int>(ceil_log2(Shape::lanes));
  __shared__ alignas(16) unsigned char memory[(levels > 0 ? levels : 1) * column_threads * sizeof(State)];
  State* waiting = reinterpret_cast<State*>(memory) + threadIdx.x;
  const std::size_t across = (l.inner - 1) / column_threads + 1,
                    leaves = max(Shape::leaves(l.n), std::size_t{1});
  const std::size_t i = blockIdx.x % across * column_threads + threadIdx.x;
  const std::size_t k = blockIdx.x / across % leaves, o = blockIdx.x / across / leaves;
  if (i >= l.inner) return;
  const int n = static_cast<int>(min(l.n - k * Shape::leaf, Shape::leaf));
  const std::size_t place = l.first(o) + k * Shape::leaf * l.stride + i;
  const auto lane_of = [](int turn) {
    return levels == 0 ? 0 : static_cast<int>(__brev(static_cast<unsigned>(turn)) >> (32 - levels) % 32);
  };
  State state{};
#pragma unroll 1
  for (int turn = 0; turn < lanes; ++turn) {
    const int lane = lane_of(turn);
    if (lane < n) state = column_lane<Shape>(reducer, reader, place, l.stride, k * Shape::leaf, lane, n);
    int level = 0;
    for (; turn >> level & 1; ++level) {
      State left = waiting[level * column_threads];
      if (lane_of(turn + 1 - (1 << level)) < n)
        reducer.merge(left, state);  // the first lane of the right half has elements
      state = left;
    }
    if (level < levels) waiting[level * column_threads] = state;
  }
  const std::size_t at = o * l.inner + i;
  if (leaves == 1)
    out.write(reducer, state, l.n, at);
  else
    states[at * leaves + k] = state;
}

}  // namespace samesum::gpu
