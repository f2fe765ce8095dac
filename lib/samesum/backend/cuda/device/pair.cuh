/// Formats in device code, and types that a thread computes lanes in, faster than scalars but with the same
/// bits, with loads of elements into them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>
#include <bit>

#include "samesum/backend/cuda/device/kernel_formats.hpp"
#include "samesum/format/pack.hpp"

namespace samesum::gpu {

template <class F> struct PairOf;
template <> struct PairOf<fp16> { using type = __half2; };
template <> struct PairOf<bf16> { using type = __nv_bfloat162; };

/// Calls visit.operator()<F>() for the format F with that format index.
template <class Visit> __device__ __forceinline__ void visit_format(std::size_t index, const Visit& visit) {
  KernelFormats::for_each([&]<class F>() {
    constexpr std::size_t of_type = Formats::index_of<F>();
    if (index == of_type) visit.template operator()<F>();
  });
}

/// 2^exponent, a normal number of format C.
template <class C> __device__ CarrierOf<C> scale_of(int exponent) {
  return from_bits<C>(BitsOf<C>(exponent + Format<C>::max_exponent) << (Format<C>::precision - 1));
}

/// Converts an element to fp32 or wider, exactly and in one instruction.
__device__ inline float widen(fp16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float widen(bf16 x) { return __uint_as_float(std::uint32_t{x.bits} << 16); }
__device__ inline float widen(fp32 x) { return x; }
__device__ inline double widen(fp64 x) { return x; }

/// Two neighbouring lanes in one register. The packed instructions of the GPU round each lane to nearest,
/// ties to even, and keep subnormals. Scalar<F> rounds twice, in fp32 and to F, to the same bits: fp32 has at
/// least 2p + 2 bits for F's p (Figueroa 1995, When is double rounding innocuous?).
template <class F> struct Pair {
  using Native = typename PairOf<F>::type;
  std::uint32_t bits;

  __device__ static Pair zero() { return {0}; }
  __device__ static Pair minus_zero() { return {0x80008000u}; }

  /// Both lanes from elements of any format, each rounded once.
  template <class T> __device__ static Pair of(T first, T second) {
    if constexpr (std::is_same_v<T, F>) {
      return {first.bits | std::uint32_t{second.bits} << 16};
    } else if constexpr (std::is_same_v<T, fp64>) {
      return of(Scalar<F>::of(first).v, Scalar<F>::of(second).v);
    } else if constexpr (std::is_same_v<F, fp16>) {
      return from(__floats2half2_rn(widen(first), widen(second)));
    } else {
      return from(__floats2bfloat162_rn(widen(first), widen(second)));
    }
  }

  __device__ friend Pair operator+(Pair a, Pair b) { return from(__hadd2_rn(a.native(), b.native())); }
  __device__ friend Pair operator-(Pair a, Pair b) { return from(__hsub2_rn(a.native(), b.native())); }
  /// A mask that is all ones in each half that is equal.
  __device__ friend std::uint32_t operator==(Pair a, Pair b) { return __heq2_mask(a.native(), b.native()); }
  __device__ friend Pair select(std::uint32_t mask, Pair a, Pair b) {
    return {(a.bits & mask) | (b.bits & ~mask)};
  }
  __device__ friend std::uint32_t is_finite(Pair a) { return (a - a) == zero(); }

  __device__ Scalar<F> lane(int i) const {
    return {widen(from_bits<F>(static_cast<std::uint16_t>(bits >> (16 * i))))};
  }
  __device__ Native native() const { return reinterpret_cast<const Native&>(bits); }

 private:
  __device__ static Pair from(Native x) { return {reinterpret_cast<const std::uint32_t&>(x)}; }
};

/// The type that lanes of F are computed in, and its number of lanes.
template <class F> using Fast = std::conditional_t<sizeof(F) == 2, Pair<F>, Unchecked<Scalar<F>>>;
template <class V> inline constexpr int width = 1;
template <class F> inline constexpr int width<Pair<F>> = 2;

/// Loads as many elements of x as V has lanes; each is rounded once.
template <class V, class T> __device__ V load(const T* x) {
  if constexpr (width<V> == 2)
    return V::of(x[0], x[1]);
  else
    return V::of(widen(x[0]));
}

/// The state of lane i of a state of several lanes.
template <template <class> class A, class F> __device__ A<Scalar<F>> lane_of(const A<Scalar<F>>& state, int) {
  return state;
}
template <template <class> class A, class V> __device__ A<V> lane_of(const A<Unchecked<V>>& state, int) {
  return std::bit_cast<A<V>>(state);
}
template <template <class> class A, class F> __device__ A<Scalar<F>> lane_of(const A<Pair<F>>& state, int i) {
  constexpr std::size_t numbers = sizeof(state) / sizeof(Pair<F>);
  const auto pairs = std::bit_cast<std::array<Pair<F>, numbers>>(state);
  std::array<Scalar<F>, numbers> lane;
  for (std::size_t k = 0; k < numbers; ++k) lane[k] = pairs[k].lane(i);
  return std::bit_cast<A<Scalar<F>>>(lane);
}

}  // namespace samesum::gpu
