/// Custom reducers (reducer.hpp) on a GPU. Include this header only in CUDA source files.
#pragma once

#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/backend/cuda/device/column.cuh"
#include "samesum/backend/cuda/tree/batch.cuh"
#include "samesum/call/validation.hpp"
#include "samesum/reducer.hpp"

namespace samesum::gpu {

/// Reads elements of any type without conversion. The interface is that of Reader
/// (backend/cuda/device/reader.cuh).
template <class Reducer, class T> class PlainReader {
 public:
  using Element = typename Reducer::Element;
  static constexpr std::size_t alignment = 4 * sizeof(T) <= 16 ? 4 * sizeof(T) : 16;
  struct alignas(alignment) Raw {
    T x[4];
  };

  SAMESUM_HD explicit PlainReader(const T* x) : x_{x} {}
  __device__ PlainReader moved(std::size_t by) const { return PlainReader{x_ + by}; }
  SAMESUM_HD int inputs() const { return 1; }
  __device__ bool is_aligned(std::size_t place) const {
    return reinterpret_cast<std::uintptr_t>(x_ + place) % alignment == 0;
  }
  __device__ Raw fetch(bool, std::size_t place, int count, bool aligned) const {
    if (aligned && count == 4) return *reinterpret_cast<const Raw*>(x_ + place);
    Raw raw{};
    for (int i = 0; i < 4; ++i)
      if (i < count) raw.x[i] = x_[place + static_cast<std::size_t>(i)];
    return raw;
  }
  __device__ void elements(const Raw& x, const Raw&, std::uint64_t base, int offset, Element (&e)[4]) const {
    for (int i = 0; i < 4; ++i) e[i] = {x.x[i], base + static_cast<std::uint64_t>(offset + i)};
  }
  template <int most, class Stride>
  __device__ void column(std::size_t place, Stride stride, int count, std::uint64_t base, int offset,
                         int apart, Element (&e)[most]) const {
    T x[most];
    load_column(x_ + place, stride, count, x);
    for (int r = 0; r < most; ++r)
      if (r < count) e[r] = {x[r], base + static_cast<std::uint64_t>(offset + r * apart)};
  }

 private:
  const T* x_;
};

namespace detail {

/// Returns an error message that names the argument and the remedy; empty if the arguments are valid. Does
/// not read offsets, which may be in device memory.
template <class R, class T>
std::string validation_error(const Layout& layout, const T* x, const ResultOf<R>* out) {
  std::string wrong = samesum::validation_error(layout, std::nullopt, false);
  if (wrong.empty()) wrong = samesum::validation_error("x", x, *extent(layout, false), ElementSize::of<T>());
  if (wrong.empty())
    wrong = samesum::validation_error("out", out, layout.results(), ElementSize::of<ResultOf<R>>());
  return wrong;
}

/// A call with a custom reducer, which stands for the method and the formats.
template <class R, class T>
Launch launch_of(const T* x, std::size_t elements, const Layout& layout, ResultOf<R>* out,
                 cudaStream_t stream) {
  Values input;
  input.data = x;
  input.size = elements;
  return {.call = {.method = nullptr,
                   .x = input,
                   .layout = normalised(layout),
                   .out = {nullptr, out, layout.results()}},
          .stream = stream};
}

/// Enqueues the reduction. Sets only work.bytes if work.workspace is null.
template <class Order, class R, class T> cudaError_t enqueue(const R& reducer, Launch& work) {
  static_assert(
      order_allows<Order, R>,
      "samesum: this order combines elements that are not neighbours, but the reducer is not commutative; "
      "use samesum::Blocked");
  using Reducer = CustomReducer<R, T>;
  return gpu::reduce<typename Order::Shape>(
      Reducer{reducer}, PlainReader<Reducer, T>{static_cast<const T*>(work.call.x.data)}, work);
}

}  // namespace detail

/// Reduces each row, column or segment of x with a custom reducer, in two phases as in gpu.hpp. The workspace
/// needs no preparation; one that is prepared stays prepared.
///
/// Promise: `everywhere`, if the caller's code is compiled with --fmad=false (CMake target
/// samesum::reducers). Orders, layout and results: as for samesum::reduce. All pointers are to memory that
/// the device can access.
///
/// The kernel for columns is always compiled. It keeps 7·128 states in the 48 KiB of static shared memory, in
/// the order Blocked 128. A larger State does not compile: it has at most 52 bytes for CoarsenedTree and
/// Pairwise, and 384 for Blocked.
/// @tparam T type of the elements, of 2, 4 or 8 bytes as for samesum::reduce; unlike there, this is not
///   checked.
/// @param elements for segments, at least the number of elements in all of them; unused otherwise.
/// @return cudaErrorInvalidValue for a workspace that is misaligned or too small and for arguments for which
///   samesum::reduce throws (offsets are not checked); cudaErrorMemoryAllocation if host memory is exhausted;
///   any error of a CUDA call.
template <class Order = CoarsenedTree, class R, class T>
requires ReducerFor<R, T> cudaError_t reduce(const R& reducer, void* workspace, std::size_t& bytes,
                                             const T* x, std::size_t elements, const Layout& layout,
                                             ResultOf<R>* out, cudaStream_t stream = nullptr)
noexcept try {
  const FloatingPointEnvironment environment;
  if (!validation_error(layout, std::nullopt, false).empty() ||
      (workspace && !detail::validation_error<R>(layout, x, out).empty()) ||
      reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
    return cudaErrorInvalidValue;
  Launch work = detail::launch_of<R>(x, elements, layout, out, stream);
  work.workspace = workspace;
  work.bytes = bytes;
  const cudaError_t error = detail::enqueue<Order, R, T>(reducer, work);
  bytes = work.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // host memory for an error message
}

/// Reduces each row, column or segment of x with a custom reducer, with a workspace from `pool` (nullptr: the
/// device's current pool), which is allocated and freed in stream order.
/// @throws Error, which names the CUDA call that failed.
/// @throws std::invalid_argument for an invalid argument.
template <class Order = CoarsenedTree, class R, class T>
requires ReducerFor<R, T>
void reduce(const R& reducer, const T* x, std::size_t elements, const Layout& layout, ResultOf<R>* out,
            cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = detail::validation_error<R>(layout, x, out); !wrong.empty())
    throw std::invalid_argument("samesum: reduce: " + wrong);
  Launch work = detail::launch_of<R>(x, elements, layout, out, stream);
  with_pool("reduce", work, pool, [&](Launch& w) { return detail::enqueue<Order, R, T>(reducer, w); });
}

/// Reduces n elements to one result in *out with a custom reducer, with a workspace from `pool`. Errors: as
/// for a layout.
template <class Order = CoarsenedTree, class R, class T>
requires ReducerFor<R, T>
void reduce(const R& reducer, const T* x, std::size_t n, ResultOf<R>* out, cudaStream_t stream = nullptr,
            cudaMemPool_t pool = nullptr) {
  reduce<Order>(reducer, x, n, Layout::vector(n), out, stream, pool);
}

}  // namespace samesum::gpu
