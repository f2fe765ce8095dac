/// Sums one leaf of a tree on one warp: the merges of the reference, without shared memory or barriers.
#pragma once

#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/order/tree.hpp"

namespace samesum::gpu {

/// A thread holds `mine` lanes, as one or two runs of neighbours, and loads 16 bytes at a time. If its part
/// of a row is 8 bytes, each half-warp loads a different row, and the half-warps then swap halves.
template <class Shape, template <class> class A, class F, class T> class WarpLeaf {
  static constexpr int lanes = Shape::lanes, rows = Shape::rows, full = Shape::leaf, mine = lanes / warp;
  static constexpr int vector = mine * int{sizeof(T)} > 16 ? 16 / int{sizeof(T)} : mine;  // lanes per run
  static constexpr int vectors = mine / vector;
  static constexpr bool swaps = mine * sizeof(T) == 8;
  static constexpr int together = swaps ? 2 : 1;  // rows per load
  static constexpr int loads = rows / together;
  /// Minimum number of loads in flight before the first is used; the compiler adds as many as registers
  /// allow.
  static constexpr int ahead = 3;
  static constexpr int batch = 8;  ///< rows at a time, if elements are loaded one by one
  static_assert(mine * warp == lanes && vector * sizeof(T) * together == 16 && rows % batch == 0);

  struct alignas(vector * sizeof(T)) Vector {
    T element[vector];
  };
  using Row = std::array<Vector, vectors>;
  using Rows = std::array<Row, together>;
  using Window = std::array<Rows, ahead>;
  template <class V> using Lanes = std::array<A<V>, mine / width<V>>;

 public:
  using State = A<Scalar<F>>;

  /// The state of a leaf of n >= 1 elements, n at most Shape::leaf; thread 0 of the warp gets it.
  __device__ static State sum(const T* x, int n) {
    if (reinterpret_cast<std::uintptr_t>(x) % 16 != 0 || n < full) return sum_ragged(x, n);
    const State state = sum_full(x);
    if constexpr (std::is_same_v<Fast<F>, Unchecked<Scalar<F>>> && sizeof(State) > sizeof(F))
      if (__any_sync(whole_warp, thread() == 0 && is_doubtful(state, x))) return sum_ragged(x, full);
    return state;
  }

 private:
  /// Sums a full leaf by vector loads and without a branch; each time a load is used, the next one is issued.
  __device__ static State sum_full(const T* x) {
    using V = Fast<F>;
    Window next;
    for (int i = 0; i < ahead; ++i) next[i] = load_rows(x, i);
    Lanes<V> sum{};
    if constexpr (Shape::in_turn) {
#pragma unroll
      for (int i = 0; i < loads; ++i)
        for (const Row& row : take(i, x, next)) add_row<V, false>(sum, row, full);
    } else {
      sum = by_pairs<V, 0, loads>(x, next);
    }
    return halve<V, false>(sum, full);
  }

  /// Sums a leaf of any length and alignment, element by element.
  __device__ static State sum_ragged(const T* x, int n) {
    if constexpr (Shape::in_turn) {
      Lanes<Scalar<F>> sum{};
#pragma unroll 1
      for (int left = n; left > 0; left -= batch * lanes, x += batch * lanes) {
        const auto row = load_ragged(x, left);
        for (int r = 0; r < batch; ++r) add_row<Scalar<F>, true>(sum, row[r], left - r * lanes);
      }
      return halve<Scalar<F>, true>(sum, n);
    } else {
      return ragged_pairs(x, n);
    }
  }
  /// Not inlined: the code is long and rarely needed.
  __device__ __noinline__ static State ragged_pairs(const T* x, int n) {
    Lanes<Scalar<F>> sum = ragged_by_pairs<Scalar<F>, rows>(x, n);
    return halve<Scalar<F>, true>(sum, n);
  }

  /// Whether a state computed by Unchecked may be wrong. A number that is not finite never becomes finite
  /// again, so the state shows it; the sign of a zero matters only if all elements are -0.
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

  /// Takes the rows of load i out of the window, and issues another load in its place.
  __device__ static Rows take(int i, const T* x, Window& next) {
    const Rows got = next[i % ahead];
    if (i + ahead < loads) next[i % ahead] = load_rows(x, i + ahead);
    return swapped(got);
  }

  /// Issues load i; `swapped` brings its rows into order.
  __device__ static Rows load_rows(const T* x, int i) {
    Rows got;
    x += i * together * lanes;
    if constexpr (swaps)
      got = std::bit_cast<Rows>(reinterpret_cast<const uint4*>(x)[thread()]);
    else
      for (int v = 0; v < vectors; ++v) got[0][v] = *reinterpret_cast<const Vector*>(x + lane(v));
    return got;
  }
  /// Exchanges halves between the half-warps: the lower one has loaded the first row, the upper one the
  /// second, and each thread gets its run of both.
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
  /// Loads the next `batch` rows, of which `left` elements exist.
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

  /// Sums the rows of `count` loads by stride doubling: both halves, then the merge of the two.
  template <class V, int first, int count> __device__ static Lanes<V> by_pairs(const T* x, Window& next) {
    constexpr int rows = count * together;
    if constexpr (count == 1 || (rows == 2 && A<V>::adds_as_it_merges)) {
      std::array<Row, rows> row;
      for (int i = 0; i < count; ++i) {
        const Rows got = take(first + i, x, next);
        for (int r = 0; r < together; ++r) row[i * together + r] = got[r];
      }
      return rows_by_pairs<V, false, rows>(row.data(), full);
    } else {
      Lanes<V> sum = by_pairs<V, first, count / 2>(x, next);
      merge_lanes<V, false>(sum, by_pairs<V, first + count / 2, count / 2>(x, next), full);
      return sum;
    }
  }
  template <class V, int count> __device__ static Lanes<V> ragged_by_pairs(const T* x, int left) {
    if constexpr (count == batch) {
      return rows_by_pairs<V, true, batch>(load_ragged(x, left).data(), left);
    } else {
      constexpr int half = count / 2, size = half * lanes;
      Lanes<V> sum = ragged_by_pairs<V, half>(x, left);
      if (left > size)
        merge_lanes<V, true>(sum, ragged_by_pairs<V, half>(x + size, left - size), left - size);
      return sum;
    }
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

  /// Merges `other` into `sum`, lane by lane. `left` is the number of elements from the first row of `other`
  /// on.
  template <class V, bool ragged>
  __device__ static void merge_lanes(Lanes<V>& sum, const Lanes<V>& other, int left) {
    for (int i = 0; i < int{mine / width<V>}; ++i)
      merge_if(!ragged || first_lane<V>(i) < left, sum[i], other[i]);
  }

  /// Halves the lanes: lane l merges lane l + half, first of the other run of this thread, then of another
  /// thread, then of this run.
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
    for (int delta = warp / together / 2; delta > 0; delta /= 2)
      take_across(delta, delta * together * vector);
    if (swaps) take_across(warp / 2, vector);
    for (int e = vector / 2; e >= w; e /= 2)
      for (int i = 0; i < e / w; ++i) take(i, sum[i + e / w], e);
    State state = lane_of(sum[0], 0);
    if constexpr (w == 2) state.merge(lane_of(sum[0], 1));
    return state;
  }
};

}  // namespace samesum::gpu
