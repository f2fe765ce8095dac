/// Kernel 8, warp shuffles: the 32 threads of a warp exchange registers, without shared memory or barriers.
///
/// Lesson: one warp computes the last five levels of the tree, and the block needs a single barrier.
#pragma once

#include "ladder/07_coarsened.cuh"

namespace samesum::ladder {

/// Sums one value per thread of the warp. Only the result in lane 0 is the whole sum.
__device__ inline float sum_of_warp(float mine) {
  for (int stride = 16; stride > 0; stride /= 2) mine += __shfl_down_sync(0xffffffffu, mine, stride);
  return mine;
}

/// Sums one value per thread of the block. Only the result in thread 0 is the whole sum.
__device__ inline float sum_of_warps(float mine) {
  __shared__ float sum[32];
  const int t = static_cast<int>(threadIdx.x), warp = t / 32, lane = t % 32;
  mine = sum_of_warp(mine);
  if (lane == 0) sum[warp] = mine;
  __syncthreads();  // makes the sums of all warps visible to the first one
  if (warp == 0) mine = sum_of_warp(lane < static_cast<int>(blockDim.x) / 32 ? sum[lane] : -0.0f);
  return mine;
}

__global__ void __launch_bounds__(threads_of_block) shuffled(const float* x, std::size_t n, float* out) {
  const float sum = sum_of_warps(sum_of_thread<16>(x, n));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace samesum::ladder
