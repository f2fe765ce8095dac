/// Views of rows whose format is known at run time. They own nothing.
#pragma once

#include "samesum/value.hpp"

namespace samesum {

/// Element (r, c) is element r·row_stride + c of data; row_stride >= columns. Element alignment is enough.
struct Matrix {
  const FormatInfo* format;
  const void* data;
  std::size_t rows, columns, row_stride;

  template <Element T>
  Matrix(const T* first, std::size_t r, std::size_t c, std::size_t stride)
      : Matrix{format_info<T>(), first, r, c, stride} {}
  /// Rows one right after the other.
  template <Element T> Matrix(const T* first, std::size_t r, std::size_t c) : Matrix{first, r, c, c} {}
  Matrix(const FormatInfo& f, const void* first, std::size_t r, std::size_t c, std::size_t stride)
      : format{&f}, data{first}, rows{r}, columns{c}, row_stride{stride} {}
};

/// The same, to write to.
struct MutableMatrix {
  const FormatInfo* format;
  void* data;
  std::size_t rows, columns, row_stride;

  template <Element T>
  MutableMatrix(T* first, std::size_t r, std::size_t c, std::size_t stride)
      : MutableMatrix{format_info<T>(), first, r, c, stride} {}
  template <Element T>
  MutableMatrix(T* first, std::size_t r, std::size_t c) : MutableMatrix{first, r, c, c} {}
  MutableMatrix(const FormatInfo& f, void* first, std::size_t r, std::size_t c, std::size_t stride)
      : format{&f}, data{first}, rows{r}, columns{c}, row_stride{stride} {}

  operator Matrix() const { return {*format, data, rows, columns, row_stride}; }
};

}  // namespace samesum
