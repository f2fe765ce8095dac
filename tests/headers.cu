// Compiles the public header with nvcc and runs each accumulator of each format in a kernel. Exits with 77,
// which ctest reports as skipped, if there is no GPU.
#include <cstdio>
#include <cstring>
#include <samesum/accumulator/accumulators.hpp>
#include <samesum/samesum.hpp>
#include <vector>

namespace {

/// Sums (-1)^i (i + 1/3), each term rounded to V's format, in two halves that are then merged. Includes
/// rounding and cancellation.
template <class A, class V> SAMESUM_HD V two_halves(int n) {
  A half[2];
#pragma unroll 1
  for (int i = 0; i < n; ++i) half[2 * i / n].add(V::of((i % 2 ? -1.0 : 1.0) * (i + 1.0 / 3)));
  half[0].merge(half[1]);
  return half[0].result();
}

/// Each of the following returns the bits of a number that is converted to F, the i-th of a series.

/// Doubles of all exponents, so that some results are subnormal or infinite.
template <class F> struct AllExponents {
  static constexpr int n = 10'000;
  SAMESUM_HD std::uint64_t operator()(int i) const {
    const double x = samesum::from_bits<double>(static_cast<std::uint64_t>(i) * 0x1234'5678'9abcull << 18);
    return samesum::to_bits(samesum::convert<F>(x));
  }
};
/// Numbers of a wider format halfway between two neighbours of F, and others close to these, of both signs: a
/// second rounding would show.
template <class From, class F> struct NearTies {
  static constexpr int n = 10'000, offsets = 5, pairs = n / offsets / 2;
  SAMESUM_HD std::uint64_t operator()(int i) const {
    using Bits = samesum::BitsOf<F>;
    constexpr int offset_of[offsets] = {-(1 << 10), -1, 0, 1, 1 << 10};
    const int pair = i / 2 / offsets;
    const auto low = static_cast<Bits>((samesum::Format<F>::infinity - 2) / pairs * static_cast<Bits>(pair));
    const auto value = [](Bits bits) { return samesum::convert<double>(samesum::from_bits<F>(bits)); };
    const double tie = value(low) + (value(low + 1) - value(low)) / 2;
    const auto bits = samesum::to_bits(samesum::convert<From>(tie));
    const auto near = bits + static_cast<samesum::BitsOf<From>>(offset_of[i / 2 % offsets]);
    const From x = samesum::from_bits<From>(tie == 0 ? bits : near);
    return samesum::to_bits(samesum::convert<F>(i % 2 ? -x : x));
  }
};
/// All numbers of a format of 16 bits.
template <class From, class F> struct Widened {
  static constexpr int n = 1 << 16;
  SAMESUM_HD std::uint64_t operator()(int i) const {
    return samesum::to_bits(samesum::convert<F>(samesum::from_bits<From>(static_cast<std::uint16_t>(i))));
  }
};
template <class Series> __global__ void convert_kernel(std::uint64_t* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < Series::n) out[i] = Series{}(i);
}

template <class A, class V> __global__ void kernel(int n, V* out) { *out = two_halves<A, V>(n); }

template <template <class> class A, class F> bool same_on_gpu() {
  using V = samesum::Scalar<F>;
  constexpr int n = 1000;
  const V expected = two_halves<A<V>, V>(n);
  V got{}, *out = nullptr;
  bool ran = cudaMalloc(&out, sizeof got) == cudaSuccess;
  kernel<A<V>, V><<<1, 1>>>(n, out);
  ran = ran && cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess;
  (void)cudaFree(out);
  const bool same = ran && std::memcmp(&got, &expected, sizeof got) == 0;
  std::printf("%s/%s: GPU %a, CPU %a%s\n", A<V>::name.data(), samesum::Format<F>::name.data(), double(got.v),
              double(expected.v), same ? "" : "  DIFFERENT");
  return same;
}

template <class Series> bool converts_as_on_the_cpu(const char* name) {
  constexpr int n = Series::n;
  std::vector<std::uint64_t> got(n);
  std::uint64_t* out = nullptr;
  bool same = cudaMalloc(&out, n * sizeof *out) == cudaSuccess;
  convert_kernel<Series><<<(n + 255) / 256, 256>>>(out);
  same = same && cudaMemcpy(got.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost) == cudaSuccess;
  (void)cudaFree(out);
  for (int i = 0; i < n; ++i) same = same && got[static_cast<std::size_t>(i)] == Series{}(i);
  std::printf("convert to %s%s\n", name, same ? "" : "  DIFFERENT");
  return same;
}
template <class F> bool converts_to() {
  const char* const name = samesum::Format<F>::name.data();
  bool same = converts_as_on_the_cpu<AllExponents<F>>(name);
  if constexpr (sizeof(F) < 8) same = converts_as_on_the_cpu<NearTies<double, F>>(name) && same;
  if constexpr (sizeof(F) == 2) return converts_as_on_the_cpu<NearTies<float, F>>(name) && same;
  same = converts_as_on_the_cpu<Widened<samesum::fp16, F>>(name) && same;
  return converts_as_on_the_cpu<Widened<samesum::bf16, F>>(name) && same;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    (void)cudaGetLastError();
    std::puts("CUDA: compiled, not run: no device");
    return 77;
  }
  bool same = true;
  samesum::Formats::for_each([&]<class F>() {
    same = converts_to<F>() && same;
    samesum::Accumulators::for_each([&]<template <class> class A>() { same = same_on_gpu<A, F>() && same; });
  });
  std::puts(same ? "CUDA: compiled and run: the same bits as the CPU"
                 : "CUDA: compiled and run: DIFFERENT bits");
  return same ? 0 : 1;
}
