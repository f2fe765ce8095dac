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

/// Converts the i-th of a series of doubles to F and returns its bits. The doubles cover all exponents, so
/// that some results are subnormal or infinite.
template <class F> SAMESUM_HD std::uint64_t converted(int i) {
  const double x = samesum::from_bits<double>(static_cast<std::uint64_t>(i) * 0x1234'5678'9abcull << 18);
  return samesum::to_bits(samesum::convert<F>(x));
}
template <class F> __global__ void convert_kernel(int n, std::uint64_t* out) {
  for (int i = 0; i < n; ++i) out[i] = converted<F>(i);
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

template <class F> bool converts_as_on_the_cpu() {
  constexpr int n = 10'000;
  std::vector<std::uint64_t> got(n);
  std::uint64_t* out = nullptr;
  bool same = cudaMalloc(&out, n * sizeof *out) == cudaSuccess;
  convert_kernel<F><<<1, 1>>>(n, out);
  same = same && cudaMemcpy(got.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost) == cudaSuccess;
  (void)cudaFree(out);
  for (int i = 0; i < n; ++i) same = same && got[static_cast<std::size_t>(i)] == converted<F>(i);
  std::printf("convert to %s%s\n", samesum::Format<F>::name.data(), same ? "" : "  DIFFERENT");
  return same;
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
    same = converts_as_on_the_cpu<F>() && same;
    samesum::Accumulators::for_each([&]<template <class> class A>() { same = same_on_gpu<A, F>() && same; });
  });
  std::puts(same ? "CUDA: compiled and run: the same bits as the CPU"
                 : "CUDA: compiled and run: DIFFERENT bits");
  return same ? 0 : 1;
}
