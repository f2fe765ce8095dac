/// Reductions of your own on a GPU: see reduce.hpp. To be included where CUDA code is compiled.
#pragma once

#include "samesum/backend/cuda/batch.cuh"
#include "samesum/backend/cuda/check.hpp"
#include "samesum/operation/validation.hpp"
#include "samesum/reducer.hpp"

namespace samesum::gpu {

/// Elements of any type, as they are.
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

namespace detail {

/// A call of such a reduction, or a message that names the argument and the remedy. Offsets stay where they
/// are.
template <class R, class T>
std::string validation_error(const Layout& layout, const T* x, const ResultOf<R>* out) {
  std::string wrong = samesum::validation_error(layout, std::nullopt, false);
  if (wrong.empty()) wrong = samesum::validation_error("x", x, *extent(layout, false), ElementSize::of<T>());
  if (wrong.empty())
    wrong = samesum::validation_error("out", out, layout.results(), ElementSize::of<ResultOf<R>>());
  return wrong;
}

template <class Order, class R, class T>
cudaError_t enqueue(const R& reduction, const T* x, ReducerCall& call) {
  static_assert(
      may_order<Order, R>,
      "samesum: this order joins elements that are not neighbours, and the reduction is not commutative: "
      "take samesum::Blocked");
  using Reducer = CustomReducer<R, T>;
  return gpu::reduce<typename Order::Shape>(Reducer{reduction}, PlainReader<Reducer, T>{x}, call);
}

}  // namespace detail

/// All results of a batch, in two phases as in gpu.hpp; the workspace needs no preparation, and one that was
/// prepared stays so. `elements` is at least the number that the segments hold; it is not read without
/// segments. Returns cudaErrorInvalidValue for a workspace that is too small and for what samesum::reduce of
/// the host throws for, and whatever CUDA says.
template <class Order = CoarsenedTree, class R, class T>
requires ReductionOf<R, T> cudaError_t reduce(const R& reduction, void* workspace, std::size_t& bytes,
                                              const T* x, std::size_t elements, const Layout& layout,
                                              ResultOf<R>* out, cudaStream_t stream = nullptr)
noexcept try {
  const FloatingPointEnvironment environment;
  if (!validation_error(layout, std::nullopt, false).empty() ||
      (workspace && !detail::validation_error<R>(layout, x, out).empty()) ||
      reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
    return cudaErrorInvalidValue;
  ReducerCall call{settled(layout), elements, out, workspace, bytes, stream};
  const cudaError_t error = detail::enqueue<Order>(reduction, x, call);
  bytes = call.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // of a message
}

/// The same with a workspace from `pool` (nullptr: the device's current one), taken and given back in the
/// stream's order. Throws Error, which names the call, and std::invalid_argument for a wrong argument.
template <class Order = CoarsenedTree, class R, class T>
requires ReductionOf<R, T>
void reduce(const R& reduction, const T* x, std::size_t elements, const Layout& layout, ResultOf<R>* out,
            cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = detail::validation_error<R>(layout, x, out); !wrong.empty())
    throw std::invalid_argument("samesum: reduce: " + wrong);
  ReducerCall call{settled(layout), elements, out, nullptr, 0, stream};
  with_pool("reduce", call, pool, [&](ReducerCall& c) { return detail::enqueue<Order>(reduction, x, c); });
}

/// For n elements, the one result.
template <class Order = CoarsenedTree, class R, class T>
requires ReductionOf<R, T>
void reduce(const R& reduction, const T* x, std::size_t n, ResultOf<R>* out, cudaStream_t stream = nullptr,
            cudaMemPool_t pool = nullptr) {
  reduce<Order>(reduction, x, n, Layout::vector(n), out, stream, pool);
}

}  // namespace samesum::gpu
