/// One leaf of a tree by one warp: the same merges as its literal reading, without shared memory or a
/// barrier.
#pragma once

#include "samesum/backend/cuda/pair.cuh"
#include "samesum/backend/cuda/warp.cuh"
#include "samesum/order/tree.hpp"

namespace samesum::gpu {

/// A thread holds `mine` neighbouring lanes (or two runs of them): its part of a row is one vector load (or
/// two).
template <class Shape, template <class> class A, class F, class T> class WarpLeaf {
  static constexpr int lanes = Shape::lanes, rows = Shape::rows, mine = lanes / warp;
  static constexpr int vector = mine * int{sizeof(T)} > 16 ? 16 / int{sizeof(T)} : mine;  // elements a load
  static constexpr int vectors = mine / vector;
  /// Rows whose loads are in flight together: measured on an H200, see lib/DECISIONS.md.
  static constexpr int batch = 8;
  static constexpr int batch_size = batch * lanes, full = Shape::leaf;
  static_assert(mine * warp == lanes && rows % batch == 0);

  struct alignas(vector * sizeof(T)) Vector {
    T element[vector];
  };
  using Row = std::array<Vector, vectors>;
  template <class V> using Lanes = std::array<A<V>, mine / width<V>>;

 public:
  using State = A<Scalar<F>>;

  /// The state of a leaf of n >= 1 elements, n at most Shape::leaf; thread 0 of the warp gets it.
  __device__ static State sum(const T* x, int n) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(x) % sizeof(Vector) == 0;
    return aligned && n == full ? sum_as<Fast<F>, false>(x, full) : sum_as<Scalar<F>, true>(x, n);
  }

 private:
  /// The lane of element e of vector v of this thread.
  __device__ static int lane(int v, int e = 0) { return (v * warp + thread()) * vector + e; }
  template <class V> __device__ static int first_lane(int i) {
    return lane(i * width<V> / vector, i * width<V> % vector);
  }

  /// A full leaf by vector loads, without a branch, so that the loads of one batch may overtake the additions
  /// of the one before; or, if `ragged`, element by element, and what lies beyond n is left out.
  template <class V, bool ragged> __device__ __forceinline__ static State sum_as(const T* x, int n) {
    Lanes<V> sum{};
    if constexpr (Shape::in_turn) {
      std::array<Row, batch> next;
      if (!ragged) next = load_batch<ragged>(x, n);
#pragma unroll(ragged ? 1 : full / batch_size)
      for (int left = n; left > 0; left -= batch_size) {
        const auto row = ragged ? load_batch<ragged>(x, left) : next;
        x += batch_size;
        if (!ragged && left > batch_size) next = load_batch<ragged>(x, left - batch_size);
        for (int r = 0; r < batch; ++r) add_row<V, ragged>(sum, row[r], left - r * lanes);
      }
    } else {
      sum = by_pairs<V, ragged, rows>(x, n);
    }
    return halve<V, ragged>(sum, n);
  }

  template <bool ragged> __device__ static std::array<Row, batch> load_batch(const T* x, int left) {
    std::array<Row, batch> row;
    for (int r = 0; r < batch; ++r)
      for (int v = 0; v < vectors; ++v) {
        const T* first = x + r * lanes + lane(v);
        if constexpr (!ragged)
          row[r][v] = *reinterpret_cast<const Vector*>(first);
        else
          for (int e = 0; e < vector; ++e) row[r][v].element[e] = first + e < x + left ? first[e] : T{};
      }
    return row;
  }

  template <class V> __device__ static V element(const Row& row, int i) {
    return load<V>(&row[i * width<V> / vector].element[i * width<V> % vector]);
  }

  template <class V, bool ragged> __device__ static void add_row(Lanes<V>& sum, const Row& row, int left) {
    for (int i = 0; i < int{mine / width<V>}; ++i) {
      A<V> more = sum[i];
      more.add(element<V>(row, i));
      if (!ragged || first_lane<V>(i) < left) sum[i] = more;
    }
  }

  /// `count` rows by stride doubling: both halves, then the merge of the two.
  template <class V, bool ragged, int count> __device__ static Lanes<V> by_pairs(const T* x, int left) {
    if constexpr (count == batch) {
      return one_batch<V, ragged>(x, left);
    } else {
      constexpr int half = count / 2, size = half * lanes;
      Lanes<V> sum = by_pairs<V, ragged, half>(x, left);
      if (left > size)
        merge_lanes<V, ragged>(sum, by_pairs<V, ragged, half>(x + size, left - size), left - size);
      return sum;
    }
  }
  template <class V, bool ragged> __device__ static Lanes<V> one_batch(const T* x, int left) {
    if constexpr (ragged)
      return ragged_batch<V>(x, left);
    else
      return rows_by_pairs<V, ragged, batch>(load_batch<ragged>(x, left).data(), left);
  }
  /// Once in the code: it is long, and seldom needed.
  template <class V> __device__ __noinline__ static Lanes<V> ragged_batch(const T* x, int left) {
    return rows_by_pairs<V, true, batch>(load_batch<true>(x, left).data(), left);
  }

  template <class V, bool ragged, int count>
  __device__ static Lanes<V> rows_by_pairs(const Row* row, int left) {
    Lanes<V> sum;
    if constexpr (count == 1) {
      for (int i = 0; i < int{mine / width<V>}; ++i) sum[i] = A<V>{element<V>(*row, i)};
    } else if constexpr (count == 2 && A<V>::adds_as_it_merges) {
      sum = rows_by_pairs<V, ragged, 1>(row, left);
      add_row<V, ragged>(sum, row[1], left - lanes);
    } else {
      constexpr int half = count / 2;
      sum = rows_by_pairs<V, ragged, half>(row, left);
      merge_lanes<V, ragged>(sum, rows_by_pairs<V, ragged, half>(row + half, left - half * lanes),
                             left - half * lanes);
    }
    return sum;
  }

  /// `left` counts the elements of the leaf from the first one of `other` on.
  template <class V, bool ragged>
  __device__ static void merge_lanes(Lanes<V>& sum, const Lanes<V>& other, int left) {
    for (int i = 0; i < int{mine / width<V>}; ++i)
      merge_if(!ragged || first_lane<V>(i) < left, sum[i], other[i]);
  }

  /// Lane l takes lane l + half: of another vector, then of another thread, then of this thread.
  template <class V, bool ragged> __device__ static State halve(Lanes<V>& sum, int n) {
    constexpr int w = width<V>;
    const auto take = [&](int i, const A<V>& other, int half) {
      merge_if(!ragged || first_lane<V>(i) + half < n, sum[i], other);
    };
    for (int v = vectors / 2; v > 0; v /= 2)
      for (int i = 0; i < v * vector / w; ++i) take(i, sum[i + v * vector / w], v * warp * vector);
    for (int delta = warp / 2; delta > 0; delta /= 2)
      for (int i = 0; i < vector / w; ++i) take(i, shuffle_down(sum[i], delta), delta * vector);
    for (int e = vector / 2; e >= w; e /= 2)
      for (int i = 0; i < e / w; ++i) take(i, sum[i + e / w], e);
    State state = lane_of(sum[0], 0);
    if constexpr (w == 2) state.merge(lane_of(sum[0], 1));
    return state;
  }
};

}  // namespace samesum::gpu
