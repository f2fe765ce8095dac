/// Reductions by key other than sums in integers: extrema, and plain sums in the order of arrival or in turn.
/// Also the sorted rows of a call, which sums in integers use as well.
#pragma once

#include "samesum/backend/cuda/by_key/by_key.cuh"
#include "samesum/operation/extremum.hpp"
#include "samesum/operation/term_reducer.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum::gpu {
namespace {

template <class Key> __device__ void raise(Key* key, Key candidate) {
  if constexpr (sizeof(Key) == 8)
    atomicMax(reinterpret_cast<unsigned long long*>(key), static_cast<unsigned long long>(candidate));
  else
    atomicMax(key, candidate);
}

/// Finds the extremum of each key, first in shared memory if `results` of them have room there.
template <class F>
__global__ void __launch_bounds__(512) find_extrema(KeyedElements keyed, std::size_t input, bool smallest,
                                                    std::uint32_t results, typename KeyOf<F>::Key* keys) {
  using Key = typename KeyOf<F>::Key;
  auto* const shared = reinterpret_cast<Key*>(shared_words);
  for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x) shared[r] = 0;
  __syncthreads();
  for_each_in_range(keyed, [&](std::uint64_t e, std::uint64_t i) {
    const Key key = KeyOf<F>::of(load_as<F>(input, keyed.x, e).v, smallest);
    Key* const place = results != 0 ? shared + i : keys + i;
    if (key > *static_cast<volatile Key*>(place)) raise(place, key);
  });
  __syncthreads();
  for (std::uint32_t r = threadIdx.x; r < results; r += blockDim.x)
    if (shared[r] != 0) raise(keys + r, shared[r]);
}

/// Writes extrema, merged with what `out` holds if they are combined.
template <class F>
__global__ void __launch_bounds__(256)
    finish_extrema(KeyedElements keyed, KeyResults r, bool smallest, const typename KeyOf<F>::Key* keys) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *keyed.events);
  if (i >= keyed.results()) return;
  auto* const out = static_cast<F*>(r.out) + i;
  auto key = keys[i];
  if (r.combines) {
    if (key == 0) return;
    key = max(key, KeyOf<F>::of(Scalar<F>::of(widen(*out)).v, smallest));
  }
  *out = KeyOf<F>::number(key, smallest);
}

/// Adds elements in the order of their arrival.
template <class F>
__global__ void __launch_bounds__(256) add_on_arrival(KeyedElements keyed, std::size_t input, F* out) {
  for_each_in_range(keyed, [&](std::uint64_t e, std::uint64_t i) {
    const F x = to_format<F>(load_as<F>(input, keyed.x, e));
    if constexpr (std::is_same_v<F, fp16>)
      atomicAdd(reinterpret_cast<__half*>(out + i), __ushort_as_half(x.bits));
    else if constexpr (std::is_same_v<F, bf16>)
      atomicAdd(reinterpret_cast<__nv_bfloat16*>(out + i), __ushort_as_bfloat16(x.bits));
    else
      atomicAdd(out + i, x);
  });
}

/// Reports a bad key, and makes all NaN in `out` canonical, those that the call has not changed included.
template <class F>
__global__ void __launch_bounds__(256) finish_on_arrival(KeyedElements keyed, KeyResults r) {
  const std::uint64_t i = index_in_grid();
  r.report(i, *keyed.events);
  if (i >= keyed.results()) return;
  auto& bits = static_cast<BitsOf<F>*>(r.out)[i];
  if (is_nan_bits<F>(bits)) bits = Format<F>::canonical_nan;
}

/// The rows of a call, sorted by key; those of equal keys in their order.
struct SortedRows {
  const std::uint32_t* bins;    ///< the keys; the number of results for a bad one
  const std::uint32_t* places;  ///< where the rows are in the elements
  std::uint64_t count;
};

/// Returns the first place of sorted rows whose key is not less than `bin`.
__device__ inline std::uint64_t first_not_below(const SortedRows& rows, std::uint64_t bin) {
  std::uint64_t low = 0, high = rows.count;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (rows.bins[middle] < bin)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Prepares a stable sort: keys as numbers of 32 bits, a bad one as `bins`, and the places of the rows.
__global__ void __launch_bounds__(256)
    number_rows(KeyedElements keyed, std::uint64_t rows, std::uint32_t* bins, std::uint32_t* places) {
  const std::uint64_t k = index_in_grid();
  if (k >= rows) return;
  const std::uint64_t key = key_at(keyed.format, keyed.keys, k);
  if (key >= keyed.bins) report_bad_key(keyed.events, k);
  bins[k] = static_cast<std::uint32_t>(min(key, keyed.bins));
  places[k] = static_cast<std::uint32_t>(k);
}

/// Adds the elements of a result in turn, on one thread. If results are combined, the number that `out` holds
/// comes first.
template <class Reducer>
__global__ void __launch_bounds__(128)
    add_in_turn(Reducer reducer, KeyedElements keyed, std::size_t input, SortedRows rows, KeyResults r) {
  using F = typename Reducer::Format;
  const std::uint64_t i = index_in_grid();
  r.report(i, *keyed.events);
  if (i >= keyed.results()) return;
  const std::uint64_t key = quotient(i, keyed.inner), column = i - key * keyed.inner;
  const std::uint64_t first = first_not_below(rows, key), last = first_not_below(rows, key + 1);
  if (first == last && r.combines) return;
  SerialWalker<Reducer> walker{reducer};
  std::uint64_t n = 0;
  const auto push = [&](Scalar<F> x) {
    walker.push(reducer.item(InputElement<F>{x, Scalar<F>::zero(), n, 0}));
    ++n;
  };
  if (r.combines) push({widen(static_cast<const F*>(r.out)[i])});
  for (std::uint64_t at = first; at < last; ++at)
    push(load_as<F>(input, keyed.x, std::uint64_t{rows.places[at]} * keyed.inner + column));
  reducer.finish(walker.state(), n, i, r.out);
}

}  // namespace
}  // namespace samesum::gpu
