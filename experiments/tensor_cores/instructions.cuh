/// How a block of 128 threads executes each instruction of models.hpp.
///
/// A dot product has eight words of a and eight of b: in every instruction k is 256 bits wide. Rows of A and
/// columns of B lie in shared memory as core matrices of eight rows by 16 bytes, as wgmma reads them without
/// swizzle; for mma.sync each warp has rows of its own and loads its fragments from there. A thread holds
/// `outputs` numbers of C and D.
#pragma once

#include <cstdint>

#include "tensor_cores/models.hpp"

namespace samesum::tensor_cores {

constexpr int threads = 128;

/// Place of a word of a row of A, or of a column of B, in shared memory.
__host__ __device__ constexpr int place(int row, int word) {
  return (row / 8 * 2 + word / 4) * 32 + row % 8 * 4 + word % 4;
}

/// Byte distances of core matrices along k and along rows, as in the descriptors of wgmma.
struct Strides {
  int leading = 128, stride = 256;
};

__device__ inline std::uint64_t descriptor(const std::uint32_t* shared, Strides s) {
  const auto address = std::uint32_t(__cvta_generic_to_shared(shared));
  return std::uint64_t((address & 0x3ffff) >> 4) | std::uint64_t(s.leading >> 4) << 16 |
         std::uint64_t(s.stride >> 4) << 32;
}

/// Adds the products of the rows of a and the columns of b, in shared memory, to the outputs c of a thread.
template <class I> struct Hardware;

/// Rows and columns of the output i of a thread.
template <class I> __device__ int row_of(int i) {
  return int(threadIdx.x) / 32 * I::rows_per_warp + int(threadIdx.x) % 32 / 4 + i / 2 * 8;
}
template <class I> __device__ int column_of(int i) { return int(threadIdx.x) % 4 * 2 + i % 2; }

/// Fragments of the m16n8 shapes of mma.sync: words of A and B, whatever the format.
struct Fragments {
  std::uint32_t a[4], b[2];
  __device__ Fragments(const std::uint32_t* shared_a, const std::uint32_t* shared_b) {
    const int warp = int(threadIdx.x) / 32, row = int(threadIdx.x) % 32 / 4, word = int(threadIdx.x) % 4;
    for (int r = 0; r < 4; ++r) a[r] = shared_a[place(16 * warp + row + r % 2 * 8, word + r / 2 * 4)];
    for (int r = 0; r < 2; ++r) b[r] = shared_b[place(row, word + r * 4)];
  }
};

/// D = A B + C with 32-bit numbers in C and D, given the name of the instruction and the constraint of its
/// registers.
#define SAMESUM_MMA_32(NAME, PTX)                                                                         \
  template <> struct Hardware<NAME> {                                                                     \
    static_assert(NAME::name == PTX);                                                                     \
    static __device__ void execute(const std::uint32_t* a, const std::uint32_t* b, std::uint64_t (&c)[4], \
                                   Strides) {                                                             \
      const Fragments f{a, b};                                                                            \
      std::uint32_t d[4] = {std::uint32_t(c[0]), std::uint32_t(c[1]), std::uint32_t(c[2]),                \
                            std::uint32_t(c[3])};                                                         \
      if constexpr (std::is_same_v<NAME::Result, float>) {                                                \
        float x[4];                                                                                       \
        for (int i = 0; i < 4; ++i) x[i] = __uint_as_float(d[i]);                                         \
        asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                         \
                     : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])                                     \
                     : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));     \
        for (int i = 0; i < 4; ++i) d[i] = __float_as_uint(x[i]);                                         \
      } else {                                                                                            \
        asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                         \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                     \
                     : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));     \
      }                                                                                                   \
      for (int i = 0; i < 4; ++i) c[i] = d[i];                                                            \
    }                                                                                                     \
  };

/// D = A B + C with pairs of fp16 in C and D.
#define SAMESUM_MMA_16(NAME, PTX)                                                                         \
  template <> struct Hardware<NAME> {                                                                     \
    static_assert(NAME::name == PTX);                                                                     \
    static __device__ void execute(const std::uint32_t* a, const std::uint32_t* b, std::uint64_t (&c)[4], \
                                   Strides) {                                                             \
      const Fragments f{a, b};                                                                            \
      std::uint32_t d[2] = {std::uint32_t(c[0] | c[1] << 16), std::uint32_t(c[2] | c[3] << 16)};          \
      asm volatile(PTX " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"                                       \
                   : "+r"(d[0]), "+r"(d[1])                                                               \
                   : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));       \
      for (int i = 0; i < 4; ++i) c[i] = d[i / 2] >> (i % 2 * 16) & 0xffff;                               \
    }                                                                                                     \
  };

/// Orders writes to shared memory before the reads of wgmma.
#define SAMESUM_WGMMA_BEGIN                                                         \
  const std::uint64_t da = descriptor(a, s), db = descriptor(b, Strides{128, 128}); \
  asm volatile("fence.proxy.async;" ::: "memory");                                  \
  __syncthreads();
/// One statement, so that nothing touches the registers of D before the wait.
#define SAMESUM_WGMMA(TEXT) \
  "wgmma.fence.sync.aligned; " TEXT "; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"

/// D += A B with 32-bit numbers in D. TAIL are the operands after the descriptors.
#define SAMESUM_WGMMA_32(NAME, PTX, TAIL)                                                                 \
  template <> struct Hardware<NAME> {                                                                     \
    static_assert(NAME::name == PTX);                                                                     \
    static __device__ void execute(const std::uint32_t* a, const std::uint32_t* b, std::uint64_t (&c)[4], \
                                   Strides s) {                                                           \
      SAMESUM_WGMMA_BEGIN                                                                                 \
      if constexpr (std::is_same_v<NAME::Result, float>) {                                                \
        float x[4];                                                                                       \
        for (int i = 0; i < 4; ++i) x[i] = __uint_as_float(std::uint32_t(c[i]));                          \
        asm volatile(SAMESUM_WGMMA(PTX " {%0,%1,%2,%3}, %4, %5, " TAIL)                                   \
                     : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])                                     \
                     : "l"(da), "l"(db)                                                                   \
                     : "memory");                                                                         \
        for (int i = 0; i < 4; ++i) c[i] = __float_as_uint(x[i]);                                         \
      } else {                                                                                            \
        std::uint32_t x[4];                                                                               \
        for (int i = 0; i < 4; ++i) x[i] = std::uint32_t(c[i]);                                           \
        asm volatile(SAMESUM_WGMMA(PTX " {%0,%1,%2,%3}, %4, %5, 1")                                       \
                     : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])                                     \
                     : "l"(da), "l"(db)                                                                   \
                     : "memory");                                                                         \
        for (int i = 0; i < 4; ++i) c[i] = x[i];                                                          \
      }                                                                                                   \
    }                                                                                                     \
  };

/// D += A B with pairs of fp16 in D.
#define SAMESUM_WGMMA_16(NAME, PTX, TAIL)                                                                 \
  template <> struct Hardware<NAME> {                                                                     \
    static_assert(NAME::name == PTX);                                                                     \
    static __device__ void execute(const std::uint32_t* a, const std::uint32_t* b, std::uint64_t (&c)[4], \
                                   Strides s) {                                                           \
      SAMESUM_WGMMA_BEGIN                                                                                 \
      std::uint32_t x[2] = {std::uint32_t(c[0] | c[1] << 16), std::uint32_t(c[2] | c[3] << 16)};          \
      asm volatile(SAMESUM_WGMMA(PTX " {%0,%1}, %2, %3, " TAIL)                                           \
                   : "+r"(x[0]), "+r"(x[1])                                                               \
                   : "l"(da), "l"(db)                                                                     \
                   : "memory");                                                                           \
      for (int i = 0; i < 4; ++i) c[i] = x[i / 2] >> (i % 2 * 16) & 0xffff;                               \
    }                                                                                                     \
  };

SAMESUM_MMA_32(MmaFp16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
SAMESUM_MMA_16(MmaFp16ToFp16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
SAMESUM_MMA_32(MmaBf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
SAMESUM_MMA_32(MmaTf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
SAMESUM_MMA_32(MmaE4m3, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
SAMESUM_MMA_32(MmaE5m2, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32")
SAMESUM_MMA_16(MmaE4m3ToFp16, "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16")
SAMESUM_MMA_16(MmaE5m2ToFp16, "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16")
SAMESUM_MMA_32(MmaInt8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
SAMESUM_WGMMA_32(WgmmaFp16, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "1, 1, 1, 0, 0")
SAMESUM_WGMMA_16(WgmmaFp16ToFp16, "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", "1, 1, 1, 0, 0")
SAMESUM_WGMMA_32(WgmmaBf16, "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "1, 1, 1, 0, 0")
SAMESUM_WGMMA_32(WgmmaTf32, "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "1, 1, 1")
SAMESUM_WGMMA_32(WgmmaE4m3, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "1, 1, 1")
SAMESUM_WGMMA_32(WgmmaE5m2, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2", "1, 1, 1")
SAMESUM_WGMMA_16(WgmmaE4m3ToFp16, "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3", "1, 1, 1")
SAMESUM_WGMMA_16(WgmmaE5m2ToFp16, "wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e5m2", "1, 1, 1")
SAMESUM_WGMMA_32(WgmmaInt8, "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8", "1")

#undef SAMESUM_MMA_32
#undef SAMESUM_MMA_16
#undef SAMESUM_WGMMA_32
#undef SAMESUM_WGMMA_16
#undef SAMESUM_WGMMA_BEGIN
#undef SAMESUM_WGMMA

/// D = A B + C of fp64: eight rows per warp.
template <> struct Hardware<MmaFp64> {
  static __device__ void execute(const std::uint32_t* a, const std::uint32_t* b, std::uint64_t (&c)[2],
                                 Strides) {
    const int warp = int(threadIdx.x) / 32, row = int(threadIdx.x) % 32 / 4, k = int(threadIdx.x) % 4;
    const auto number = [&](const std::uint32_t* shared, int r) {
      return __hiloint2double(int(shared[place(r, 2 * k + 1)]), int(shared[place(r, 2 * k)]));
    };
    double x[2] = {__longlong_as_double((long long)(c[0])), __longlong_as_double((long long)(c[1]))};
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(x[0]), "+d"(x[1])
                 : "d"(number(a, 8 * warp + row)), "d"(number(b, row)));
    for (int i = 0; i < 2; ++i) c[i] = std::uint64_t(__double_as_longlong(x[i]));
  }
};

}  // namespace samesum::tensor_cores
