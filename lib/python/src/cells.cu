/// Cells in the memory of a GPU.
#include "cells.hpp"
#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/backend/cuda/device/kernel_formats.hpp"

namespace samesum::python {
namespace {

constexpr unsigned threads = 256;

__device__ std::size_t first_index() { return std::size_t{blockIdx.x} * threads + threadIdx.x; }
__device__ std::size_t step() { return std::size_t{gridDim.x} * threads; }

template <class Kind, class T>
__global__ void __launch_bounds__(threads)
    add(Kind kind, typename Kind::State* cells, CellElements elements) {
  const auto* const x = static_cast<const BitsOf<T>*>(elements.x);
  for (std::size_t i = first_index(); i < elements.size; i += step()) {
    const std::size_t row = i / elements.inner,
                      cell = elements.rows[row] * elements.inner + i - row * elements.inner;
    kind.add(cells[cell], from_bits<T>(x[i]));
  }
}

template <class State>
__global__ void __launch_bounds__(threads) merge(State* cells, const State* other, std::size_t size) {
  for (std::size_t i = first_index(); i < size; i += step()) cells[i].atomic_merge(other[i]);
}

template <class F, class Kind>
__global__ void __launch_bounds__(threads)
    finish(Kind kind, const typename Kind::State* cells, BitsOf<F>* out, std::size_t size) {
  for (std::size_t i = first_index(); i < size; i += step())
    out[i] = to_bits(kind.template finish<F>(cells[i]));
}

template <class... Parameter, class... Argument>
void enqueue(std::uintptr_t stream, std::size_t size, void (*kernel)(Parameter...), Argument... argument) {
  if (size == 0) return;
  const std::size_t blocks = std::min<std::size_t>((size + threads - 1) / threads, 1 << 20);
  kernel<<<static_cast<unsigned>(blocks), threads, 0, reinterpret_cast<cudaStream_t>(stream)>>>(argument...);
  gpu::check(cudaGetLastError(), "cudaLaunchKernel");
}

}  // namespace

void add_to_cells_on_gpu(const CellArray& cells, const CellElements& elements, std::uintptr_t stream) {
  cells.with_kind([&]<class Kind>(Kind kind, typename Kind::State* states) {
    gpu::with_kernel_format(*elements.format, [&]<class T>() {
      if constexpr (Kind::template holds<T>)
        enqueue(stream, elements.size, add<Kind, T>, kind, states, elements);
    });
  });
}

void merge_cells_on_gpu(const CellArray& cells, const void* other, std::uintptr_t stream) {
  cells.with_kind([&]<class Kind>(Kind, typename Kind::State* states) {
    using State = typename Kind::State;
    enqueue(stream, cells.size, merge<State>, states, static_cast<const State*>(other), cells.size);
  });
}

void finish_cells_on_gpu(const CellArray& cells, const FormatInfo& format, void* out, std::uintptr_t stream) {
  cells.with_kind([&]<class Kind>(Kind kind, typename Kind::State* states) {
    gpu::with_kernel_format(format, [&]<class F>() {
      enqueue(stream, cells.size, finish<F, Kind>, kind, states, static_cast<BitsOf<F>*>(out), cells.size);
    });
  });
}

}  // namespace samesum::python
