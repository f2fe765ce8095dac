/// Softmax of rows of any width on a GPU: a block reads a row three times, or twice in the online form. For
/// more than 1024 columns of fp64 the only kernel, and for rows that no cluster holds.
#pragma once

#include "samesum/backend/cuda/softmax/exact.cuh"
#include "samesum/operation/online_softmax.hpp"

namespace samesum::gpu::softmaxes {

inline constexpr int wide_threads = 512, chunk_leaves = warp * warp;

/// Reads one leaf with one warp, 4 neighbouring lanes per thread, and calls add(lane, x). The row has n
/// columns from x on.
template <class C, class T, class Add>
__device__ void for_leaf(const T* x, std::size_t n, bool aligned, Add add) {
  constexpr int batch = 4;
  const int in_leaf = n < leaf ? static_cast<int>(n) : leaf, column = 4 * thread();
#pragma unroll 1
  for (int r = 0; r * lanes < in_leaf; r += batch) {
    C v[batch][4];
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

/// The state of a row in the order `tree`, in each thread of the block. add(state, x) adds x to the state of
/// a lane.
template <class State, class C, class T, class Add>
__device__ State tree_of(const T* x, const SoftmaxRows<T>& p, Add add) {
  // Raw bytes, since variables in shared memory cannot have constructors.
  alignas(State) __shared__ std::byte memory[(chunk_leaves + warp) * sizeof(State)];
  State *of_leaf = reinterpret_cast<State*>(memory), *of_group = of_leaf + chunk_leaves;
  // waiting[i] is the state of the preceding 2^i chunks if bit i of the number of chunks is set.
  State waiting[32], all;
  const std::size_t leaves = Order::leaves(p.columns), chunks = (leaves - 1) / chunk_leaves + 1;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const int here = static_cast<int>(min(leaves - chunk * chunk_leaves, std::size_t{chunk_leaves}));
    for (int k = warp_index(); k < here; k += warps()) {
      const std::size_t first = (chunk * chunk_leaves + k) * leaf;
      State lane[4];
      for_leaf<C>(x + first, p.columns - first, p.aligned, [&](int l, C element) { add(lane[l], element); });
      const State state = halve<warp>(lane);
      if (thread() == 0) of_leaf[k] = state;
    }
    __syncthreads();  // all warps have written the states of their leaves
    for (int g = warp_index(); g < warp; g += warps()) {
      const int k = g * warp + thread();
      State state;
      if (k < here) state = of_leaf[k];
      merge_all(state, warp);
      if (thread() == 0) of_group[g] = state;
    }
    __syncthreads();  // all warps have written the states of their groups
    all = of_group[thread()];
    merge_all(all, warp);
    int level = 0;
    for (; chunk >> level & 1; ++level) all.merge(waiting[level]);
    waiting[level] = all;
    __syncthreads();  // all threads have read the groups before the next chunk overwrites them
  }
  int level = 0;
  while (!(chunks >> level & 1)) ++level;
  all = waiting[level];
  while (chunks >> ++level)
    if (chunks >> level & 1) all.merge(waiting[level]);
  return all;
}

/// Reads a row with all threads of the block, in any order, and calls add(x). After at most 2^13 numbers of a
/// warp all of them call finish_part().
template <class C, class T, class Add, class FinishPart>
__device__ void for_row(const T* x, const SoftmaxRows<T>& p, Add add, FinishPart finish_part) {
  constexpr int batch = 4, runs = (1 << 13) / (4 * warp);
  const std::size_t step = std::size_t{blockDim.x} * 4;
  for (std::size_t begin = 0; begin < p.columns; begin += runs * step) {
#pragma unroll 1
    for (int r = 0; r < runs && begin + r * step < p.columns; r += batch) {
      const std::size_t column = begin + r * step + std::size_t{threadIdx.x} * 4;
      const auto left = static_cast<std::ptrdiff_t>(p.columns - column);
      C v[batch][4];
      by_alignment(p.aligned, [&]<bool aligned>() {
        for (int i = 0; i < batch; ++i)
          load_run<aligned, 4>(x + column + i * step, left - static_cast<std::ptrdiff_t>(i * step), v[i]);
      });
      for (const auto& of_run : v)
        for (const C element : of_run) add(element);
    }
    finish_part();
  }
}

template <class C, class T> __device__ C largest_of_row(const T* x, const SoftmaxRows<T>& p) {
  __shared__ C of_warp[warp];
  C largest = absent<C>;
  for_row<C>(
      x, p, [&](C element) { largest = larger(largest, element); }, [] {});
  largest = largest_of(largest, warp);
  if (thread() == 0) of_warp[warp_index()] = largest;
  __syncthreads();  // all warps have written their largest elements
  largest = largest_of(thread() < warps() ? of_warp[thread()] : absent<C>, warp);
  __syncthreads();  // all threads have read `of_warp` before the next row overwrites it
  return largest;
}

/// Rounds a total as rounded() does, in a function of its own, so that a row's loops keep their registers.
template <class C, int words>
__device__ __noinline__ C rounded_apart(const WideInteger<words>& total, int unit) {
  return rounded<C>(total, unit);
}

/// Adds in one window after another, from the top, until what is left out cannot matter.
template <class C, class T> __device__ C exact_sum_of_row(const T* x, const SoftmaxRows<T>& p, C largest) {
  using Sum = ExponentialSum<C>;
  constexpr int log2_part = 13, windows = 3;
  constexpr int unit = -256;  // the third window of fp64 holds numbers of 2^-197 and more, of units of 2^-249
  __shared__ ExactTotal<unit> held;
  __shared__ AnyTotal all;
  const int log2_columns = 64 - __clzll(static_cast<long long>(p.columns));
  const auto of_each = [&](auto add, auto finish_part) {
    for_row<C>(
        x, p, [&](C element) { add(exp_of(element - largest)); }, finish_part);
  };
  if (threadIdx.x == 0) held.clear();
  __syncthreads();  // the total is 0
  C result;
  bool sure = false;
  for (int window = 0, top = 1; window < windows && !sure; ++window) {
    Sum sum{top, log2_part};
    of_each([&](C e) { sum.add(e); }, [&] { sum.move_to(held, unit); });
    const bool is_nan = __syncthreads_or(sum.flags() & Sum::seen_nan),
               incomplete = __syncthreads_or(sum.flags() & Sum::left_out);  // all have moved their sums
    top = sum.end_of_rest();
    ExactTotal<unit> more = held;
    if (incomplete) more.add_through(false, 1, top + log2_columns - unit);  // more than all that is left out
    result = is_nan ? from_bits<C>(Format<C>::canonical_nan) : rounded_apart<C>(held, unit);
    sure = is_nan || !incomplete || result == rounded_apart<C>(more, unit);
    __syncthreads();  // all threads have read the total before it grows, or the next row clears it
  }
  if (sure) return result;
  if (threadIdx.x == 0) all.clear();
  __syncthreads();  // the total is 0
  of_each([&](C e) { deposit<Atomically>(all, e, any_unit); }, [] {});
  __syncthreads();  // all exponentials have been added
  result = rounded_apart<C>(all, any_unit);
  __syncthreads();  // all threads have read the total before the next row clears it
  return result;
}

template <class T, class C, bool online>
__global__ void __launch_bounds__(wide_threads, sizeof(C) == 8 ? 1 : 2) softmax_wide(SoftmaxRows<T> p) {
  using One = Scalar<C>;
  for (std::size_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = p.x + row * p.x_stride;
    T* y = p.y + row * p.y_stride;
    C largest, sum;
    if constexpr (online) {
      using Online = OnlineSoftmax<One>;
      const auto state = tree_of<Online, C>(x, p, [](Online& lane, C element) { lane.add(One{element}); });
      largest = state.largest.v;
      sum = state.denominator().v;
    } else {
      largest = largest_of_row<C>(x, p);
      const auto plain = [&]<class F>() -> C {
        return tree_of<Plain<Scalar<F>>, C>(x, p,
                                            [&](Plain<Scalar<F>>& lane, C element) {
                                              lane.add(Scalar<F>::of(exp_of(element - largest)));
                                            })
            .result()
            .v;
      };
      sum = p.accumulator == SoftmaxSum::exact ? exact_sum_of_row<C>(x, p, largest)
                                               : by_accumulator<C>(p.accumulator, plain);
    }
    const Finish<C> finish{p.log, sum};
    by_alignment(p.aligned, [&]<bool aligned>() {
      for (std::size_t c = std::size_t{threadIdx.x} * 4; c < p.columns; c += std::size_t{blockDim.x} * 4) {
        C v[4];
        const auto left = static_cast<std::ptrdiff_t>(p.columns - c);
        load_run<aligned, 4>(x + c, left, v);
        for (C& element : v) {
          const C d = element - largest;
          element = p.log ? d : exp_of(d);
        }
        if (finish.is_nan)
          Finish<C>::template write_nan<aligned, 4>(y + c, left);
        else
          finish.template write<aligned, 4>(y + c, left, v);
      }
    });
    __syncthreads();  // all threads are done with this row and with shared memory
  }
}

}  // namespace samesum::gpu::softmaxes
