/// Compiler settings that every header depends on: flags that are rejected, and the macro SAMESUM_HD.
#pragma once

#if defined(__FAST_MATH__)
#error "samesum: -ffast-math (and -Ofast) lets the compiler reorder and drop roundings; compile without it"
#endif

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "samesum: -ffinite-math-only makes infinities and NaN undefined; compile without it"
#endif
#if defined(__FLT_EVAL_METHOD__) && \
    (__FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2 || __FLT_EVAL_METHOD__ == -1)
#error "samesum: this compiler computes float in a wider type (x87); use -mfpmath=sse"
#endif

/// Marks a function that runs on the host and, in CUDA code, on the device.
#if defined(__CUDACC__)
#define SAMESUM_HD __host__ __device__
#elif defined(SAMESUM_INSTRUCTION_SET)
// This object file is compiled for one instruction set. Inlining leaves no out-of-line copy that the linker
// could choose for another set.
#define SAMESUM_HD [[gnu::always_inline]]
#else
#define SAMESUM_HD
#endif
