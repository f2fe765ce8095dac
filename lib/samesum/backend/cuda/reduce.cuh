/// How the folds of the list read their elements: of a format that is known at run time, so that one kernel
/// serves all.
#pragma once

#include "samesum/backend/cuda/fold.cuh"
#include "samesum/backend/cuda/pair.cuh"
#include "samesum/operation/fold.hpp"

namespace samesum::gpu {

template <class F> class Reader {
 public:
  using Element = Read<F>;
  /// Four neighbouring elements as they lie in memory: 8 or 16 bytes, of fp64 32.
  using Raw = std::array<uint4, sizeof(F) == 8 ? 2 : 1>;

  Reader(const void* x, const void* y, std::size_t input)
      : at_{x, y},
        bytes_{static_cast<unsigned>(formats[input].bytes)},
        is_bf16_{input == Formats::index_of<bf16>()} {}

  __device__ int inputs() const { return at_[1] == nullptr ? 1 : 2; }
  /// Whether the elements from there on can be loaded four at a time.
  __device__ bool is_aligned(std::size_t place) const {
    const unsigned alignment = bytes_ == 8 ? 16 : 4 * bytes_;
    return address(0, place) % alignment == 0 && (at_[1] == nullptr || address(1, place) % alignment == 0);
  }

  /// The first `count` of four.
  __device__ Raw fetch(bool second, std::size_t place, int count, bool aligned) const {
    Raw raw{};
    const std::uintptr_t from = address(second, place);
    if (aligned && count == 4) {
      if (bytes_ == 2) {
        const uint2 two = *reinterpret_cast<const uint2*>(from);
        raw[0].x = two.x;
        raw[0].y = two.y;
      } else {
        for (unsigned i = 0; i < raw.size(); ++i)
          if (i == 0 || bytes_ == 8) raw[i] = reinterpret_cast<const uint4*>(from)[i];
      }
    } else if (bytes_ == 2) {
      auto half = std::bit_cast<std::array<std::uint16_t, sizeof(Raw) / 2>>(raw);
      for (int i = 0; i < 4; ++i)
        if (i < count) half[i] = reinterpret_cast<const std::uint16_t*>(from)[i];
      raw = std::bit_cast<Raw>(half);
    } else if (bytes_ == 4) {
      auto word = std::bit_cast<std::array<std::uint32_t, sizeof(Raw) / 4>>(raw);
      for (int i = 0; i < 4; ++i)
        if (i < count) word[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
      raw = std::bit_cast<Raw>(word);
    } else if constexpr (sizeof(F) == 8) {
      auto word = std::bit_cast<std::array<std::uint64_t, 4>>(raw);
      for (int i = 0; i < 4; ++i)
        if (i < count) word[i] = reinterpret_cast<const std::uint64_t*>(from)[i];
      raw = std::bit_cast<Raw>(word);
    }
    return raw;
  }

  __device__ void elements(const Raw& x, const Raw& y, std::uint64_t index, Element (&e)[4]) const {
    const auto of_x = rounded(x), of_y = at_[1] == nullptr ? std::array<Scalar<F>, 4>{} : rounded(y);
    for (int i = 0; i < 4; ++i) e[i] = {of_x[i], of_y[i], index + static_cast<std::uint64_t>(i)};
  }

  /// The first `count` of some elements of a column, `stride` apart.
  template <int most>
  __device__ void column(std::size_t place, std::size_t stride, int count, std::uint64_t index,
                         std::uint64_t index_stride, Element (&e)[most][1]) const {
    std::array<std::uint64_t, 2 * most> bits{};
    const auto load = [&]<class Word>(Word) {
      for (int input = 0; input < inputs(); ++input)
        for (int r = 0; r < most; ++r)
          if (r < count)
            bits[input * most + r] = *reinterpret_cast<const Word*>(address(input, place + r * stride));
    };
    if (bytes_ == 2)
      load(std::uint16_t{});
    else if (bytes_ == 4)
      load(std::uint32_t{});
    else
      load(std::uint64_t{});
    for (int r = 0; r < most; ++r)
      e[r][0] = {one(bits[r]), at_[1] == nullptr ? Scalar<F>::zero() : one(bits[most + r]),
                 index + r * index_stride};
  }

 private:
  __device__ std::uintptr_t address(int input, std::size_t place) const {
    return reinterpret_cast<std::uintptr_t>(at_[input]) + place * bytes_;
  }
  __device__ Scalar<F> one(std::uint64_t bits) const {
    if constexpr (sizeof(F) == 8)
      if (bytes_ == 8) return {__longlong_as_double(static_cast<long long>(bits))};
    if (bytes_ == 4) return Scalar<F>::of(__uint_as_float(static_cast<unsigned>(bits)));
    const auto half = static_cast<std::uint16_t>(bits);
    return Scalar<F>::of(is_bf16_ ? widen(from_bits<bf16>(half)) : widen(from_bits<fp16>(half)));
  }
  __device__ std::array<Scalar<F>, 4> rounded(const Raw& raw) const {
    std::array<Scalar<F>, 4> four;
    if (bytes_ == 2) {
      const unsigned pair[2] = {raw[0].x, raw[0].y};
      for (int i = 0; i < 4; ++i) four[i] = one(pair[i / 2] >> (16 * (i % 2)) & 0xffffu);
    } else if (bytes_ == 4) {
      const unsigned word[4] = {raw[0].x, raw[0].y, raw[0].z, raw[0].w};
      for (int i = 0; i < 4; ++i) four[i] = one(word[i]);
    } else if constexpr (sizeof(F) == 8) {
      const auto word = std::bit_cast<std::array<std::uint64_t, 4>>(raw);
      for (int i = 0; i < 4; ++i) four[i] = one(word[i]);
    }
    return four;
  }

  const void* at_[2];
  unsigned bytes_;
  bool is_bf16_;
};

}  // namespace samesum::gpu
