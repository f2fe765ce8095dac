/// Support for the tests of softmax: rows at any address, and rows of every kind.
#pragma once

#include <algorithm>

#include "samesum/operation/softmax.hpp"
#include "support.hpp"

namespace samesum::testing_support {

/// Position of rows in memory, in elements.
struct Place {
  std::size_t offset = 0;  ///< of the first row from an aligned address
  std::size_t gap = 0;     ///< between rows
};

/// Rows of one format in host memory, with poison before, between and after them.
class Table {
 public:
  static constexpr std::byte poison{0xa5};

  Table(const FormatInfo& format, std::size_t rows, std::size_t columns, Place place = {})
      : format_{&format},
        rows_{rows},
        columns_{columns},
        place_{place},
        memory_((place.offset + rows * stride() + 64) * format.bytes + 64, poison) {}
  Table(const FormatInfo& format, std::size_t columns, const std::vector<double>& x, Place place = {})
      : Table{format, columns == 0 ? 0 : x.size() / columns, columns, place} {
    with_format(format, [&]<class F>() {
      for (std::size_t i = 0; i < rows_ * columns_; ++i) {
        const F element = convert<F>(x[i]);
        std::memcpy(at(i), &element, sizeof(F));
      }
    });
  }

  Table(const Table&) = delete;  // a copy would have another alignment

  Values values() const { return {*format_, const_cast<Table*>(this)->first(), extent()}; }
  Layout layout() const { return Layout::rows(rows_, columns_, stride()); }
  Results results() { return {format_, first(), extent(), stride()}; }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  std::size_t stride() const { return columns_ + place_.gap; }
  const FormatInfo& format() const { return *format_; }
  std::vector<std::byte>& memory() { return memory_; }
  /// Offset of the first row in `memory()`, in bytes.
  std::size_t begin() { return static_cast<std::size_t>(first() - memory_.data()); }

  /// Returns the bits of all elements, row by row.
  std::vector<std::uint64_t> bits() const {
    std::vector<std::uint64_t> all(rows_ * columns_);
    for (std::size_t i = 0; i < all.size(); ++i)
      std::memcpy(&all[i], const_cast<Table*>(this)->at(i), format_->bytes);
    return all;
  }
  double operator()(std::size_t r, std::size_t c) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, const_cast<Table*>(this)->at(r * columns_ + c), format_->bytes);
    return Number{format_, bits}.to_double();
  }
  /// Whether nothing was written outside the elements.
  bool surroundings_are_untouched() {
    std::vector<std::byte> copy = memory_;
    for (std::size_t r = 0; r < rows_; ++r)
      std::fill_n(copy.data() + (first() - memory_.data()) + r * stride() * format_->bytes,
                  columns_ * format_->bytes, poison);
    return std::ranges::all_of(copy, [](std::byte b) { return b == poison; });
  }

 private:
  /// Number of elements from the first one to the end of the last row.
  std::size_t extent() const { return rows_ == 0 || columns_ == 0 ? 0 : (rows_ - 1) * stride() + columns_; }
  std::byte* first() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (64 - address % 64) % 64 + place_.offset * format_->bytes;
  }
  std::byte* at(std::size_t i) { return first() + (i / columns_ * stride() + i % columns_) * format_->bytes; }

  const FormatInfo* format_;
  std::size_t rows_, columns_;
  Place place_;
  std::vector<std::byte> memory_;
};

/// Returns rows of different kinds: ordinary ones, a spread of 10^4, equal values, one big value, zeros of
/// both signs, and, if `special`, NaN and infinities. The kind of row r is r modulo the number of kinds. The
/// bits depend only on r and `columns`.
inline std::vector<double> rows_of_all_kinds(std::size_t rows, std::size_t columns, bool special,
                                             std::size_t first = 0) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> all;
  for (std::size_t r = first; r < first + rows; ++r) {
    std::vector<double> x = uniform(columns, 17 * r + columns);
    const std::size_t kind = r % (special ? 11 : 5), middle = columns / 2;
    for (std::size_t i = 0; i < columns; ++i) {
      if (kind == 0) x[i] *= 6;
      if (kind == 1) x[i] *= 5000;
      if (kind == 2) x[i] = 1.5;
      if (kind == 3) x[i] = i == middle ? 60 : x[i] - 3;
      if (kind == 4) x[i] = i % 3 == 0 ? 0.0 : i % 3 == 1 ? -0.0 : x[i] * 0x1p-20;
      if (kind == 5) x[i] = -inf;
      if (kind == 9) x[i] = -0.0;
      if (kind == 10) x[i] = i % 2 ? -inf : x[i];
    }
    if (columns > 0 && kind == 6) x[middle] = inf;
    if (columns > 0 && kind == 7) x[columns - 1] = nan;
    if (columns > 0 && kind == 8) x[middle] = -inf;
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

/// Returns rows with the elements 0, one between -0.6 and 0, and, in every second pair of rows, a tiny one.
/// The sum of the first two exponentials lies midway between two numbers in about half of the rows, and
/// e^tiny decides how it is rounded. Every seventh row has a NaN or +inf, or -inf alone.
inline std::vector<double> rows_with_ties(std::size_t rows, std::size_t columns, double tiny) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> all(rows * columns, -inf);
  for (std::size_t r = 0; r < rows; ++r) {
    double* const row = &all[r * columns];
    if (r % 21 == 20) continue;
    row[r % 3] = r % 21 == 6 ? nan : r % 21 == 13 ? inf : 0;
    row[columns - 1 - r % 2] = -0.6 * static_cast<double>(r + 1) / static_cast<double>(rows);
    if (r / 2 % 2) row[columns / 2] = tiny;
  }
  return all;
}

/// Exponents of tiny exponentials: beyond the first window of an exact sum, beyond others, and, in fp64,
/// with a subnormal e^tiny.
inline std::vector<double> tiny_exponents(const Method& m) {
  return m.format->bytes == 8 ? std::vector<double>{-60, -700, -730, -744} : std::vector<double>{-60, -90};
}

inline std::vector<const Method*> softmaxes_of(std::string_view backend) {
  std::vector<const Method*> chosen;
  for (const std::string_view operation : {"softmax", "log_softmax"})
    for (const Method& m : methods(operation))
      if (m.backend == backend) chosen.push_back(&m);
  return chosen;
}

inline SoftmaxForm form_of(const Method& m) {
  const bool in_fp64 = m.format == &format_info<fp64>(), log = m.operation == "log_softmax";
  if (m.accumulator == "exact") return {SoftmaxSum::exact, in_fp64, log};
  if (m.accumulator == "online") return {SoftmaxSum::online, in_fp64, log};
  constexpr SoftmaxSum plain[] = {SoftmaxSum::fp16, SoftmaxSum::bf16, SoftmaxSum::fp32, SoftmaxSum::fp64};
  return {plain[m.format->index], in_fp64, log};
}

/// Returns the bits of all results, written to a table at the given place.
inline std::vector<std::uint64_t> computed(const Method& m, const Table& in, Place place = {},
                                           int threads = 1) {
  Table out{in.format(), in.rows(), in.columns(), place};
  reduce(m, in.values(), in.layout(), out.results(), {.threads = threads});
  EXPECT_TRUE(out.surroundings_are_untouched()) << m.name;
  return out.bits();
}

/// Returns the formats of elements that a method accepts.
inline std::vector<const FormatInfo*> formats_of(const Method& m) {
  std::vector<const FormatInfo*> all;
  for (const FormatInfo& f : formats)
    if (m.accepts(f)) all.push_back(&f);
  return all;
}

}  // namespace samesum::testing_support
