/// Extrema by key.
#pragma once

#include "samesum/backend/cuda/by_key.cuh"
#include "samesum/operation/extremum.hpp"

namespace samesum::gpu {
// Internal linkage, as for all kernels that one translation unit uses.
namespace {

template <class Key> __device__ void raise(Key* key, Key candidate) {
  if constexpr (sizeof(Key) == 8)
    atomicMax(reinterpret_cast<unsigned long long*>(key), static_cast<unsigned long long>(candidate));
  else
    atomicMax(key, candidate);
}

/// Finds the extremum of each key, first in shared memory if `results` of them have room there.
template <class F>
__global__ void __launch_bounds__(512) find_extrema(KeyedElements all, std::size_t input, bool smallest,
                                                    std::uint32_t results, typename KeyOf<F>::Key* keys) {
  using Key = typename KeyOf<F>::Key;
  auto* const shared = reinterpret_cast<Key*>(shared_words);
  for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x) shared[r] = 0;
  __syncthreads();
  for_each_in_range(all, [&](std::uint64_t e, std::uint64_t i) {
    const Key own = KeyOf<F>::of(load_as<F>(input, all.x, e).v, smallest);
    Key* const place = results != 0 ? shared + i : keys + i;
    if (own > *static_cast<volatile Key*>(place)) raise(place, own);
  });
  __syncthreads();
  for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x)
    if (shared[r] != 0) raise(keys + r, shared[r]);
}

/// Writes extrema, merged with what `out` holds if they are combined.
template <class F>
__global__ void __launch_bounds__(256)
    finish_extrema(KeyedElements all, KeyResults r, bool smallest, const typename KeyOf<F>::Key* keys) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *all.events);
  if (i >= all.results()) return;
  auto* const out = static_cast<F*>(r.out) + i;
  auto key = keys[i];
  if (r.combines) {
    if (key == 0) return;
    key = max(key, KeyOf<F>::of(Scalar<F>::of(widen(*out)).v, smallest));
  }
  *out = KeyOf<F>::number(key, smallest);
}

}  // namespace
}  // namespace samesum::gpu
