/// Softmax over rows on a GPU: three schedules with the same bits. All of them let x = -inf stand for columns
/// that are not there: e^-inf = +0, which a sum that is not negative does not notice, nor the largest
/// element. Only rows that give NaN anyway see a difference.
#pragma once

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
#include <cooperative_groups.h>
#endif

#include <cuda_pipeline_primitives.h>

#include <array>
#include <bit>

#include "samesum/accumulator/digits.hpp"
#include "samesum/accumulator/plain.hpp"
#include "samesum/backend/cuda/pair.cuh"
#include "samesum/backend/cuda/warp.cuh"
#include "samesum/operation/online_softmax.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::gpu::softmaxes {

using One = Scalar<fp32>;
using Order = CoarsenedTree::Shape;
inline constexpr int lanes = Order::lanes, leaf = Order::leaf;

/// What to do. Runs of 4 neighbours can be read and written at once where all of them are aligned and the
/// columns are a multiple of that.
template <class T> struct Rows {
  const T* x;
  T* y;
  std::size_t rows, columns, x_stride, y_stride;
  SoftmaxSum accumulator;
  bool log, aligned;
};

/// `sum.operator()<F>()` for a plain accumulator's format.
template <class Sum> __host__ __device__ auto by_accumulator(SoftmaxSum accumulator, Sum sum) {
  if (accumulator == SoftmaxSum::fp32) return sum.template operator()<fp32>();
  if (accumulator == SoftmaxSum::bf16) return sum.template operator()<bf16>();
  return sum.template operator()<fp16>();
}

// --- elements ----------------------------------------------------------------------------------------------

template <class T, int run> struct alignas(run * sizeof(T)) Run { T element[run]; };

inline constexpr float absent = -std::numeric_limits<float>::infinity();

/// `run` neighbours, of which `left` are there; all or none where `aligned`.
template <bool aligned, int run, class T, class Count>
__device__ void load_run(const T* x, Count left, float* v) {
  if constexpr (aligned) {
    Run<T, run> got;
    if (left > 0) got = *reinterpret_cast<const Run<T, run>*>(x);
    for (int i = 0; i < run; ++i) v[i] = left > 0 ? widen(got.element[i]) : absent;
  } else {
    for (int i = 0; i < run; ++i) v[i] = left > i ? widen(x[i]) : absent;
  }
}

/// `run` numbers rounded to T; what is NaN must be written as such.
template <class T, int run> __device__ Run<T, run> narrow(const float* y) {
  Run<T, run> out;
  for (int i = 0; i < run; i += 2) {
    if constexpr (std::is_same_v<T, fp32>)
      out.element[i] = y[i], out.element[i + 1] = y[i + 1];
    else
      reinterpret_cast<std::uint32_t*>(&out)[i / 2] = Pair<T>::of(y[i], y[i + 1]).bits;
  }
  return out;
}

template <bool aligned, int run, class T, class Count>
__device__ void store_run(T* to, Count left, const Run<T, run>& out) {
  if constexpr (aligned) {
    if (left > 0) *reinterpret_cast<Run<T, run>*>(to) = out;
  } else {
    for (int i = 0; i < run; ++i)
      if (left > i) to[i] = out.element[i];
  }
}

__device__ inline float exp_of(float d) { return exp_of_nonpositive(One{d}).v; }

/// The last step, in exactly these operations. All of a row is NaN where s is, and nothing else: e and 1/s
/// are at most 1, d at most 0, log s at least 0.
struct Finish {
  bool log, is_nan;
  float of_sum;  ///< 1/s or log s
  __device__ Finish(bool l, float s)
      : log{l}, is_nan{!(s == s)}, of_sum{l ? samesum::log(One{s}).v : 1 / s} {}

  /// v[i] is d, or e where not `log`.
  template <bool aligned, int run, class T, class Count>
  __device__ void write(T* to, Count left, const float* v) const {
    float y[run];
    for (int i = 0; i < run; ++i) y[i] = log ? v[i] - of_sum : v[i] * of_sum;
    store_run<aligned, run>(to, left, narrow<T, run>(y));
  }
  template <bool aligned, int run, class T, class Count> __device__ static void write_nan(T* to, Count left) {
    Run<T, run> out;
    for (T& element : out.element) element = from_bits<T>(Format<T>::canonical_nan);
    store_run<aligned, run>(to, left, out);
  }
};

/// The same number, as far as the compiler knows another one in each row: else it keeps what it has found out
/// about each run in registers that are needed more elsewhere.
__device__ inline int anew(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ inline std::size_t anew(std::size_t x) {
  asm volatile("" : "+l"(x));
  return x;
}

/// each(r, whether all lanes of row r are surely there) for all rows, of which so many are full. Saves most
/// of the comparisons.
template <int rows, class Each> __device__ void for_rows(int full, Each each) {
  constexpr int step = rows < 8 ? rows : 8;
#pragma unroll
  for (int first = 0; first < rows; first += step)
    if (first + step <= full)
#pragma unroll
      for (int r = first; r < first + step; ++r) each(r, std::true_type{});
    else
#pragma unroll
      for (int r = first; r < first + step; ++r) each(r, std::false_type{});
}

/// The next row comes into shared memory while this one is computed, each thread's part by itself: else all
/// blocks would load, compute and store in step. Columns that are not there stay -inf.
template <class T, int rows, int run, int threads> class Ahead {
 public:
  using Part = Run<T, run>;
  /// `parts` has room for `rows` of each group of so many threads.
  __device__ Ahead(Part* parts, int left, int full)
      : mine_{parts + threadIdx.x / threads * (threads * rows) + threadIdx.x % threads},
        left_{left},
        full_{full} {
    Part nothing;
    for (T& element : nothing.element)
      element = from_bits<T>(BitsOf<T>(Format<T>::infinity | Format<T>::sign_bit));
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (left <= r * lanes) part(r) = nothing;
  }
  __device__ void ask(const T* x) {
    const int left = anew(left_);
    const auto address = static_cast<unsigned>(anew(static_cast<int>(__cvta_generic_to_shared(mine_))));
    for_rows<rows>(full_, [&](int r, auto surely) {
      if (surely ||
          left > r * lanes)  // __pipeline_memcpy_async, but for what that needs to find each address
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(
                         address + static_cast<unsigned>(r * threads * sizeof(Part))),
                     "l"(x + r * lanes), "n"(sizeof(Part))
                     : "memory");
    });
    __pipeline_commit();
  }
  __device__ void get(float (&v)[rows][run]) {
    __pipeline_wait_prior(0);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const Part got = part(r);
      for (int i = 0; i < run; ++i) v[r][i] = widen(got.element[i]);
    }
  }

 private:
  __device__ Part& part(int r) { return mine_[r * threads]; }
  Part* mine_;
  int left_, full_;
};

// --- states that meet --------------------------------------------------------------------------------------

template <class State> __device__ State shuffle_xor(const State& state, int mask) {
  auto words = std::bit_cast<std::array<unsigned, sizeof(State) / 4>>(state);
  for (unsigned& word : words) word = __shfl_xor_sync(whole_warp, word, mask);
  return std::bit_cast<State>(words);
}

/// Merging commutes to the last bit: an addition does, and so does OnlineSoftmax.
template <class State> __device__ void meet(State& state, int mask) { state.merge(shuffle_xor(state, mask)); }

/// Which of two this thread goes on with; the partner gets the other one and gives its own.
template <class State> __device__ State share_out(const State& low, const State& high, int mask) {
  const bool upper = thread() & mask;
  State kept = upper ? high : low;
  kept.merge(shuffle_xor(upper ? low : high, mask));
  return kept;
}

/// 4 neighbouring lanes a thread, `group` threads: lane l takes lane l + half until one is left. Each thread
/// gets the result.
template <int group, class State> __device__ State halve(const State (&lane)[4]) {
  const State low = share_out(lane[0], lane[2], group / 2), high = share_out(lane[1], lane[3], group / 2);
  State state = share_out(low, high, group / 4);
  for (int delta = group / 8; delta > 0; delta /= 2) meet(state, delta);
  meet(state, group / 2);  // where lanes 2 and 3 are
  meet(state, group / 4);  // where lane 1 is
  return state;
}

/// The same, of 2 lanes a thread and a whole warp.
template <class State> __device__ State halve_pairs(const State (&lane)[2]) {
  State state = share_out(lane[0], lane[1], warp / 2);
  for (int delta = warp / 4; delta > 0; delta /= 2) meet(state, delta);
  meet(state, warp / 2);
  return state;
}

/// Stride doubling over the states of a warp, of which those beyond `count` are fresh.
template <class State> __device__ void meet_all(State& state, int count) {
  for (int delta = 1; delta < count; delta *= 2) meet(state, delta);
}

__device__ inline float largest_of(float v, int group) {
  for (int delta = group / 2; delta > 0; delta /= 2) v = fmaxf(v, __shfl_xor_sync(whole_warp, v, delta));
  return v;
}

// --- exact denominators ------------------------------------------------------------------------------------

/// An exact sum of numbers in [0, 1], in units of 2^-149. Fewer than 2^39 of them are below 2^188.
struct ExactTotal {
  static constexpr int digits = 6, nan = digits, words = digits + 1;
  std::uint64_t word[words] = {};  ///< digits of 32 bits, with room to wait for carries; how many are NaN

  __device__ void merge(const ExactTotal& other) {
    for (int i = 0; i < words; ++i) word[i] += other.word[i];
  }

  /// Rounded once, to nearest, ties to even.
  __device__ float rounded() const {
    std::uint64_t digit[digits], carry = 0;
    for (int i = 0; i < digits; ++i) {
      carry += word[i];
      digit[i] = carry & 0xffffffffu;
      carry >>= 32;
    }
    if (word[nan] != 0) return from_bits<fp32>(Format<fp32>::canonical_nan);
    std::uint64_t first = 0, second = 0, third = 0;
    bool more = false;
    int top = -1;
    for (int i = digits - 1; i >= 0; --i) {
      if (top < 0 && digit[i] != 0) top = i;
      if (i == top) first = digit[i];
      if (i == top - 1) second = digit[i];
      if (i == top - 2) third = digit[i];
      more = more || (i < top - 2 && digit[i] != 0);
    }
    if (top < 0) return 0;
    return from_bits<fp32>(round_leading<fp32>(false, first, second, third, more, 32 * top - 149));
  }
};

/// What one thread adds before it carries: up to 256 numbers.
struct ExactWindows {
  std::uint64_t window[4] = {};  ///< number i counts units of 2^(32 i - 149)
  unsigned nans = 0;

  __device__ void add(float e) {
    const unsigned bits = __float_as_uint(e), field = bits >> 23, shift = max(field, 1u) - 1;
    const std::uint64_t significand = (bits & 0x7fffffu) | (field != 0 ? 0x800000u : 0u);
    nans += !(e == e);
    for (unsigned i = 0; i < 4; ++i) window[i] += shift >> 5 == i ? significand << (shift & 31) : 0;
  }
  __device__ void move_to(ExactTotal& total) {
    for (int i = 0; i < 4; ++i) {
      total.word[i] += window[i] & 0xffffffffu;
      total.word[i + 1] += window[i] >> 32;
      window[i] = 0;
    }
    total.word[ExactTotal::nan] += nans;
    nans = 0;
  }
};

// --- sums of one row's lanes -------------------------------------------------------------------------------

/// v[r][l] = x becomes e, or d where `log`; e of all rows is added to its lane by `add(lane, e)`. Rows beyond
/// those present are left out, some at a time.
template <bool log, int rows, int run, class Add>
__device__ void exponentials(float (&v)[rows][run], float largest, int present, Add add) {
  constexpr int step = rows < 8 ? 1 : rows == 8 ? 4 : 8;
#pragma unroll
  for (int first = 0; first < rows; first += step)
    if (first < present) {
#pragma unroll
      for (int r = first; r < first + step; ++r)
#pragma unroll
        for (int l = 0; l < run; ++l) {
          const float d = v[r][l] - largest, e = exp_of(d);
          add(l, e);
          v[r][l] = log ? d : e;
        }
    }
}

/// The sum by plain accumulators of F: `meet(lane states)` joins those of all threads and gives s.
template <class F, bool log, int rows, int run, class Meet>
__device__ float plain_sum(float (&v)[rows][run], float largest, int present, Meet meet) {
  Plain<Scalar<F>> lane[run];
  exponentials<log>(v, largest, present, [&](int l, float e) { lane[l].add(Scalar<F>::of(e)); });
  return meet(lane);
}
// --- (a) `group` threads a row, of at most 4·group·rows columns --------------------------------------------

inline constexpr int narrow_threads = 128;
/// So many blocks run at once on a multiprocessor: as the registers allow.
template <int rows> inline constexpr int narrow_blocks = rows == 8 ? 8 : rows == 2 ? 10 : 12;

template <class T, class F, bool log, int group, int rows>
__global__ void __launch_bounds__(narrow_threads, narrow_blocks<rows>) softmax_narrow(Rows<T> p) {
  static_assert(rows == 1 || 4 * group == lanes);
  constexpr int per_block = narrow_threads / group;
  __shared__ Run<T, 4> parts[rows * narrow_threads];
  const int column = static_cast<int>(threadIdx.x) % group * 4, n = static_cast<int>(p.columns);
  const int present = (n - 1) / lanes + 1, all_left = n - column;
  const std::size_t stride = std::size_t{gridDim.x} * per_block;
  const std::size_t first = std::size_t{blockIdx.x} * per_block + threadIdx.x / group;
  const auto place = [&](std::size_t row) { return p.x + anew(row * p.x_stride + column); };
  Ahead<T, rows, 4, narrow_threads> ahead{parts, all_left, n / lanes};
  if (p.aligned && first < p.rows) ahead.ask(place(first));
  // All threads of a block go on until it has no row left: they take part in the shuffles of their warp.
  for (std::size_t row = first; row - threadIdx.x / group < p.rows; row += stride) {
    const int left = anew(all_left);
    const T* x = place(row);
    float v[rows][4];
    if (p.aligned)
      ahead.get(v);
    else
      for (int r = 0; r < rows; ++r)
        load_run<false, 4>(x + r * lanes, row < p.rows ? left - r * lanes : 0, v[r]);
    float largest = v[0][0];
    for (int r = 0; r < rows; ++r)
      for (const float element : v[r]) largest = fmaxf(largest, element);
    largest = largest_of(largest, group);
    if (p.aligned && row + stride < p.rows) ahead.ask(place(row + stride));
    const float sum = plain_sum<F, log>(v, largest, present,
                                        [](const auto& lane) { return halve<group>(lane).result().v; });
    const Finish finish{log, sum};
    if (row >= p.rows) continue;
    T* y = p.y + anew(row * p.y_stride + column);
    const auto write = [&]<bool aligned>() {
      if (finish.is_nan)
        for (int r = 0; r < rows; ++r) Finish::write_nan<aligned, 4>(y + r * lanes, left - r * lanes);
      else
        for_rows<rows>(n / lanes, [&](int r, auto surely) {
          finish.template write<aligned, 4>(y + r * lanes, surely ? 4 : left - r * lanes, v[r]);
        });
    };
    p.aligned ? write.template operator()<true>() : write.template operator()<false>();
  }
}

// --- (b) one block or a cluster of blocks a row, held in registers: 64 threads a leaf, 2 lanes a thread
// -----

inline constexpr int leaf_threads = lanes / 2, held_threads = 256, most_cluster = 8;
inline constexpr int most_held_leaves = held_threads / leaf_threads * most_cluster;

/// Blocks that share a row.
struct Cluster {
#if __CUDA_ARCH__ >= 900
  unsigned size = cooperative_groups::this_cluster().num_blocks();
  unsigned rank = cooperative_groups::this_cluster().block_rank();
  /// What that block's shared memory has here.
  template <class V> __device__ V& in(unsigned block, V& here) const {
    return size == 1 ? here : *cooperative_groups::this_cluster().map_shared_rank(&here, block);
  }
  __device__ void sync() const {
    if (size == 1)
      __syncthreads();
    else
      cooperative_groups::this_cluster().sync();
  }
#else
  static constexpr unsigned size = 1, rank = 0;
  template <class V> __device__ V& in(unsigned, V& here) const { return here; }
  __device__ void sync() const { __syncthreads(); }
#endif
};

template <class T, class F, bool log>
__global__ void __launch_bounds__(held_threads, 3) softmax_held(Rows<T> p) {
  constexpr int rows = Order::rows, block_warps = held_threads / warp;
  __shared__ float largest_of_warp[most_cluster][block_warps];
  __shared__ float2 half_of_leaf[held_threads];
  __shared__ float sum_of_leaf[most_held_leaves];
  extern __shared__ uint4 parts[];
  const Cluster cluster;
  const int leaves = static_cast<int>(blockDim.x) / leaf_threads, all_leaves = leaves * int(cluster.size);
  const int my_leaf = static_cast<int>(cluster.rank) * leaves + static_cast<int>(threadIdx.x) / leaf_threads;
  const int column = my_leaf * leaf + static_cast<int>(threadIdx.x) % leaf_threads * 2;
  const int all_left = static_cast<int>(p.columns) - column;
  const int in_leaf = static_cast<int>(p.columns) - my_leaf * leaf;
  const int present = in_leaf <= 0 ? 0 : in_leaf < leaf ? (in_leaf - 1) / lanes + 1 : rows;
  const int full = in_leaf < 0 ? 0 : in_leaf / lanes;
  const std::size_t stride = gridDim.x / cluster.size;
  const auto place = [&](std::size_t row) { return p.x + anew(row * p.x_stride + column); };
  Ahead<T, rows, 2, leaf_threads> ahead{reinterpret_cast<Run<T, 2>*>(parts), all_left, full};
  if (cluster.size > 1) cluster.sync();  // all blocks run: their shared memory is there
  std::size_t row = blockIdx.x / cluster.size;
  if (p.aligned && row < p.rows) ahead.ask(place(row));
  for (; row < p.rows; row += stride) {
    const int left = anew(all_left);
    const T* x = place(row);
    float v[rows][2];
    if (p.aligned) {
      ahead.get(v);
    } else {
#pragma unroll
      for (int r = 0; r < rows; ++r) load_run<false, 2>(x + r * lanes, left - r * lanes, v[r]);
    }
    float chain[4] = {absent, absent, absent, absent};
#pragma unroll
    for (int r = 0; r < rows; r += 2)
      for (int i = 0; i < 4; ++i) chain[i] = fmaxf(chain[i], v[r + i / 2][i % 2]);
    float largest = largest_of(fmaxf(fmaxf(chain[0], chain[1]), fmaxf(chain[2], chain[3])), warp);
    if (thread() < int(cluster.size))
      cluster.in(thread(), largest_of_warp[cluster.rank][warp_index()]) = largest;
    cluster.sync();  // the largest of all warps
    if (p.aligned && row + stride < p.rows) ahead.ask(place(row + stride));
    for (int i = thread(); i < int(cluster.size) * warps(); i += warp)
      largest = fmaxf(largest, largest_of_warp[i / warps()][i % warps()]);
    largest = largest_of(largest, warp);
    const float sum = plain_sum<F, log>(v, largest, present, [&](auto& lane) {
      using State = Plain<Scalar<F>>;
      half_of_leaf[threadIdx.x] = {lane[0].sum.v, lane[1].sum.v};
      __syncthreads();                                        // both halves
      const float2 other = half_of_leaf[threadIdx.x ^ warp];  // lane l and lane l + 64
      lane[0].merge(State{{other.x}});
      lane[1].merge(State{{other.y}});
      State state = halve_pairs(lane);
      if (all_leaves == 1) return state.result().v;
      if (threadIdx.x % leaf_threads < cluster.size)
        cluster.in(threadIdx.x % leaf_threads, sum_of_leaf[my_leaf]) = state.sum.v;
      cluster.sync();                                    // the sums of all leaves
      state.sum.v = sum_of_leaf[thread() % all_leaves];  // a power of two
      meet_all(state, all_leaves);
      return state.result().v;
    });
    const Finish finish{log, sum};
    T* y = p.y + anew(row * p.y_stride + column);
    const auto write = [&]<bool aligned>() {
      if (finish.is_nan) {
        for (int r = 0; r < rows; ++r) Finish::write_nan<aligned, 2>(y + r * lanes, left - r * lanes);
      } else {
        for_rows<rows>(full, [&](int r, auto surely) {
          finish.template write<aligned, 2>(y + r * lanes, surely ? 2 : left - r * lanes, v[r]);
        });
      }
    };
    p.aligned ? write.template operator()<true>() : write.template operator()<false>();
  }
}

// --- (c) one block a row of any width, read again: three times, or twice in the online form
// -----------------

inline constexpr int wide_threads = 512, chunk_leaves = warp * warp;

/// One leaf by one warp: 4 neighbouring lanes a thread. `add(lane, x)`; n columns from x on.
template <class T, class Add> __device__ void for_leaf(const T* x, std::size_t n, bool aligned, Add add) {
  constexpr int batch = 4;
  const int in_leaf = n < leaf ? static_cast<int>(n) : leaf, column = 4 * thread();
#pragma unroll 1
  for (int r = 0; r * lanes < in_leaf; r += batch) {
    float v[batch][4];
    const T* at = x + r * lanes + column;
    const int left = in_leaf - r * lanes - column;
    if (aligned)
      for (int i = 0; i < batch; ++i) load_run<true, 4>(at + i * lanes, left - i * lanes, v[i]);
    else
      for (int i = 0; i < batch; ++i) load_run<false, 4>(at + i * lanes, left - i * lanes, v[i]);
    for (int i = 0; i < batch; ++i)
      for (int l = 0; l < 4; ++l) add(l, v[i][l]);
  }
}

/// The state of a row in the order `tree`, in each thread of the block. `add(lane's state, x)`.
template <class State, class T, class Add> __device__ State tree_of(const T* x, const Rows<T>& p, Add add) {
  // Without constructors, which shared memory cannot have.
  alignas(State) __shared__ std::byte memory[(chunk_leaves + warp) * sizeof(State)];
  State *of_leaf = reinterpret_cast<State*>(memory), *of_group = of_leaf + chunk_leaves;
  // Waiting at level i: the state of the 2^i chunks before, where bit i of the number of chunks is set.
  State waiting[32], all;
  const std::size_t leaves = Order::leaves(p.columns), chunks = (leaves - 1) / chunk_leaves + 1;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const int here = static_cast<int>(min(leaves - chunk * chunk_leaves, std::size_t{chunk_leaves}));
    for (int k = warp_index(); k < here; k += warps()) {
      const std::size_t first = (chunk * chunk_leaves + k) * leaf;
      State lane[4];
      for_leaf(x + first, p.columns - first, p.aligned, [&](int l, float element) { add(lane[l], element); });
      const State state = halve<warp>(lane);
      if (thread() == 0) of_leaf[k] = state;
    }
    __syncthreads();  // the states of all leaves
    for (int g = warp_index(); g < warp; g += warps()) {
      const int k = g * warp + thread();
      State state;
      if (k < here) state = of_leaf[k];
      meet_all(state, warp);
      if (thread() == 0) of_group[g] = state;
    }
    __syncthreads();  // those of all groups
    all = of_group[thread()];
    meet_all(all, warp);
    int level = 0;
    for (; chunk >> level & 1; ++level) all.merge(waiting[level]);
    waiting[level] = all;
    __syncthreads();  // nobody reads any more when the next chunk's come
  }
  int level = 0;
  while (!(chunks >> level & 1)) ++level;
  all = waiting[level];
  while (chunks >> ++level)
    if (chunks >> level & 1) all.merge(waiting[level]);
  return all;
}

template <class T> __device__ float largest_of_row(const T* x, const Rows<T>& p) {
  __shared__ float of_warp[warp];
  float largest = absent;
  for (std::size_t k = warp_index(); k < Order::leaves(p.columns); k += warps())
    for_leaf(x + k * leaf, p.columns - k * leaf, p.aligned,
             [&](int, float element) { largest = fmaxf(largest, element); });
  largest = largest_of(largest, warp);
  if (thread() == 0) of_warp[warp_index()] = largest;
  __syncthreads();  // those of all warps
  largest = largest_of(thread() < warps() ? of_warp[thread()] : absent, warp);
  __syncthreads();  // nobody reads any more when the next row's come
  return largest;
}

template <class T> __device__ float exact_sum_of_row(const T* x, const Rows<T>& p, float largest) {
  alignas(ExactTotal) __shared__ std::byte memory[wide_threads / warp * sizeof(ExactTotal)];
  auto* of_warp = reinterpret_cast<ExactTotal*>(memory);
  ExactTotal total;
  ExactWindows windows;
  for (std::size_t k = warp_index(); k < Order::leaves(p.columns); k += warps()) {
    for_leaf(x + k * leaf, p.columns - k * leaf, p.aligned,
             [&](int, float element) { windows.add(exp_of(element - largest)); });
    windows.move_to(total);
  }
  for (int delta = 1; delta < warp; delta *= 2) meet(total, delta);
  if (thread() == 0) of_warp[warp_index()] = total;
  __syncthreads();  // those of all warps
  total = of_warp[0];
  for (int w = 1; w < warps(); ++w) total.merge(of_warp[w]);
  __syncthreads();  // nobody reads any more when the next row's come
  return total.rounded();
}

template <class T, bool online> __global__ void __launch_bounds__(wide_threads, 2) softmax_wide(Rows<T> p) {
  for (std::size_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = p.x + row * p.x_stride;
    T* y = p.y + row * p.y_stride;
    float largest, sum;
    if constexpr (online) {
      const auto state = tree_of<OnlineSoftmax<One>>(
          x, p, [](OnlineSoftmax<One>& lane, float element) { lane.add(One{element}); });
      largest = state.largest.v;
      sum = state.denominator().v;
    } else {
      largest = largest_of_row(x, p);
      const auto plain = [&]<class F>() {
        return tree_of<Plain<Scalar<F>>>(x, p,
                                         [&](Plain<Scalar<F>>& lane, float element) {
                                           lane.add(Scalar<F>::of(exp_of(element - largest)));
                                         })
            .result()
            .v;
      };
      sum = p.accumulator == SoftmaxSum::exact ? exact_sum_of_row(x, p, largest)
                                               : by_accumulator(p.accumulator, plain);
    }
    const Finish finish{p.log, sum};
    const auto write = [&]<bool aligned>() {
      for (std::size_t c = std::size_t{threadIdx.x} * 4; c < p.columns; c += std::size_t{blockDim.x} * 4) {
        float v[4];
        const auto left = static_cast<std::ptrdiff_t>(p.columns - c);
        load_run<aligned, 4>(x + c, left, v);
        for (float& element : v) {
          const float d = element - largest;
          element = p.log ? d : exp_of(d);
        }
        if (finish.is_nan)
          Finish::write_nan<aligned, 4>(y + c, left);
        else
          finish.template write<aligned, 4>(y + c, left, v);
      }
    };
    p.aligned ? write.template operator()<true>() : write.template operator()<false>();
    __syncthreads();  // in place: nobody reads this row any more; and shared memory is free
  }
}

}  // namespace samesum::gpu::softmaxes
