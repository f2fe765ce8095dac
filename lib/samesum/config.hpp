/// What every header needs to know of the compiler, and what it refuses.
#pragma once

#if defined(__FAST_MATH__)
#error "samesum: -ffast-math (and -Ofast) lets the compiler reorder and drop roundings; compile without it"
#endif

#if defined(__CUDACC__)
#define SAMESUM_HD __host__ __device__
#else
#define SAMESUM_HD
#endif
