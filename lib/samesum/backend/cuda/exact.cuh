/// The kernel of exact sums of vectors. Integer addition is associative, so the result does not depend on the
/// order of arrival.
#pragma once

#include "samesum/backend/cuda/exact_bins.cuh"

namespace samesum::gpu {

template <class T> using Summer = std::conditional_t<sizeof(T) == 8, Expansions, Bins<T>>;

/// The aligned vectors of n elements: `head` elements precede them, and those from `tail` on follow. A thread
/// loads them in batches.
template <class T> struct AlignedVectors {
  struct Batch {
    uint4 vector[exact_batch];
    int count;
  };
  std::size_t head, count, tail, stride;
  const uint4* of_thread;

  __device__ AlignedVectors(const T* x, std::size_t n) {
    const std::size_t misaligned = (16 - reinterpret_cast<std::uintptr_t>(x) % 16) % 16 / sizeof(T);
    head = min(misaligned, n);
    count = (n - head) / Vector<T>::size;
    tail = head + count * Vector<T>::size;
    of_thread = reinterpret_cast<const uint4*>(x + head) + threadIdx.x;
    stride = std::size_t{gridDim.x} * exact_threads;
  }
  /// Loads a batch of the thread. Its first vector is `first` for thread 0 of the block.
  __device__ __forceinline__ Batch load(std::size_t first) const {
    Batch batch;
    batch.count = exact_batch;
    if (first + threadIdx.x + (exact_batch - 1) * stride < count) {
      for (int i = 0; i < exact_batch; ++i) batch.vector[i] = of_thread[first + i * stride];
    } else {
      for (int i = exact_batch - 1; i >= 0; --i)
        if (first + threadIdx.x + i * stride < count)
          batch.vector[i] = of_thread[first + i * stride];
        else
          batch.count = i;
    }
    return batch;
  }
};

/// The bits of a vector in which an element differs from -0.
template <class T> __device__ unsigned other_than_minus_zero(const uint4& w) {
  constexpr unsigned low = sizeof(T) == 8 ? 0 : sizeof(T) == 4 ? 0x80000000u : 0x80008000u;
  constexpr unsigned high = sizeof(T) == 2 ? 0x80008000u : 0x80000000u;
  return (w.x ^ low) | (w.y ^ high) | (w.z ^ low) | (w.w ^ high);
}

/// Sums n elements exactly. The grid may have any size up to GridDigits::most_blocks, with at most 2^30
/// elements per block.
template <class T>
__global__ void __launch_bounds__(exact_threads, sizeof(T) == 8 ? 3 : 4)
    sum_exactly(const T* __restrict__ x, std::size_t n, Header* header, ExactDestination result) {
  __shared__ typename Summer<T>::Shared shared;
  __shared__ Digits digits;
  __shared__ unsigned flags_of_warp[exact_threads / warp];
  const AlignedVectors<T> vectors{x, n};
  std::size_t first = std::size_t{blockIdx.x} * exact_threads;  // first vector of the block
  auto next = vectors.load(first);  // one batch is in flight while another is added
  digits.clear();
  Summer<T> sum{shared, digits};
  unsigned flags = n > 0 ? Exact::seen_any : 0, other = 0;
  const auto add_one = [&](T element) {
    flags |= sum.add(element);
    other |= to_bits(element) != Format<T>::sign_bit;
  };
  if (blockIdx.x == 0 && threadIdx.x < vectors.head) add_one(x[threadIdx.x]);
  if (blockIdx.x == 0 && threadIdx.x < n - vectors.tail) add_one(x[vectors.tail + threadIdx.x]);
  do {
#pragma unroll 1
    for (int b = 0; b < Summer<T>::batches && first < vectors.count; ++b) {
      const auto batch = next;
      first += exact_batch * vectors.stride;
      next = vectors.load(first);
#pragma unroll
      for (int i = 0; i < exact_batch; ++i) {
        if (i >= batch.count) break;
        const uint4 w = batch.vector[i];
        other |= other_than_minus_zero<T>(w);
        flags |= sum.add(reinterpret_cast<const Vector<T>&>(w));
      }
    }
    if (other) flags |= Exact::seen_other_than_minus_zero;
    flags = __reduce_or_sync(whole_warp, flags);
    if (thread() == 0) flags_of_warp[warp_index()] = flags;
    sum.finish(shared, digits);
  } while (first < vectors.count);

  if (warp_index() > 0) return;  // one warp finishes
  flags = __reduce_or_sync(whole_warp, thread() < warps() ? flags_of_warp[thread()] : 0);
  if (gridDim.x == 1 ||
      add_to_grid_digits(digits, Summer<T>::first_digit, Summer<T>::last_digit, flags, header->grid_digits))
    write(result, digits, flags);
}

}  // namespace samesum::gpu
