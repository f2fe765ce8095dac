/// Better mathematics: softmax of rows, exp(x - max) / Σ exp(x - max), with one block per row.
///
/// `three_passes` reads a row for its maximum, for the sum and for the result. `online` (Milakov and
/// Gimelshein 2018) computes maximum and sum in one pass: when the maximum grows, it rescales the sum so far.
#pragma once

#include <cstddef>

namespace samesum::ladder {

inline constexpr int softmax_threads = 512;

/// Merges one value per thread of the block with `merge`. Every thread gets the result.
template <class State, class Merge> __device__ State of_block(State mine, Merge merge) {
  __shared__ State all[softmax_threads];
  const int t = static_cast<int>(threadIdx.x);
  __syncthreads();  // other threads may still read the result of the previous call
  all[t] = mine;
  for (int stride = softmax_threads / 2; stride > 0; stride /= 2) {
    __syncthreads();  // makes the values of the previous step visible to all threads
    if (t < stride) all[t] = merge(all[t], all[t + stride]);
  }
  __syncthreads();  // makes the result visible to all threads
  return all[0];
}

__global__ void __launch_bounds__(softmax_threads) three_passes(const float* x, int columns, float* out) {
  const float* row = x + std::size_t{blockIdx.x} * static_cast<std::size_t>(columns);
  float* to = out + std::size_t{blockIdx.x} * static_cast<std::size_t>(columns);
  const int t = static_cast<int>(threadIdx.x);
  float most = -INFINITY, sum = 0;
  for (int i = t; i < columns; i += softmax_threads) most = fmaxf(most, row[i]);
  most = of_block(most, [](float a, float b) { return fmaxf(a, b); });
  for (int i = t; i < columns; i += softmax_threads) sum += expf(row[i] - most);
  sum = of_block(sum, [](float a, float b) { return a + b; });
  for (int i = t; i < columns; i += softmax_threads) to[i] = expf(row[i] - most) / sum;
}

/// State of the online softmax: the maximum of some elements, and the sum of their exp(x - most).
struct Online {
  float most, sum;
};

/// Merges two states. A state without elements has the maximum -inf, so its sum is scaled by exp(-inf) = 0.
__device__ inline Online merge_online(Online a, Online b) {
  const float most = fmaxf(a.most, b.most);
  if (most == -INFINITY) return a;
  return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

/// Elements per rescaling of the sum. One rescaling for several elements saves exponentials and latency.
inline constexpr int at_once = 8;

__global__ void __launch_bounds__(softmax_threads) online(const float* x, int columns, float* out) {
  const float* row = x + std::size_t{blockIdx.x} * static_cast<std::size_t>(columns);
  float* to = out + std::size_t{blockIdx.x} * static_cast<std::size_t>(columns);
  const int t = static_cast<int>(threadIdx.x);
  Online mine{-INFINITY, 0};
  for (int i = t; i < columns; i += at_once * softmax_threads) {
    float v[at_once], most = mine.most;
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      v[k] = i + k * softmax_threads < columns ? row[i + k * softmax_threads] : -INFINITY;
      most = fmaxf(most, v[k]);
    }
    mine.sum *= expf(mine.most - most);
    mine.most = most;
#pragma unroll
    for (int k = 0; k < at_once; ++k) mine.sum += expf(v[k] - most);
  }
  const Online all = of_block(mine, merge_online);
  for (int i = t; i < columns; i += softmax_threads) to[i] = expf(row[i] - all.most) / all.sum;
}

}  // namespace samesum::ladder
