/// Kernels of sums by matrix units, in the order of samesum/accumulator/hopper.hpp, with mma.sync.
///
/// Rows are rows of A, and B is ones: the 16 bytes that a thread loads of a row are its fragments of two
/// instructions. Columns are columns of B, and A is ones: a thread loads 16 bytes, of eight columns, from
/// each of four rows, which are its fragments of eight instructions.
#pragma once

#include <cuda_runtime.h>

#include "tensor_cores/sums.hpp"

namespace samesum::tensor_cores {

/// How many warps, and where, compute the sums. No choice changes bits.
struct UnitLaunch {
  int tiles = 0;   ///< of a slot of a row: 1 or 8; 0: chosen by the size
  int warps = 8;   ///< of a block: 4 or 8
  int blocks = 0;  ///< at most so many; 0: any number
};

/// An array of outer × n × inner elements in C order, whose middle axis is summed.
struct UnitShape {
  std::size_t outer = 1, n = 0, inner = 1;
  std::size_t results() const { return outer * inner; }
};

/// Floats of the workspace, for any launch.
inline std::size_t unit_workspace(const UnitShape& s) {
  return s.results() * 2 * parts_of(s.n, of_tile * arity);
}

namespace unit {

/// c += A B for fragments of 16 × 16 elements of A and 16 × 8 of B.
template <class T> __device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#define SAMESUM_UNIT_MMA(FORMAT)                                          \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." FORMAT "." FORMAT \
               ".f32"                                                     \
               " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"   \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (std::is_same_v<T, fp16>)
    SAMESUM_UNIT_MMA("f16");
  else
    SAMESUM_UNIT_MMA("bf16");
#undef SAMESUM_UNIT_MMA
}

/// Eight consecutive elements, two per word.
struct Eight {
  unsigned word[4] = {};
};

/// Loads of `bytes` bytes, to which all elements are aligned.
template <int bytes> __device__ void load_piece(const std::uint16_t* x, int at, Eight& v) {
  if constexpr (bytes == 16) {
    const uint4 w = __ldg(reinterpret_cast<const uint4*>(x));
    v = {{w.x, w.y, w.z, w.w}};
  } else if constexpr (bytes == 8) {
    const uint2 w = __ldg(reinterpret_cast<const uint2*>(x + at));
    v.word[at / 2] = w.x;
    v.word[at / 2 + 1] = w.y;
  } else if constexpr (bytes == 4) {
    v.word[at / 2] = __ldg(reinterpret_cast<const unsigned*>(x + at));
  } else {
    v.word[at / 2] |= unsigned(__ldg(x + at)) << (at % 2 * 16);
  }
}

/// The elements from `first` on of a row.
template <int bytes> __device__ Eight load_eight(const std::uint16_t* row, std::size_t first) {
  Eight v;
#pragma unroll
  for (int at = 0; at < 8; at += bytes / 2) load_piece<bytes>(row + first, at, v);
  return v;
}

/// Loads the eight elements from `first` on; those from `end` on are zeros.
template <int bytes>
__device__ Eight load_eight_before(const std::uint16_t* row, std::size_t first, std::size_t end) {
  constexpr int per_piece = bytes / 2;
  const int n = first >= end ? 0 : int(std::min(end - first, std::size_t{8}));
  Eight v;
#pragma unroll
  for (int at = 0; at < 8; at += per_piece)
    if (at + per_piece <= n) load_piece<bytes>(row + first, at, v);
#pragma unroll 1
  for (int k = n / per_piece * per_piece; k < n; ++k) {  // the rest, which is no whole piece
    const unsigned element = unsigned(__ldg(row + first + k)) << (k % 2 * 16);
#pragma unroll
    for (int w = 0; w < 4; ++w) v.word[w] |= k / 2 == w ? element : 0;
  }
  return v;
}

template <class T, int bytes>
__global__ void __launch_bounds__(256, 3) sum_rows(const std::uint16_t* x, RowWork work, float* out) {
  __shared__ float sums[128];
  const int thread = int(threadIdx.x), slot = thread / 32 * 16 + thread % 32 / 4, quarter = thread % 4;
  for (std::size_t block = blockIdx.x; block < work.blocks; block += gridDim.x) {
    const Slot low = work.slot(block, slot), high = work.slot(block, slot + 8);
    const std::uint16_t *const row = x + low.row * work.n, *const other = x + high.row * work.n;
    float total = 0, other_total = 0;
    for (int tile = 0; tile < work.tiles; ++tile) {
      const std::size_t at = low.begin + std::size_t(tile) * of_tile,
                        other_at = high.begin + std::size_t(tile) * of_tile;
      Eight a[steps_of_tile], b[steps_of_tile];
      if (at + of_tile <= low.end && other_at + of_tile <= high.end) {
#pragma unroll
        for (int s = 0; s < steps_of_tile; ++s) {
          a[s] = load_eight<bytes>(row, at + element_in_row(s, quarter));
          b[s] = load_eight<bytes>(other, other_at + element_in_row(s, quarter));
        }
      } else {
#pragma unroll
        for (int s = 0; s < steps_of_tile; ++s) {
          a[s] = load_eight_before<bytes>(row, at + element_in_row(s, quarter), low.end);
          b[s] = load_eight_before<bytes>(other, other_at + element_in_row(s, quarter), high.end);
        }
      }
      __syncwarp();  // all lanes execute the instructions together
      float c[4] = {};
#pragma unroll
      for (int i = 0; i < instructions_of_tile; ++i) {
        const unsigned(&v)[4] = a[i / 2].word, (&w)[4] = b[i / 2].word;
        const int k = i % 2 * 2;
        multiply<T>(c, {v[k], w[k], v[k + 1], w[k + 1]}, UnitInput<T>::two_ones, UnitInput<T>::two_ones);
      }
      total += c[0];
      other_total += c[2];
    }
    if (quarter == 0) {
      sums[slot] = total;
      sums[slot + 8] = other_total;
    }
    __syncthreads();  // all sums are there
    const std::size_t piece = block * std::size_t(work.pieces_of_block) + std::size_t(thread);
    if (thread < work.pieces_of_block && piece < work.all_pieces())
      out[piece] = add_two_levels(std::size_t(work.slots()), [&](std::size_t k) {
        return sums[(std::size_t(thread) << work.log2_slots) + k];
      });
    __syncthreads();  // all sums are read
  }
}

/// Sums a tile of the 64 columns of a warp. `column` is the first of the eight columns that the lane loads,
/// which it shares with three other lanes: the four of group lane / 4. c[q][k], k < 2, becomes the sum of
/// column q of group lane % 4 * 2 + k.
template <class T, int bytes>
__device__ void sum_tile_of_columns(const std::uint16_t* x, const ColumnWork& work, std::size_t first,
                                    std::size_t column, float (&c)[8][4]) {
  constexpr unsigned ones = UnitInput<T>::two_ones;
  const int quarter = int(threadIdx.x) % 4;
  const bool is_full = first + of_tile <= work.n && column + 8 <= work.inner;
#pragma unroll 1
  for (int step = 0; step < steps_of_tile; ++step) {
    Eight v[2][4] = {};
    const auto row = [&](int i) { return first + element_in_column(2 * step + i / 4, quarter, i % 4); };
    if (is_full) {
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i / 4][i % 4] = load_eight<bytes>(x + row(i) * work.inner, column);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (row(i) < work.n)
          v[i / 4][i % 4] = load_eight_before<bytes>(x + row(i) * work.inner, column, work.inner);
    }
    __syncwarp();  // all lanes execute the instructions together
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const Eight(&r)[4] = v[i / 8];
      const int q = i % 8, word = q / 2, halves = q % 2 ? 0x7632 : 0x5410;
      multiply<T>(c[q], {ones, ones, ones, ones}, __byte_perm(r[0].word[word], r[1].word[word], halves),
                  __byte_perm(r[2].word[word], r[3].word[word], halves));
    }
  }
}

template <class T, int bytes>
__global__ void __launch_bounds__(256, 2) sum_columns(const std::uint16_t* x, ColumnWork work, float* out) {
  __shared__ float sums[arity][ColumnWork::columns];
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  for (std::size_t block = blockIdx.x; block < work.blocks; block += gridDim.x) {
    const ColumnWork::Place place = work.place(std::uint32_t(block));
#pragma unroll 1
    for (int tile = warp; tile < int(arity); tile += int(blockDim.x) / 32) {
      const std::size_t first = (place.piece * arity + std::size_t(tile)) * of_tile;
      float c[8][4] = {};
      if (first < work.n)
        sum_tile_of_columns<T, bytes>(x + place.array * work.n * work.inner, work, first,
                                      place.first_column + std::size_t(lane / 4 * 8), c);
      if (lane < 4)
#pragma unroll
        for (int q = 0; q < 8; ++q) {
          sums[tile][16 * lane + q] = c[q][0];
          sums[tile][16 * lane + 8 + q] = c[q][1];
        }
    }
    __syncthreads();  // all sums are there
    for (std::size_t i = threadIdx.x; i < ColumnWork::columns; i += blockDim.x)
      if (const std::size_t column = place.first_column + i; column < work.inner)
        out[(place.array * work.pieces + place.piece) * work.inner + column] =
            add_two_levels(arity, [&](std::size_t k) { return sums[k][i]; });
    __syncthreads();  // all sums are read
  }
}

static __global__ void __launch_bounds__(64) add_sums(const float* x, SumWork work, float* out) {
  const std::size_t at = std::size_t(blockIdx.x) * 64 + threadIdx.x;
  if (at >= work.size()) return;
  const SumWork::Sums sums = work.sums(at);
  out[at] = add_two_levels(sums.n, [&](std::size_t k) { return x[sums.first + k * sums.stride]; });
}

/// Bytes to which all rows are aligned: 2, 4, 8 or 16.
inline int alignment(const void* x, std::size_t distance_bytes) {
  const std::size_t bits = reinterpret_cast<std::uintptr_t>(x) | distance_bytes | 16;
  return int(bits & (~bits + 1));
}

template <class T, int bytes>
cudaError_t enqueue_aligned(const T* x, UnitShape s, float* out, float* workspace, UnitLaunch launch,
                            cudaStream_t stream) {
  // Long slots leave fewer sums to add; for few elements, short ones keep more warps busy.
  const int chosen = s.outer * s.n < std::size_t{1} << 22 ? 1 : 8;
  const RowWork rows{s.outer, s.n, launch.tiles == 0 ? chosen : launch.tiles, launch.warps};
  const ColumnWork columns{s.outer, s.n, s.inner};
  const bool is_rows = s.inner == 1;
  std::size_t pieces = is_rows ? rows.pieces : columns.pieces,
              blocks = is_rows ? rows.blocks : columns.blocks;
  if (launch.blocks > 0) blocks = std::min(blocks, std::size_t(launch.blocks));
  const auto* const elements = reinterpret_cast<const std::uint16_t*>(x);
  float* to = pieces == 1 ? out : workspace;
  if (is_rows)
    sum_rows<T, bytes><<<unsigned(blocks), unsigned(32 * launch.warps), 0, stream>>>(elements, rows, to);
  else
    sum_columns<T, bytes>
        <<<unsigned(blocks), unsigned(32 * launch.warps), 0, stream>>>(elements, columns, to);
  while (pieces > 1) {
    const float* const from = to;
    const SumWork work{s.outer, pieces, s.inner};
    to = work.parts == 1 ? out : to + s.results() * pieces;
    pieces = work.parts;
    add_sums<<<unsigned(parts_of(work.size(), 64)), 64, 0, stream>>>(from, work, to);
  }
  return cudaGetLastError();
}

}  // namespace unit

/// Enqueues the sums of an array in the memory of the GPU, which may begin at any element. `workspace` has
/// unit_workspace(s) floats. Launches nothing if there are no results. Precondition: the launch has fewer
/// than 2^31 blocks.
template <class T>
cudaError_t enqueue_unit_sums(const T* x, UnitShape s, float* out, float* workspace, UnitLaunch launch,
                              cudaStream_t stream) {
  if (s.results() == 0) return cudaSuccess;
  const bool has_one_row = s.inner == 1 && s.outer == 1;
  const auto enqueue = [&]<int bytes>(std::integral_constant<int, bytes>) {
    return unit::enqueue_aligned<T, bytes>(x, s, out, workspace, launch, stream);
  };
  switch (unit::alignment(x, has_one_row ? 0 : 2 * (s.inner == 1 ? s.n : s.inner))) {
    case 16:
      return enqueue(std::integral_constant<int, 16>{});
    case 8:
      return enqueue(std::integral_constant<int, 8>{});
    case 4:
      return enqueue(std::integral_constant<int, 4>{});
    default:
      return enqueue(std::integral_constant<int, 2>{});
  }
}

}  // namespace samesum::tensor_cores
