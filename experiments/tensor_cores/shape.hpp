/// Shapes of the instructions of matrix units: what data, models and the hardware need to know about one,
/// without CUDA.
#pragma once

#include <cstdint>
#include <type_traits>

#include "samesum/accumulator/fused_sum.hpp"

namespace samesum::tensor_cores {

/// Words of a row of A or of a column of B: in every instruction k is 256 bits wide.
constexpr int words = 8, columns = 8;

struct Int8 {
  static constexpr int width = 8;
};

/// Formats of an instruction, and its rows in a block of 128 threads. Each thread has `outputs` results.
template <class ElementType, class ResultType, int RowsPerWarp = 16> struct Instruction {
  using Element = ElementType;
  using Result = ResultType;
  static constexpr int rows_per_warp = RowsPerWarp, rows = 4 * RowsPerWarp, outputs = RowsPerWarp / 4;
  static constexpr int n = 256 / ElementType::width;  ///< products of a dot product
};

/// A dot product with its operands, and what the hardware, or a model in its place, returned.
struct DotProduct {
  std::uint32_t a[words] = {}, b[words] = {};
  std::uint64_t c = 0, hardware = 0;
  std::int32_t kind = 0;
};

/// How many dot products of a class were compared, and with what outcome. NaN that differ in other bits count
/// apart.
struct Counts {
  unsigned long long dots = 0, mismatches = 0, other_nans = 0;
};

/// What the model predicts for a dot product, as bits.
template <class I>
SAMESUM_HD std::uint64_t predicted(const std::uint32_t* a, const std::uint32_t* b, std::uint64_t c,
                                   const FusedSum& p) {
  if constexpr (std::is_same_v<typename I::Element, Int8>) {
    return byte_dot(a, b, I::n, std::uint32_t(c));
  } else if constexpr (std::is_same_v<typename I::Result, double>) {
    double x[I::n], y[I::n];
    for (int k = 0; k < I::n; ++k) {
      x[k] = from_bits<double>(a[2 * k] | std::uint64_t(a[2 * k + 1]) << 32);
      y[k] = from_bits<double>(b[2 * k] | std::uint64_t(b[2 * k + 1]) << 32);
    }
    return to_bits(fma_dot(x, y, I::n, from_bits<double>(c), p.is_reversed));
  } else {
    using R = typename I::Result;
    return fused_dot<typename I::Element, R, I::n>(a, b, BitsOf<R>(c), p);
  }
}

/// Whether these bits are a NaN of the result's format.
template <class I> SAMESUM_HD constexpr bool is_nan(std::uint64_t bits) {
  if constexpr (std::is_same_v<typename I::Result, std::int32_t>)
    return false;
  else
    return is_nan_bits<typename I::Result>(BitsOf<typename I::Result>(bits));
}

}  // namespace samesum::tensor_cores
