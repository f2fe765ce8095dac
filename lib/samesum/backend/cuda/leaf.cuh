/// One leaf of a tree by one warp: the same merges as its literal reading, without shared memory or a
/// barrier.
#pragma once

#include "samesum/backend/cuda/pair.cuh"
#include "samesum/backend/cuda/warp.cuh"
#include "samesum/order/tree.hpp"

namespace samesum::gpu {

/// A thread holds `mine` lanes, one run of neighbours or two of them, and loads 16 bytes at a time. Where its
/// part of a row is 8 bytes, each half-warp loads a row of its own, and then they swap halves.
template <class Shape, template <class> class A, class F, class T> class WarpLeaf {
  static constexpr int lanes = Shape::lanes, rows = Shape::rows, full = Shape::leaf, mine = lanes / warp;
  static constexpr int vector = mine * int{sizeof(T)} > 16 ? 16 / int{sizeof(T)} : mine;  // a run of lanes
  static constexpr int vectors = mine / vector;
  static constexpr bool swaps = mine * sizeof(T) == 8;
  static constexpr int together = swaps ? 2 : 1;  // rows of one load
  /// Rows whose loads are in flight together: measured on an H200, see lib/DECISIONS.md.
  static constexpr int batch = 8;
  static_assert(mine * warp == lanes && vector * sizeof(T) * together == 16 && rows % batch == 0);

  struct alignas(vector * sizeof(T)) Vector {
    T element[vector];
  };
  using Row = std::array<Vector, vectors>;
  using Rows = std::array<Row, together>;
  template <class V> using Lanes = std::array<A<V>, mine / width<V>>;

 public:
  using State = A<Scalar<F>>;

  /// The state of a leaf of n >= 1 elements, n at most Shape::leaf; thread 0 of the warp gets it.
  __device__ static State sum(const T* x, int n) {
    if (reinterpret_cast<std::uintptr_t>(x) % 16 != 0 || n < full) return sum_as<Scalar<F>, true>(x, n);
    const State state = sum_as<Fast<F>, false>(x, full);
    if constexpr (std::is_same_v<Fast<F>, Unchecked<F>> && sizeof(State) > sizeof(F))
      if (__any_sync(whole_warp, thread() == 0 && is_doubtful(state, x)))
        return sum_as<Scalar<F>, true>(x, full);
    return state;
  }

 private:
  /// Whether an answer that Unchecked gave may have been wrong: what is not finite never gets finite again,
  /// and the sign of a zero matters only where all elements are -0.
  __device__ static bool is_doubtful(const State& state, const T* x) {
    const auto number = std::bit_cast<std::array<F, sizeof(State) / sizeof(F)>>(state);
    bool finite = true;
    for (const F v : number) finite = finite && is_finite(Scalar<F>{v});
    return !finite || (number[0] == 0 && to_bits(Scalar<F>::of(*x).v) == Format<F>::sign_bit);
  }

  /// The lane of element e of vector v of this thread.
  __device__ static int lane(int v, int e = 0) {
    const int run = swaps ? thread() % (warp / 2) * 2 + thread() / (warp / 2) : v * warp + thread();
    return run * vector + e;
  }
  template <class V> __device__ static int first_lane(int i) {
    return lane(i * width<V> / vector, i * width<V> % vector);
  }

  /// A full leaf by vector loads, without a branch, so that loads may overtake the additions before them; or,
  /// if `ragged`, element by element, and what lies beyond n is left out.
  template <class V, bool ragged> __device__ __forceinline__ static State sum_as(const T* x, int n) {
    Lanes<V> sum{};
    if constexpr (!Shape::in_turn)
      sum = by_pairs<V, ragged, rows>(x, n);
    else if constexpr (ragged)
      in_turn_ragged<V>(sum, x, n);
    else
      in_turn<V>(sum, x);
    return halve<V, ragged>(sum, n);
  }

  /// Row after row; where one was, another is on its way.
  template <class V> __device__ static void in_turn(Lanes<V>& sum, const T* x) {
    constexpr int ahead = batch / together;
    std::array<Rows, ahead> next;
    for (int i = 0; i < ahead; ++i) next[i] = load_rows(x, i);
#pragma unroll
    for (int i = 0; i < rows / together; ++i) {
      const Rows now = swapped(next[i % ahead]);
      if (i + ahead < rows / together) next[i % ahead] = load_rows(x, i + ahead);
      for (const Row& row : now) add_row<V, false>(sum, row, full);
    }
  }
  template <class V> __device__ static void in_turn_ragged(Lanes<V>& sum, const T* x, int n) {
#pragma unroll 1
    for (int left = n; left > 0; left -= batch * lanes, x += batch * lanes) {
      const auto row = load_ragged(x, left);
      for (int r = 0; r < batch; ++r) add_row<V, true>(sum, row[r], left - r * lanes);
    }
  }

  /// The rows of load i, as they come: see `swapped`.
  __device__ static Rows load_rows(const T* x, int i) {
    Rows got;
    if constexpr (swaps) {
      got = std::bit_cast<Rows>(reinterpret_cast<const uint4*>(x + i * together * lanes)[thread()]);
    } else {
      for (int v = 0; v < vectors; ++v)
        got[0][v] = *reinterpret_cast<const Vector*>(x + i * lanes + lane(v));
    }
    return got;
  }
  /// The lower half-warp has loaded the first row, the upper one the second; each thread gets its run of both.
  __device__ static Rows swapped(const Rows& got) {
    if constexpr (swaps) {
      const bool upper = thread() >= warp / 2;
      auto word = std::bit_cast<std::array<unsigned, 4>>(got);
      for (int i = 0; i < 2; ++i) {
        const unsigned other = __shfl_xor_sync(whole_warp, upper ? word[i] : word[i + 2], warp / 2);
        word[i] = upper ? other : word[i];
        word[i + 2] = upper ? word[i + 2] : other;
      }
      return std::bit_cast<Rows>(word);
    } else {
      return got;
    }
  }
  /// The next `batch` rows, of which `left` elements are there.
  __device__ static std::array<Row, batch> load_ragged(const T* x, int left) {
    std::array<Row, batch> row;
    for (int r = 0; r < batch; ++r)
      for (int v = 0; v < vectors; ++v)
        for (int e = 0; e < vector; ++e) {
          const int i = r * lanes + lane(v, e);
          row[r][v].element[e] = i < left ? x[i] : T{};
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
    if constexpr (count > batch) {
      constexpr int half = count / 2, size = half * lanes;
      Lanes<V> sum = by_pairs<V, ragged, half>(x, left);
      if (left > size)
        merge_lanes<V, ragged>(sum, by_pairs<V, ragged, half>(x + size, left - size), left - size);
      return sum;
    } else if constexpr (ragged) {
      return ragged_batch<V>(x, left);
    } else {
      std::array<Rows, batch / together> got;
      for (int i = 0; i < batch / together; ++i) got[i] = load_rows(x, i);
      std::array<Row, batch> row;
      for (int i = 0; i < batch / together; ++i) {
        const Rows both = swapped(got[i]);
        for (int r = 0; r < together; ++r) row[i * together + r] = both[r];
      }
      return rows_by_pairs<V, false, batch>(row.data(), left);
    }
  }
  /// Once in the code: it is long, and seldom needed.
  template <class V> __device__ __noinline__ static Lanes<V> ragged_batch(const T* x, int left) {
    return rows_by_pairs<V, true, batch>(load_ragged(x, left).data(), left);
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

  /// Lane l takes lane l + half: of another run of this thread, of another thread, of this run.
  template <class V, bool ragged> __device__ static State halve(Lanes<V>& sum, int n) {
    constexpr int w = width<V>;
    const auto take = [&](int i, const A<V>& other, int half) {
      merge_if(!ragged || first_lane<V>(i) + half < n, sum[i], other);
    };
    const auto take_across = [&](int delta, int half) {
      for (int i = 0; i < vector / w; ++i) take(i, shuffle_down(sum[i], delta), half);
    };
    for (int v = vectors / 2; v > 0; v /= 2)
      for (int i = 0; i < v * vector / w; ++i) take(i, sum[i + v * vector / w], v * warp * vector);
    for (int delta = warp / together / 2; delta > 0; delta /= 2) take_across(delta, delta * together * vector);
    if (swaps) take_across(warp / 2, vector);
    for (int e = vector / 2; e >= w; e /= 2)
      for (int i = 0; i < e / w; ++i) take(i, sum[i + e / w], e);
    State state = lane_of(sum[0], 0);
    if constexpr (w == 2) state.merge(lane_of(sum[0], 1));
    return state;
  }
};

}  // namespace samesum::gpu
