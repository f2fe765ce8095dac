/// What a GPU's memory allows: kernels that move data and do nothing else.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "samesum/backend/cuda/call.hpp"

namespace samesum::harness {

inline void check(cudaError_t error, const std::string& call) {
  if (error != cudaSuccess) throw std::runtime_error{call + ": " + cudaGetErrorString(error)};
}

/// Reads 16 bytes a thread and load, eight loads in flight, and keeps nothing.
static __global__ void __launch_bounds__(256) read_only(const uint4* x, std::size_t n, unsigned* never) {
  unsigned any = 0;
  const std::size_t tile = 8 * 256, stride = std::size_t{gridDim.x} * tile;
  for (std::size_t i = std::size_t{blockIdx.x} * tile + threadIdx.x; i < n; i += stride) {
    uint4 v[8];
    for (int k = 0; k < 8; ++k) v[k] = i + k * 256 < n ? x[i + k * 256] : uint4{};
    for (const uint4& w : v) any |= w.x & w.y & w.z & w.w & 0x80000001u;
  }
  if (any == 0x12345678u) *never = any;
}

/// Enqueues reading so many bytes; `never` is not written.
inline void read_all(const void* x, std::size_t bytes, void* never, cudaStream_t stream) {
  const std::size_t vectors = std::max<std::size_t>(bytes / 16, 1);
  const std::size_t blocks = std::min<std::size_t>((vectors + 2047) / 2048, 1 << 16);
  check(gpu::launch(read_only, blocks, 256, stream, static_cast<const uint4*>(x), vectors,
                    static_cast<unsigned*>(never)),
        "read");
}

/// The same, and writes it elsewhere.
static __global__ void __launch_bounds__(256) read_and_write(const uint4* x, uint4* out, std::size_t n) {
  const std::size_t tile = 8 * 256, stride = std::size_t{gridDim.x} * tile;
  for (std::size_t i = std::size_t{blockIdx.x} * tile + threadIdx.x; i < n; i += stride) {
    uint4 v[8];
    for (int k = 0; k < 8; ++k)
      if (i + k * 256 < n) v[k] = x[i + k * 256];
    for (int k = 0; k < 8; ++k)
      if (i + k * 256 < n) out[i + k * 256] = v[k];
  }
}

/// Enqueues copying so many bytes.
inline void copy_all(const void* x, void* out, std::size_t bytes, cudaStream_t stream) {
  const std::size_t vectors = std::max<std::size_t>(bytes / 16, 1);
  const std::size_t blocks = std::min<std::size_t>((vectors + 2047) / 2048, 1 << 16);
  check(gpu::launch(read_and_write, blocks, 256, stream, static_cast<const uint4*>(x),
                    static_cast<uint4*>(out), vectors),
        "copy");
}

}  // namespace samesum::harness
