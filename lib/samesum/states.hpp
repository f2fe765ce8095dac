/// States of order-free sums for kernels and loops of your own. States are plain memory: a thread may keep
/// one in registers, and a mesh or a histogram has one in each cell. All updates are integer additions,
/// bitwise or and maxima, so the results have the same bits for any order of the elements, any number of
/// threads, any launch shape and any way to merge states, on GPUs and CPUs, and the bits of `samesum::sum`
/// over the same elements.
///
/// | state | result | bytes |
/// | --- | --- | --- |
/// | FixedPointState | `fixed_point` on a grid; NaN if it overflows | 24 |
/// | WindowState<words> | `exact` in a window; NaN if an element is outside | 8·words + 8 |
/// | ExactState<T> | `exact`, for any elements of T | fp16 48, bf16 96, fp32 104, fp64 552 |
///
/// Each has `add`, `merge`, `atomic_add`, `atomic_merge` and `finish`. The atomic functions may run in any
/// number of threads, up to 2^20 at the same time for ExactState, for states in shared memory, in global
/// memory, or on a CPU. They are not ordered with other accesses: before another function reads the state, a
/// barrier or the end of the kernel must follow them. All bytes 0 is an empty state: clear arrays with
/// cudaMemsetAsync, or by `State{}`. states.cuh has reductions of states across a warp and a block.
///
/// States in shared memory are updated by their own block alone, not by other blocks of its cluster.
///
/// Nothing here computes in floating point, so neither compiler flags nor the rounding mode change a bit.
/// nvcc compiles the header as C++20 with --expt-relaxed-constexpr (CMake target samesum::reducers), NVRTC
/// with -std=c++20 -default-device -device-int128, without headers of the standard library or states of
/// hosts.
///
/// Registers and atomic instructions: lib/guides/partials_and_states.md.
///
/// For hosts alone there are states of aggregate functions, one for each of millions of groups. Their
/// elements can be subtracted again; they are bytes in a file or a message; and they grow by an allocator of
/// the caller where elements lie too far apart:
///
/// | state | results | bytes |
/// | --- | --- | --- |
/// | AggregateSum | sum, mean | 32 |
/// | AggregateProducts | dot product | 40 |
/// | AggregateMoments | sum, mean, variance | 72 |
/// | AggregateComoments | these of x and y, covariance, correlation, line | 184 |
///
/// Sources: Kulisch 1971 (exact sums in a long integer), Neal 2015 (digits whose carries wait), Collange,
/// Defour, Graillat and Iakymchuk 2015 (such integers with atomic additions on a GPU).
#pragma once

#include "samesum/accumulator/exact_state.hpp"
#include "samesum/accumulator/fixed_point_state.hpp"
#include "samesum/window/window_state.hpp"
#if !defined(__CUDACC_RTC__)
#include "samesum/operation/aggregates.hpp"
#endif
