/// Softmax of rows that the blocks of a GPU hold on chip: two kernels for a plain denominator, the first one
/// also for an exact one and for the online form. They give the same bits as softmax_narrow (narrow.cuh) and
/// softmax_wide (wide.cuh).
#pragma once

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
#include <cooperative_groups.h>
#endif

#include "samesum/backend/cuda/softmax/exact.cuh"
#include "samesum/operation/online_softmax.hpp"

namespace samesum::gpu::softmaxes {

/// The denominator of a row by the online form, in place of the format of a plain one.
struct OnlineHeldSum {};
/// The state of lanes and leaves, and how it is stored in shared memory, which holds no types with
/// constructors.
template <class F> struct HeldStateOf { using type = Plain<Scalar<F>>; };
template <> struct HeldStateOf<OnlineHeldSum> { using type = OnlineSoftmax<Scalar<fp32>>; };
template <class F> using HeldState = typename HeldStateOf<F>::type;
template <class F> using StoredState = std::array<float, sizeof(HeldState<F>) / sizeof(float)>;
template <class F> __device__ StoredState<F> stored(const HeldState<F>& state) {
  return std::bit_cast<StoredState<F>>(state);
}
template <class F> __device__ HeldState<F> restored(const StoredState<F>& state) {
  return std::bit_cast<HeldState<F>>(state);
}

// --- one block or cluster per row, held in registers -------------------------------------------------------

inline constexpr int most_cluster = 8, most_held_leaves = 32;

/// The only block of a row.
struct OneBlock {
  static constexpr int size = 1, rank = 0;
  template <class V> __device__ V& in(int, V& here) const { return here; }
  __device__ void sync() const { __syncthreads(); }
};

/// The cluster of blocks that share a row.
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
struct Cluster {
  int size = static_cast<int>(cooperative_groups::this_cluster().num_blocks());
  int rank = static_cast<int>(cooperative_groups::this_cluster().block_rank());
  /// The counterpart of `here` in the shared memory of `block`.
  template <class V> __device__ V& in(int block, V& here) const {
    return size == 1
               ? here
               : *cooperative_groups::this_cluster().map_shared_rank(&here, static_cast<unsigned>(block));
  }
  __device__ void sync() const {
    if (size == 1)
      __syncthreads();
    else
      cooperative_groups::this_cluster().sync();
  }
};
#else
using Cluster = OneBlock;
#endif

/// The part of a leaf that a thread holds: `run` neighbouring lanes, and one of `parts` parts of their rows.
///
/// For fp32, a thread holds all rows of its lanes, and adds each exponential as soon as it is computed. For
/// 16 bits it holds a quarter of the rows: 16-bit elements are loaded at least two lanes at a time, and
/// registers for all rows of them would leave too few threads per multiprocessor to hide latency, which
/// matters more since the elements arrive twice as fast.
template <class T> struct LeafPart {
  static constexpr int run = sizeof(T) == 4 ? 2 : 4, parts = sizeof(T) == 4 ? 1 : 4;
  static constexpr int rows = Order::rows / parts, across = lanes / run, threads = across * parts;

  int here, leaf_of_row;  ///< index of the leaf in this block; in the row
  int index, part, lane;  ///< index of the thread in its leaf; index of its part; index of its first lane
  int column, left;       ///< its first column; number of columns from there on
  int present, full;      ///< rows of the part that have elements; rows without missing columns, from its
                          ///< first on

  template <class Block> __device__ LeafPart(const SoftmaxRows<T>& p, const Block& block) {
    index = static_cast<int>(threadIdx.x) % threads;
    here = static_cast<int>(threadIdx.x) / threads;
    leaf_of_row = block.rank * leaves() + here;
    part = index / across;
    lane = index % across * run;
    const int begin = leaf_of_row * leaf + part * rows * lanes, n = static_cast<int>(p.columns) - begin;
    column = begin + lane;
    left = n - lane;
    present = n <= 0 ? 0 : min((n - 1) / lanes + 1, rows);
    full = n <= 0 ? 0 : n / lanes;
  }
  /// Leaves per block.
  __device__ static int leaves() { return static_cast<int>(blockDim.x) / threads; }

  __device__ void load(const T* x, bool aligned, float (&v)[rows][run]) const {
    by_alignment(aligned, [&]<bool by_runs>() { load_rows<by_runs>(x, left, full, v); });
  }
  /// Replaces each x by e, or by d if `log` and `holds_result` (x, d, e: see operation/softmax.hpp). Writes
  /// the states of this leaf's lanes to `of_lane`; the parts of a lane are added one after another.
  template <class F, bool log>
  __device__ void add_to_lanes(float (&v)[rows][run], float largest, StoredState<F>* of_lane) const {
    constexpr bool is_online = std::is_same_v<F, OnlineHeldSum>;
    HeldState<F> state[run];
    const auto add_rows = [&](bool starts) {
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (r < present)
          for (int l = 0; l < run; ++l)
            if constexpr (!is_online)
              state[l].add(Scalar<F>::of(v[r][l]));
            else if (r == 0 && starts)
              state[l] = {{v[r][l]}, {1}};  // as if added to a fresh state
            else
              state[l].add({v[r][l]});
    };
    if constexpr (parts == 1 && !is_online)
      exponentials<log>(v, largest, present, [&](int l, float e) { state[l].add(Scalar<F>::of(e)); });
    else if constexpr (parts == 1)
      add_rows(true);
    else if constexpr (!is_online)
      exponentials<false>(v, largest, present, [](int, float) {});
#pragma unroll 1
    for (int turn = 0; turn < parts; ++turn) {
      if (turn == part) {
        if constexpr (parts > 1) {
          if (turn > 0)
            for (int l = 0; l < run; ++l) state[l] = restored<F>(of_lane[lane + l]);
          add_rows(turn == 0);
        }
        for (int l = 0; l < run; ++l) of_lane[lane + l] = stored<F>(state[l]);
      }
      __syncthreads();  // this part has been added
    }
    if constexpr (is_online) exponentials<log>(v, largest, present, [](int, float) {});
  }

  /// Whether v then holds the input of Finish; if not, x must be loaded again and d computed.
  template <class F, bool log>
  static constexpr bool holds_result = !log || parts == 1 || std::is_same_v<F, OnlineHeldSum>;
};

/// Halves the lanes: lane l merges lane l + half, the first two times from shared memory, then across a warp,
/// each thread of which gets the sum.
template <class F> __device__ HeldState<F> halve_lanes(const StoredState<F> (&of_lane)[lanes]) {
  HeldState<F> low = restored<F>(of_lane[thread()]), high = restored<F>(of_lane[thread() + warp]);
  low.merge(restored<F>(of_lane[thread() + 2 * warp]));
  high.merge(restored<F>(of_lane[thread() + 3 * warp]));
  low.merge(high);
  for (int delta = warp / 2; delta > 0; delta /= 2) merge_across(low, delta);
  return low;
}

/// What the threads that share a row exchange through shared memory.
template <class F> struct Shared {
  float largest_of_warp[128];
  StoredState<F> of_leaf[most_held_leaves];

  /// All threads call these functions, with block.sync() between share_largest and largest, and between
  /// share_sum and sum.
  template <class Block> __device__ void share_largest(const Block& block, float largest) {
    largest = largest_of(largest, warp);
    if (thread() < block.size)
      block.in(thread(), largest_of_warp[block.rank * warps() + warp_index()]) = largest;
  }
  template <class Block> __device__ float largest(const Block& block) const {
    float largest = absent<float>;
    for (int i = thread(); i < block.size * warps(); i += warp) largest = fmaxf(largest, largest_of_warp[i]);
    return largest_of(largest, warp);
  }
  template <class Block, class Part>
  __device__ void share_sum(const Block& block, const Part& part, const HeldState<F>& state) {
    if (part.index < block.size) block.in(part.index, of_leaf[part.leaf_of_row]) = stored<F>(state);
  }
  __device__ HeldState<F> sum(int leaves) const {
    HeldState<F> state = restored<F>(of_leaf[thread() % leaves]);  // `leaves` is a power of two
    merge_all(state, leaves);
    return state;
  }
};

/// The result of a plain sum, or the denominator of the online form.
template <class V> __device__ float denominator_of(const Plain<V>& sum) { return sum.result().v; }
template <class V> __device__ float denominator_of(const OnlineSoftmax<V>& state) {
  return state.denominator().v;
}

/// The exact sum of the exponentials of a row that a block or cluster holds, rounded once.
struct ExactHeldSum {
  template <bool log, class Block, int rows, int run>
  __device__ static float of(const Block& block, float (&v)[rows][run], float largest, int present) {
    constexpr int log2_terms = 17, most_warps = most_cluster * 16;
    static_assert(most_held_leaves * leaf <= 1 << log2_terms);
    using Sum = ExponentialSum<float>;
    __shared__ typename Sum::Part of_warp[most_warps];
    Sum sum{1, log2_terms};
    exponentials<log>(v, largest, present, [&](int, float e) { sum.add_below_top(e); });
    const typename Sum::Part part = sum.of_warp();
    if (thread() < block.size) block.in(thread(), of_warp[block.rank * warps() + warp_index()]) = part;
    block.sync();  // all warps of the row have written their sums
    float result;
    if (sum.round_sum_of(of_warp, block.size * warps(), log2_terms, result)) return result;
    float e[rows * run];
    copy_exponentials<log>(v, e);
    return exact_sum_of_block(block, e, rows * run);
  }
};

/// Whether several blocks may share a row: not of 16-bit elements with a plain sum, whose long rows are
/// prefetched.
template <class T, class F>
inline constexpr bool has_cluster =
    sizeof(T) == 4 || std::is_same_v<F, ExactHeldSum> || std::is_same_v<F, OnlineHeldSum>;
/// Maximum threads per block, and minimum resident blocks per multiprocessor, for __launch_bounds__.
template <class T, class F>
inline constexpr int held_threads = has_cluster<T, F> ? 512 : LeafPart<T>::threads;
template <class T, class F>
inline constexpr int held_resident_blocks = sizeof(T) == 4 ? 1 : 1024 / held_threads<T, F>;

/// Loads a whole row, computes it, then stores it. Other rows on the multiprocessor are at other steps, which
/// hides latency. F is the format of a plain denominator, ExactHeldSum or OnlineHeldSum.
template <class T, class F, bool log>
__global__ void __launch_bounds__(held_threads<T, F>, held_resident_blocks<T, F>)
    softmax_held(SoftmaxRows<T> p) {
  using Part = LeafPart<T>;
  constexpr bool is_exact = std::is_same_v<F, ExactHeldSum>;
  using Block = std::conditional_t<has_cluster<T, F>, Cluster, OneBlock>;
  using Lane = std::conditional_t<is_exact, fp32, F>;  // exact sums have no lanes
  __shared__ Shared<Lane> shared;
  [[maybe_unused]] __shared__ StoredState<Lane> of_lane[is_exact ? 1 : held_threads<T, F> / Part::threads]
                                                       [lanes];
  const Block block;
  const Part part{p, block};
  const int all_leaves = Part::leaves() * block.size;
  const std::size_t row = blockIdx.x / static_cast<unsigned>(block.size);
  const T* x = p.x + row * p.x_stride + part.column;
  float v[Part::rows][Part::run];
  part.load(x, p.aligned, v);
  if (block.size > 1) block.sync();  // all blocks of the row have started, so their shared memory exists
  shared.share_largest(block, largest_in(v));
  block.sync();  // all warps have written their largest elements
  const float largest = shared.largest(block);
  float denominator;
  if constexpr (is_exact) {
    denominator = F::template of<log>(block, v, largest, part.present);
  } else {
    part.template add_to_lanes<F, log>(v, largest, of_lane[part.here]);
    auto sum = halve_lanes<F>(of_lane[part.here]);
    if (all_leaves > 1) {
      shared.share_sum(block, part, sum);
      block.sync();  // all leaves have written their sums
      sum = shared.sum(all_leaves);
    }
    denominator = denominator_of(sum);
  }
  const Finish<float> finish{log, denominator};
  if constexpr (!is_exact && !Part::template holds_result<Lane, log>) {
    part.load(x, p.aligned, v);
    subtract(v, largest);
  }
  T* y = p.y + row * p.y_stride + part.column;
  by_alignment(p.aligned,
               [&]<bool aligned>() { finish.template write<aligned>(y, part.left, part.full, v); });
}

// --- long rows of 16-bit elements, few of which fit a multiprocessor: the next rows are prefetched ---------

/// Returns x as a value that the compiler cannot trace. Otherwise the compiler keeps values derived for each
/// run in registers across rows, and these registers are needed elsewhere.
__device__ inline unsigned anew(unsigned x) {
  asm volatile("" : "+r"(x));
  return x;
}

/// Prefetches rows into shared memory, where each thread reads only the part that it requested. Missing
/// columns stay -inf.
template <class T, bool aligned> class Ahead {
  using Part = LeafPart<T>;
  using Four = SoftmaxRun<T, Part::run>;
  static constexpr int buffers = 2, rows = Part::rows;

 public:
  static constexpr std::size_t bytes_of_thread = buffers * rows * sizeof(Four);

  __device__ Ahead(Four* memory, const Part& part)
      : mine_{memory + warp_index() * (warp * rows) + thread()}, left_{part.left}, full_{part.full} {
    for (int b = 0; b < buffers; ++b)
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (left_ < r * lanes + Part::run) buffer(b)[r * warp] = nothing<T, Part::run>();
  }
  __device__ void request(int b, const T* x) {
    Four* to = buffer(b);
    if constexpr (aligned) {
      // The addresses differ by constants. No barrier is needed: each thread overwrites only what it has read
      // itself, and its accesses keep their order.
      const unsigned address = anew(static_cast<unsigned>(__cvta_generic_to_shared(to)));
      for_rows<rows>(full_, [&](int r, auto surely) {
        if (surely || left_ > r * lanes)
          asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(
                           address + static_cast<unsigned>(r * warp * sizeof(Four))),
                       "l"(x + r * lanes), "n"(sizeof(Four))
                       : "memory");
      });
    } else {
#pragma unroll 1
      for (int r = 0; r < rows; ++r)
        for (int i = 0; i < Part::run; ++i)
          if (left_ - r * lanes > i) to[r * warp].element[i] = x[r * lanes + i];
    }
  }
  /// Waits for all rows that this thread has requested.
  __device__ void wait() const { asm volatile("cp.async.wait_all;" ::: "memory"); }
  __device__ void read(int b, float (&v)[rows][Part::run]) const {
    const Four* from = buffer(b);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const Four got = from[r * warp];
      for (int i = 0; i < Part::run; ++i) v[r][i] = widen(got.element[i]);
    }
  }

 private:
  __device__ Four* buffer(int b) const { return mine_ + b * rows * static_cast<int>(blockDim.x); }
  Four* mine_;
  int left_, full_;
};

inline constexpr int ahead_threads = 512;

/// The threads of a row synchronise once per row: they exchange its sums and the largest element of the next
/// row. A kernel for both aligned and other rows would leave either too few registers.
template <class T, class F, bool log, bool aligned>
__global__ void __launch_bounds__(ahead_threads, 2) softmax_ahead(SoftmaxRows<T> p) {
  using Part = LeafPart<T>;
  __shared__ Shared<F> shared[2];
  __shared__ StoredState<F> of_lane[ahead_threads / Part::threads][lanes];
  extern __shared__ uint4 memory[];
  const Cluster cluster;
  const Part part{p, cluster};
  Ahead<T, aligned> ahead{reinterpret_cast<SoftmaxRun<T, Part::run>*>(memory), part};
  const int all_leaves = Part::leaves() * cluster.size;
  const std::size_t size = static_cast<std::size_t>(cluster.size), stride = gridDim.x / size;
  std::size_t row = blockIdx.x / size;
  const auto request = [&](int b, std::size_t requested) {
    if (requested < p.rows) ahead.request(b, p.x + requested * p.x_stride + part.column);
  };
  const auto share_largest = [&](int b) {
    float v[Part::rows][Part::run];
    ahead.wait();
    ahead.read(b, v);
    shared[b].share_largest(cluster, largest_in(v));
  };
  request(0, row);
  request(1, row + stride);
  cluster.sync();  // all blocks of the row have started, so their shared memory exists
  share_largest(0);
  cluster.sync();  // all warps have written their largest elements
  for (int b = 0; row < p.rows; row += stride, b = 1 - b) {
    const float largest = shared[b].largest(cluster);
    float v[Part::rows][Part::run];
    ahead.read(b, v);
    part.template add_to_lanes<F, log>(v, largest, of_lane[part.here]);
    if (part.part == 0) shared[b].share_sum(cluster, part, halve_lanes<F>(of_lane[part.here]));
    if (row + stride < p.rows) share_largest(1 - b);
    cluster.sync();  // all have written the sums of this row and the largest elements of the next
    const Finish<float> finish{log, denominator_of(shared[b].sum(all_leaves))};
    if constexpr (!Part::template holds_result<F, log>) {
      ahead.read(b, v);
      subtract(v, largest);
    }
    request(b, row + 2 * stride);
    finish.template write<aligned>(p.y + row * p.y_stride + part.column, part.left, part.full, v);
  }
}

}  // namespace samesum::gpu::softmaxes
