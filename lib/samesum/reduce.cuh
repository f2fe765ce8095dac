/// Reductions of your own on a GPU: see reduce.hpp. To be included where CUDA code is compiled.
#pragma once

#include "samesum/backend/cuda/fold.cuh"
#include "samesum/operation/validation.hpp"
#include "samesum/reduce.hpp"

namespace samesum::gpu {

/// Elements of any type, as they are.
template <class Fold, class T> class PlainReader {
 public:
  using Element = typename Fold::Element;
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
  template <int most>
  __device__ void column(std::size_t place, std::size_t stride, int count, std::uint64_t base, int offset,
                         int apart, Element (&e)[most]) const {
    for (int r = 0; r < most; ++r)
      if (r < count)
        e[r] = {x_[place + static_cast<std::size_t>(r) * stride],
                base + static_cast<std::uint64_t>(offset + r * apart)};
  }

 private:
  const T* x_;
};

/// All results of a batch, enqueued in the stream, in two phases: with workspace == nullptr only `bytes` is
/// set. The workspace is aligned to 16 bytes and needs no preparation. `elements` is at least the number that
/// the segments hold; it is not looked at without segments. All pointers are to memory that the device can
/// reach. Returns cudaErrorInvalidValue for a workspace that is too small, and for a layout, an input or an
/// output that `reduce` of the host throws for; and whatever CUDA says.
template <class Order = CoarsenedTree, class R, class T>
requires ReductionOf<R, T> cudaError_t reduce(const R& reduction, void* workspace, std::size_t& bytes,
                                              const T* x, std::size_t elements, const Layout& layout,
                                              ResultOf<R>* out, cudaStream_t stream = nullptr) {
  static_assert(
      may_order<Order, R>,
      "samesum: this order joins elements that are not neighbours, and the reduction is not commutative: "
      "take samesum::Blocked");
  using Fold = UserFold<R, T>;
  const FloatingPointEnvironment environment;
  if (const std::optional<std::size_t> reach = extent(layout, false);
      !validation_error(layout, std::nullopt, false).empty() || !reach ||
      (workspace && !is_array(x, *reach, ElementSize::of<T>())) ||
      (workspace && !is_array(out, layout.results(), ElementSize::of<ResultOf<R>>())))
    return cudaErrorInvalidValue;
  FoldCall call{settled(layout), elements, out, workspace, bytes, stream};
  const cudaError_t error = reduce<typename Order::Shape>(Fold{reduction}, PlainReader<Fold, T>{x}, call);
  bytes = call.bytes;
  return error;
}

/// Of n elements, the one result, with a workspace from the stream-ordered allocator.
template <class Order = CoarsenedTree, class R, class T>
requires ReductionOf<R, T> cudaError_t reduce(const R& reduction, const T* x, std::size_t n, ResultOf<R>* out,
                                              cudaStream_t stream = nullptr) {
  std::size_t bytes = 0;
  void* workspace = nullptr;
  cudaError_t error = reduce<Order>(reduction, nullptr, bytes, x, n, Layout::vector(n), out, stream);
  if (error == cudaSuccess) error = cudaMallocAsync(&workspace, bytes, stream);
  if (error != cudaSuccess) return error;
  error = reduce<Order>(reduction, workspace, bytes, x, n, Layout::vector(n), out, stream);
  const cudaError_t freed = cudaFreeAsync(workspace, stream);
  return error == cudaSuccess ? freed : error;
}

}  // namespace samesum::gpu
