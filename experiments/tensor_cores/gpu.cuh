/// Kernels that execute an instruction on generated data, and compare it with models.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensor_cores/data.hpp"
#include "tensor_cores/instructions.cuh"

namespace samesum::tensor_cores {

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error{std::string{call} + ": " + cudaGetErrorString(error)};
}
#define SAMESUM_CHECK(CALL) ::samesum::tensor_cores::check(CALL, #CALL)

/// Memory of the device for n objects.
template <class T> class DeviceArray {
 public:
  explicit DeviceArray(std::size_t n) : n_{n} {
    SAMESUM_CHECK(cudaMalloc(&data_, n * sizeof(T)));
    clear();
  }
  explicit DeviceArray(const std::vector<T>& x) : DeviceArray(x.size()) {
    SAMESUM_CHECK(cudaMemcpy(data_, x.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  T* get() const { return data_; }
  void clear() { SAMESUM_CHECK(cudaMemset(data_, 0, n_ * sizeof(T))); }
  std::vector<T> host() const {
    std::vector<T> x(n_);
    SAMESUM_CHECK(cudaMemcpy(x.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return x;
  }

 private:
  T* data_ = nullptr;
  std::size_t n_;
};

/// Copies the row of A and the column of B of an output from shared memory.
__device__ inline void read_operands(const std::uint32_t* a, const std::uint32_t* b, int row, int column,
                                     DotProduct& dot) {
  for (int w = 0; w < words; ++w) {
    dot.a[w] = a[place(row, w)];
    dot.b[w] = b[place(column, w)];
  }
}

/// Executes the instruction on tiles of generated data, `tiles` per block, and compares each dot product with
/// the model. Tile t has the class first_kind + t mod kinds. If `all` is not null, all dot products are
/// stored there instead of being compared.
template <class I>
__global__ void __launch_bounds__(threads)
    compare(FusedSum model, Strides strides, std::uint64_t seed, int first_kind, int kinds, int tiles,
            Counts* counts, DotProduct* all) {
  __shared__ alignas(128) std::uint32_t a[I::rows * words], b[columns * words];
  for (int t = 0; t < tiles; ++t) {
    const std::uint64_t index = std::uint64_t(blockIdx.x) * std::uint64_t(tiles) + std::uint64_t(t);
    const auto kind = Class(first_kind + int(index % unsigned(kinds)));
    const std::uint64_t tile = hash(seed, index);
    __syncthreads();  // all threads have read the previous tile
    for (int i = int(threadIdx.x); i < I::rows * words; i += threads)
      a[place(i / words, i % words)] = generated_word<I>(kind, tile, 0, i / words, i % words);
    for (int i = int(threadIdx.x); i < columns * words; i += threads)
      b[place(i / words, i % words)] = generated_word<I>(kind, tile, 1, i / words, i % words);
    __syncthreads();  // the tile is complete
    std::uint64_t c[I::outputs], d[I::outputs];
    for (int i = 0; i < I::outputs; ++i) {
      DotProduct dot;
      const int row = row_of<I>(i), column = column_of<I>(i);
      read_operands(a, b, row, column, dot);
      d[i] = c[i] = generated_addend<I>(kind, tile, row * columns + column, dot.a, dot.b);
    }
    __syncwarp();
    Hardware<I>::execute(a, b, d, strides);
    unsigned mismatches = 0, other_nans = 0;
    for (int i = 0; i < I::outputs; ++i) {
      DotProduct dot;
      const int row = row_of<I>(i), column = column_of<I>(i);
      read_operands(a, b, row, column, dot);
      dot.c = c[i];
      dot.hardware = d[i];
      dot.kind = int(kind);
      if (all != nullptr) {
        all[(index * I::rows + unsigned(row)) * columns + unsigned(column)] = dot;
        continue;
      }
      const std::uint64_t modelled = predicted<I>(dot.a, dot.b, c[i], model);
      if (modelled != d[i]) ++(is_nan<I>(d[i]) && is_nan<I>(modelled) ? other_nans : mismatches);
    }
    if (all != nullptr) continue;
    mismatches = __reduce_add_sync(0xffffffffu, mismatches);
    other_nans = __reduce_add_sync(0xffffffffu, other_nans);
    if (threadIdx.x % 32 == 0) {
      Counts& count = counts[int(kind)];
      atomicAdd(&count.dots, 32ull * I::outputs);
      if (mismatches != 0) atomicAdd(&count.mismatches, (unsigned long long)(mismatches));
      if (other_nans != 0) atomicAdd(&count.other_nans, (unsigned long long)(other_nans));
    }
  }
}

/// Executes the instruction on given dot products, one per block, each at another place of the tile.
template <class I>
__global__ void __launch_bounds__(threads) execute_given(Strides strides, DotProduct* dots) {
  __shared__ alignas(128) std::uint32_t a[I::rows * words], b[columns * words];
  DotProduct& dot = dots[blockIdx.x];
  const int at = int(blockIdx.x % unsigned(I::rows)), column_at = int(blockIdx.x * 5 % unsigned(columns));
  for (int i = int(threadIdx.x); i < I::rows * words; i += threads)
    a[place(i / words, i % words)] = i / words == at ? dot.a[i % words] : 0;
  for (int i = int(threadIdx.x); i < columns * words; i += threads)
    b[place(i / words, i % words)] = i / words == column_at ? dot.b[i % words] : 0;
  __syncthreads();
  std::uint64_t d[I::outputs];
  for (int i = 0; i < I::outputs; ++i) d[i] = row_of<I>(i) == at && column_of<I>(i) == column_at ? dot.c : 0;
  __syncwarp();
  Hardware<I>::execute(a, b, d, strides);
  for (int i = 0; i < I::outputs; ++i)
    if (row_of<I>(i) == at && column_of<I>(i) == column_at) dot.hardware = d[i];
}

/// Counts, for the model of each block, on how many dot products it disagrees with the hardware. NaN agree.
template <class I>
__global__ void __launch_bounds__(threads)
    evaluate(const FusedSum* models, const DotProduct* dots, int n, int* mismatches) {
  const FusedSum model = models[blockIdx.x];
  int found = 0;
  for (int i = int(threadIdx.x); i < n; i += threads) {
    const std::uint64_t d = predicted<I>(dots[i].a, dots[i].b, dots[i].c, model);
    found += d != dots[i].hardware && !(is_nan<I>(d) && is_nan<I>(dots[i].hardware));
  }
  found = __reduce_add_sync(0xffffffffu, found);
  if (threadIdx.x % 32 == 0 && found != 0) atomicAdd(&mismatches[blockIdx.x], found);
}

/// Strides of descriptors with which dot products of small integers, which every model adds exactly, are
/// right.
template <class I> Strides working_strides() {
  static const Strides found = [] {
    for (const Strides s : {Strides{128, 256}, Strides{256, 128}}) {
      const DeviceArray<Counts> counts{std::size_t(classes) + 1};
      compare<I><<<64, threads>>>(model_of<I>, s, 1, int(Class::integers), 1, 4, counts.get(), nullptr);
      SAMESUM_CHECK(cudaDeviceSynchronize());
      const Counts c = counts.host()[std::size_t(Class::integers)];
      if (c.dots > 0 && c.mismatches + c.other_nans == 0) return s;
    }
    throw std::runtime_error{std::string{I::name} + ": no descriptor gives right sums of small integers"};
  }();
  return found;
}

/// Executes the generated dot products of the first tiles.
template <class I> std::vector<DotProduct> sample(Strides strides, std::uint64_t seed, int tiles) {
  const DeviceArray<DotProduct> all{std::size_t(tiles) * std::size_t(I::rows) * columns};
  const DeviceArray<Counts> counts{std::size_t(classes) + 1};
  compare<I><<<unsigned(tiles), threads>>>(FusedSum{}, strides, seed, 0, classes, 1, counts.get(), all.get());
  SAMESUM_CHECK(cudaDeviceSynchronize());
  return all.host();
}

}  // namespace samesum::tensor_cores
