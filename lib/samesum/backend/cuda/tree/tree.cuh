/// Sums over a tree in one launch: a warp sums a leaf, a block merges neighbouring leaves, and the last block
/// of an aligned group to arrive merges the group. The order of arrival cannot change the bits.
#pragma once

#include <cuda/atomic>

#include "samesum/accumulator/plain.hpp"
#include "samesum/backend/cuda/tree/leaf.cuh"
#include "samesum/backend/cuda/tree/merge_states.cuh"
#include "samesum/operation/reducer.hpp"
#include "samesum/operation/term.hpp"

namespace samesum::gpu {

/// Counts an arrival, and returns whether it is the last of `arrivals`. One thread of a block calls it. If it
/// returns true, the calling thread can read everything that the other blocks wrote before their own
/// arrivals; after a barrier, so can the other threads of its block. Only the last arrival executes a fence:
/// one per block would cost a tenth of the bandwidth.
__device__ inline bool arrive_is_last(unsigned& counter, unsigned arrivals) {
  ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device> arrived{counter};
  if (arrived.fetch_add(1, ::cuda::memory_order_release) + 1 < arrivals) return false;
  ::cuda::atomic_thread_fence(::cuda::memory_order_acquire, ::cuda::thread_scope_device);
  counter = 0;  // reset for the next call; placed after the fence, which would otherwise wait for this store
  return true;
}

/// Finish policy for orders with a fixed tree: the last block of each group to arrive merges the group. In
/// memory, the states of a level follow those of the level below; each group has an arrival counter.
template <class State> struct LastBlockMerge {
  unsigned* arrived;
  State* states;

  __host__ __device__ static std::size_t groups(std::size_t count, int threads) {
    return (count - 1) / group_size(threads) + 1;
  }

  /// Delivers state k of `count`, which thread 0 of the block holds. The block that completes a group merges
  /// it and goes on with the group's state one level up. Returns true in the thread that holds the state of
  /// the whole tree.
  __device__ bool operator()(State& state, std::size_t k, std::size_t count, State* shared) {
    __shared__ bool last;
    const int threads = static_cast<int>(blockDim.x);
    while (count > 1) {
      const std::size_t group = k / group_size(threads), begin = group * group_size(threads);
      const int members = static_cast<int>(min(count - begin, group_size(threads)));
      if (threadIdx.x == 0) {
        states[k] = state;
        last = arrive_is_last(arrived[group], static_cast<unsigned>(members));
      }
      __syncthreads();  // `last` is written; if true, the states of the other blocks are visible
      if (!last) return false;
      state = merge_group(states + begin, members, shared);
      arrived += groups(count, threads);
      states += count;
      k = group;
      count = groups(count, threads);
      __syncthreads();  // all threads have read `last` before the next level overwrites it
    }
    return threadIdx.x == 0;
  }
};

/// Finish policy for the atomic orders: each block adds its sum to one cell atomically.
template <class F> struct AddToCell {
  using State = Plain<Scalar<F>>;
  unsigned* arrived;
  void* cell;

  /// 16-bit formats use the packed atomic instruction, and add -0 to the other half.
  __device__ void add(F x) const {
    if constexpr (sizeof(F) == 2)
      atomicAdd(static_cast<typename Pair<F>::Native*>(cell),
                Pair<F>::of(x, from_bits<F>(Format<F>::sign_bit)).native());
    else
      atomicAdd(static_cast<F*>(cell), x);
  }

  /// Counts an arrival; the last of `count` reads the sum and resets the cell to -0.
  __device__ bool arrive(State& state, unsigned count) const {
    if (!arrive_is_last(*arrived, count)) return false;
    volatile auto* bits = static_cast<BitsOf<F>*>(cell);
    state.sum = Scalar<F>::of(from_bits<F>(*bits));
    *bits = Format<F>::sign_bit;
    return true;
  }

  __device__ bool operator()(State& state, std::size_t, std::size_t count, State*) const {
    if (threadIdx.x != 0) return false;
    if (count == 1) return true;
    add(to_format<F>(state.result()));
    return arrive(state, static_cast<unsigned>(count));
  }
};

/// The reducer of a sum, as far as it finishes one.
template <template <class> class A, class F> struct SumReducer {
  using State = TermSum<A, Scalar<F>>;
  __device__ void finish(const State& state, std::uint64_t, std::size_t, void* out) const {
    *static_cast<F*>(out) = to_format<F>(state.sum.result());
  }
};

/// Minimum resident blocks of 256 threads per multiprocessor for __launch_bounds__: the most that leave each
/// thread enough registers.
template <class A, class T>
inline constexpr int sum_resident_blocks = sizeof(T) == 4 && sizeof(A) <= 4   ? 4
                                           : sizeof(T) <= 4 && sizeof(A) <= 8 ? 3
                                                                              : 2;

/// Each block sums tiles of as many neighbouring leaves as it has warps, a power of two.
template <class Shape, template <class> class A, class F, class T, class Finish>
__global__ void __launch_bounds__(most_threads, sum_resident_blocks<A<Scalar<F>>, T>)
    sum_leaves(const T* __restrict__ x, std::size_t n, Finish finish, Destination out) {
  using State = A<Scalar<F>>;
  __shared__ alignas(State) unsigned char memory[most_threads / warp * sizeof(State)];
  State* shared = reinterpret_cast<State*>(memory);
  const std::size_t leaves = Shape::leaves(n), per_tile = static_cast<std::size_t>(warps());
  const std::size_t tiles = (leaves + per_tile - 1) / per_tile;
  for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::size_t k = tile * per_tile + static_cast<std::size_t>(warp_index());
    State state;
    if (k < leaves)
      state = WarpLeaf<Shape, A, F, T>::sum(x + k * Shape::leaf,
                                            static_cast<int>(min(n - k * Shape::leaf, Shape::leaf)));
    merge_warps(state, static_cast<int>(min(leaves - tile * per_tile, per_tile)), shared);
    if (Finish{finish}(state, tile, tiles, shared)) out.write(SumReducer<A, F>{}, {state}, n, 0);
    __syncthreads();  // all threads have read `shared` before the next tile overwrites it
  }
  if (n == 0 && blockIdx.x == 0 && threadIdx.x == 0) *static_cast<BitsOf<F>*>(out.out) = 0;
}

/// The textbook loop, on one thread.
template <class A, class F, class T>
__global__ void sum_in_turn(const T* __restrict__ x, std::size_t n, BitsOf<F>* out) {
  A sum;
  for (std::size_t i = 0; i < n; ++i) sum.add(load<Scalar<F>>(x + i));
  *out = n == 0 ? 0 : to_bits(to_format<F>(sum.result()));
}

/// The worst case: one atomic addition per element.
template <class F, class T>
__global__ void sum_one_by_one(const T* __restrict__ x, std::size_t n, AddToCell<F> cell, BitsOf<F>* out) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
    cell.add(to_format<F>(load<Scalar<F>>(x + i)));
  __syncthreads();  // all threads of the block have added their elements
  if (threadIdx.x != 0) return;
  Plain<Scalar<F>> sum;
  if (cell.arrive(sum, gridDim.x)) *out = n == 0 ? 0 : to_bits(to_format<F>(sum.result()));
}

}  // namespace samesum::gpu
