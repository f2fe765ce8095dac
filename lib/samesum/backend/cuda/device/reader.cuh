/// Loads the elements of a reducer, and rounds them to its format.
#pragma once

#include "samesum/backend/cuda/device/column.cuh"
#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

/// Reads elements of format T; each is rounded once to F.
template <class F, class T> class Reader {
 public:
  using Element = InputElement<F>;
  static constexpr std::size_t alignment = 4 * sizeof(T) <= 16 ? 4 * sizeof(T) : 16;
  /// Neighbouring elements as stored in memory; a word holds two 16-bit elements.
  template <int count> struct alignas(alignment) RawOf {
    using Word = std::conditional_t<sizeof(T) == 2, std::uint32_t, BitsOf<T>>;
    static constexpr int per_word = sizeof(Word) / sizeof(T);
    Word word[count / per_word];

    __device__ void set(int i, BitsOf<T> bits) { word[i / per_word] |= Word{bits} << 16 * (i % per_word); }
    __device__ Scalar<F> rounded(int i) const {
      const Word w = word[i / per_word];
      if constexpr (std::is_same_v<T, bf16> && sizeof(CarrierOf<F>) == 4)  // the upper half of an fp32
        return Scalar<F>::of(__uint_as_float(i % 2 == 0 ? w << 16 : w & 0xffff0000));
      else
        return Reader::rounded(static_cast<BitsOf<T>>(w >> 16 * (i % per_word)));
    }
  };

  using Raw = RawOf<4>;

  SAMESUM_HD Reader(const void* x, const void* y)
      : x_{static_cast<const BitsOf<T>*>(x)}, y_{static_cast<const BitsOf<T>*>(y)} {}

  /// A reader that starts `by` elements further on.
  __device__ Reader moved(std::size_t by) const { return {x_ + by, y_ == nullptr ? nullptr : y_ + by}; }
  SAMESUM_HD int inputs() const { return y_ == nullptr ? 1 : 2; }
  /// Whether the elements from `place` on can be loaded four at a time.
  __device__ bool is_aligned(std::size_t place) const {
    const auto is = [place](const BitsOf<T>* p) {
      return reinterpret_cast<std::uintptr_t>(p + place) % alignment == 0;
    };
    return is(x_) && (y_ == nullptr || is(y_));
  }

  /// Loads the first `count` of `run` elements, from the second input if `second`.
  template <int run = 4>
  __device__ RawOf<run> fetch(bool second, std::size_t place, int count, bool aligned) const {
    const BitsOf<T>* from = (second ? y_ : x_) + place;
    if (aligned && count == run) return *reinterpret_cast<const RawOf<run>*>(from);
    RawOf<run> raw{};
    for (int i = 0; i < run; ++i)
      if (i < count) raw.set(i, from[i]);
    return raw;
  }

  /// Rounds four neighbours, the first of which has the index base + offset.
  __device__ void elements(const Raw& x, const Raw& y, std::uint64_t base, int offset,
                           Element (&e)[4]) const {
    for (int i = 0; i < 4; ++i)
      e[i] = {x.rounded(i), y_ == nullptr ? Scalar<F>::zero() : y.rounded(i), base,
              static_cast<std::uint32_t>(offset + i)};
  }

  /// Loads the first `count` of `most` elements of a column. They are `stride` apart in memory, a number or a
  /// Step, and `apart` in the reduction.
  template <int most, class Stride>
  __device__ void column(std::size_t place, Stride stride, int count, std::uint64_t base, int offset,
                         int apart, Element (&e)[most]) const {
    // 32-bit registers even for 16-bit elements: packing two of them would wait for each load in turn
    using Register = std::conditional_t<sizeof(T) == 2, std::uint32_t, BitsOf<T>>;
    Register x[most]{}, y[most]{};
    load_column(x_ + place, stride, count, x);
    if (y_ != nullptr) load_column(y_ + place, stride, count, y);
#pragma unroll
    for (int r = 0; r < most; ++r)
      e[r] = {rounded(static_cast<BitsOf<T>>(x[r])), rounded(static_cast<BitsOf<T>>(y[r])), base,
              static_cast<std::uint32_t>(offset + r * apart)};
  }

 private:
  __device__ static Scalar<F> rounded(BitsOf<T> bits) {
    if constexpr (std::is_same_v<T, F>)
      return {widen(from_bits<T>(bits))};
    else
      return Scalar<F>::of(widen(from_bits<T>(bits)));
  }

  const BitsOf<T>*x_, *y_;
};

}  // namespace samesum::gpu
