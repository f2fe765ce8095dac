/// The threads that reduce a leaf or a row in a window.
#pragma once

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/window/wide_integer.hpp"

namespace samesum::gpu {
namespace {

/// Returns the larger of two values.
struct Larger {
  template <class X> __device__ X operator()(X a, X b) const { return a > b ? a : b; }
};

/// Threads that share a leaf: a warp, or an aligned part of one. All functions are called by the whole warp.
struct WarpGroup {
  /// Binades by which later terms may exceed those that place the window.
  static constexpr int headroom = 6;
  static constexpr bool is_one_thread = false;
  /// Words of a narrow window of elements of fp64 beyond three.
  static constexpr int more_words = 0;
  static constexpr bool may_hold_all = false;  ///< whether it may hold all elements of a result in one tile
  int threads;                                 ///< a power of two

  __device__ int index() const { return thread() & (threads - 1); }
  __device__ std::uint32_t largest(std::uint32_t x) const {
    if (threads == warp) return __reduce_max_sync(whole_warp, x);
    for (int delta = threads / 2; delta > 0; delta /= 2) x = max(x, __shfl_xor_sync(whole_warp, x, delta));
    return x;
  }
  __device__ std::uint32_t together(std::uint32_t flags) const {
    for (int delta = threads / 2; delta > 0; delta /= 2) flags |= __shfl_xor_sync(whole_warp, flags, delta);
    return flags;
  }
  __device__ double sum(double x) const {
    for (int delta = threads / 2; delta > 0; delta /= 2) x += __shfl_xor_sync(whole_warp, x, delta);
    return x;
  }
  /// Combines one value per thread; all threads get the result.
  template <class X, class Combine> __device__ X combined(X x, Combine combine) const {
    for (int delta = threads / 2; delta > 0; delta /= 2) x = combine(x, shuffle_xor(x, delta));
    return x;
  }
  /// Whether the condition holds in all threads of the group.
  __device__ bool all(bool condition) const {
    if (threads == warp) return __all_sync(whole_warp, condition);
    const unsigned group = ((1u << threads) - 1) << (thread() & ~(threads - 1));
    return (__ballot_sync(whole_warp, condition) & group) == group;
  }
  /// Whether the condition holds in all groups of the warp.
  __device__ static bool everywhere(bool condition) { return __all_sync(whole_warp, condition); }
  /// The most elements of a group of the warp.
  __device__ int longest(int n) const { return threads == warp ? n : __reduce_max_sync(whole_warp, n); }
};

/// All threads of a block, which hold a row, or a part of one.
struct BlockGroup {
  static constexpr int most_threads = 512;
  static constexpr bool may_hold_all = true;
  int threads = static_cast<int>(blockDim.x);

  __device__ static int index() { return static_cast<int>(threadIdx.x); }
  template <class X, class Combine> __device__ X combined(X x, Combine combine) const {
    __shared__ alignas(16) unsigned char memory[most_threads / warp * sizeof(X)];
    X* const of_warp = reinterpret_cast<X*>(memory);
    x = WarpGroup{warp}.combined(x, combine);
    __syncthreads();  // all threads have read what an earlier call wrote
    if (thread() == 0) of_warp[warp_index()] = x;
    __syncthreads();  // all warps have written their values
    x = of_warp[0];
    for (int w = 1; w < warps(); ++w) x = combine(x, of_warp[w]);
    return x;
  }
  __device__ static bool everywhere(bool condition) { return __syncthreads_and(condition); }
};

/// One thread, which reduces a part of a column. The threads of a warp read neighbouring columns, and leave
/// the narrow window together, so that they go on reading the same rows.
struct OneThread {
  static constexpr int headroom = 8, more_words = 1;
  static constexpr bool is_one_thread = true;
  static constexpr bool may_hold_all = true;
  static constexpr int threads = 1;
  unsigned present;  ///< the threads of the warp that have a part

  __device__ static int index() { return 0; }
  __device__ static std::uint32_t largest(std::uint32_t x) { return x; }
  __device__ static std::uint32_t together(std::uint32_t flags) { return flags; }
  __device__ static double sum(double x) { return x; }
  template <class X, class Combine> __device__ static X combined(X x, Combine) { return x; }
  __device__ static bool all(bool condition) { return condition; }
  __device__ bool everywhere(bool condition) const { return __all_sync(present, condition); }
  __device__ int longest(int n) const { return __reduce_max_sync(present, n); }
};

/// Replaces the integer of each thread by the sum of those of its group.
template <class Group, int count> __device__ void add_across(Group group, WideInteger<count>& sum) {
  for (int delta = group.threads / 2; delta > 0; delta /= 2) {
    Wide carry = 0;
#pragma unroll 1
    for (std::uint64_t& word : sum.word) {
      carry += Wide{word} + __shfl_xor_sync(whole_warp, word, delta);
      word = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
  }
}

}  // namespace
}  // namespace samesum::gpu
