/// What every header needs to know of the compiler, and what it refuses.
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

#if defined(__CUDACC__)
#define SAMESUM_HD __host__ __device__
#elif defined(SAMESUM_INSTRUCTION_SET)
// Compiled for one instruction set: no copy of a function may be left over for others to be linked with.
#define SAMESUM_HD [[gnu::always_inline]]
#else
#define SAMESUM_HD
#endif
