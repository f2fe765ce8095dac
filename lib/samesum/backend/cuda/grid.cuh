/// Grids of the results of a call on a GPU, and fast paths of reductions on a grid for sums of elements and
/// of their magnitudes.
#pragma once

#include "samesum/backend/cuda/pair.cuh"
#include "samesum/operation/grid_reduction.hpp"
#include "samesum/operation/reducer.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::gpu {

/// What determines the grid of each result.
struct GridSource {
  int given;                      ///< the grid of all results if `exponents` is null
  const std::int32_t* exponents;  ///< largest exponent of each result
  int word_bits, quantum;         ///< arguments of found_grid

  __device__ int grid(std::size_t at, std::uint64_t n) const {
    return exponents == nullptr ? given : found_grid(exponents[at], n, word_bits, quantum);
  }
};

/// The largest of some numbers; `fresh` if there are none.
template <class X, X fresh> struct Largest {
  X value = fresh;
  __device__ void add(X x) { value = max(value, x); }
  __device__ void merge(const Largest& other) { add(other.value); }
};
/// The largest exponent of some terms.
using LargestExponent = Largest<std::int32_t, no_exponent>;
/// The largest magnitude of a lane, as bits.
template <class C> using LargestMagnitude = Largest<BitsOf<C>, 0>;

/// The fast path to the largest exponent of elements: compares magnitudes as integers. Lanes with an infinity
/// or NaN need the reducer.
template <class C> struct LargestExponentFastPath : StateReducer<LargestMagnitude<C>, BitsOf<C>> {
  static constexpr int inputs = 1;
  static constexpr bool is_light = true;
  Term term;
  __device__ bool applies() const { return term <= Term::magnitude; }
  template <class Element> __device__ BitsOf<C> item(const Element& e) const {
    return static_cast<BitsOf<C>>(to_bits(C{e.x.v}) & ~Format<C>::sign_bit);
  }
  __device__ bool succeeded(const LargestMagnitude<C>& state) const {
    return state.value < Format<C>::infinity;
  }
  __device__ LargestExponent state(const LargestMagnitude<C>& fast, std::uint64_t, int) const {
    return {exponent_of(from_bits<C>(fast.value))};
  }
};

/// The sum of the units of a lane, and the magnitude of the largest, not yet rounded, as bits.
struct LaneUnits {
  std::int64_t sum = 0;
  std::uint32_t largest = 0;
  __device__ void add(float units) {
    sum += __float2ll_rn(units);
    largest = max(largest, __float_as_uint(units) & 0x7fffffff);
  }
};
/// The fast path for elements of up to 32 bits, in single precision: a lane of terms below 2^56 units fits 64
/// bits. Scaling by powers of two is exact, or gives a number far below half a unit.
struct GridFastPath : StateReducer<LaneUnits, float> {
  static constexpr int inputs = 1;
  static constexpr int most_bits = 56;
  static_assert(most_bits + ceil_log2(CoarsenedTree::Shape::rows) < 63);
  bool can_apply, magnitudes;
  float first, second;  ///< 2^-grid in two steps, since it may not be a normal number

  GridFastPath() = default;
  __device__ GridFastPath(int grid, Term term, bool may_fit)
      : can_apply{may_fit && term <= Term::magnitude && grid >= -250 && grid <= 250},
        magnitudes{term == Term::magnitude},
        first{can_apply ? scale_of<fp32>(-grid / 2) : 0},
        second{can_apply ? scale_of<fp32>(-grid - -grid / 2) : 0} {}
  __device__ bool applies() const { return can_apply; }
  template <class Element> __device__ float item(const Element& e) const {
    const float units = static_cast<float>(e.x.v) * first * second;
    return magnitudes ? fabsf(units) : units;
  }
  __device__ bool succeeded(const LaneUnits& state) const {
    return state.largest < __float_as_uint(scale_of<fp32>(most_bits));
  }
  __device__ GridSum state(const LaneUnits& fast, std::uint64_t, int) const {
    const auto largest = static_cast<std::uint64_t>(__float2ll_rn(__uint_as_float(fast.largest)));
    return {Int128::of(fast.sum), 0, bits_for_terms(largest)};
  }
};

/// The fast path for elements in the carrier C of their format, if there is one.
template <class C> struct FastPathFor {};
template <> struct FastPathFor<float> { using FastPath = GridFastPath; };

}  // namespace samesum::gpu
