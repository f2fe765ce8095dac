/// Exact sums and extrema of integers in memory, over any axes of an array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace samesum::cpu {

/// Types of integers; booleans are bytes that are 0 or 1.
enum class IntegerType { int8, int16, int32, int64, uint8, uint16, uint32, uint64, boolean };
inline constexpr std::array<std::string_view, 9> integer_type_names{
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"};

/// An axis of an array: its length, and how far apart neighbours are, in elements and in flags.
struct IntegerAxis {
  std::size_t n;
  std::ptrdiff_t stride, where_stride;
  bool reduced;
};

/// Integers that are reduced over some of their axes. The results are those of the other axes, in row-major
/// order.
struct IntegerArray {
  IntegerType type;
  const void* x;
  const std::uint8_t* where;  ///< the flags of the elements that take part; null if all do
  std::vector<IntegerAxis> axes;
};

/// Writes the sums as std::uint64_t for unsigned types, else as std::int64_t, modulo 2^64. Returns whether
/// one of them is beyond its type.
bool sum_integers(const IntegerArray& array, void* out);
/// Writes the extrema in the type of the integers. Returns whether one is of no integers, and not valid.
bool extrema_of_integers(const IntegerArray& array, bool smallest, void* out);
/// Writes the first index of the extrema, counted in row-major order of the reduced axes. Returns
/// whether one is of no integers, and not valid.
bool indices_of_extrema(const IntegerArray& array, bool smallest, std::int64_t* out);

}  // namespace samesum::cpu
