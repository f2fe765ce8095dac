/// Readers of the user's numbers: NumPy files, raw little-endian arrays and text.
///
/// Nothing here depends on the locale, the rounding mode or flush-to-zero: numbers are read by integers
/// alone, and each is rounded once, to nearest, ties to even.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/format/value.hpp"

namespace samesum::harness {

/// Elements read from a file, in one of the library's formats.
struct Column {
  const FormatInfo* format;
  std::vector<std::byte> bytes;  ///< what operator new returns is aligned for every format

  std::size_t size() const { return bytes.size() / format->bytes; }
  Values values() const { return {*format, bytes.data(), size()}; }
};

/// Bad input: what() is one printable line that names the file and the place in it, and the remedy where
/// there is one.
class InputError : public std::runtime_error {
 public:
  /// The problem has to be printable; the name of the file is made so.
  InputError(std::string_view name, const std::string& problem);
};

/// ".npy .f16 …": the extensions that are read.
std::string known_extensions();

/// Reads a file by its extension: .npy .f16 .bf16 .f32 .f64 .txt .csv; "-" is text on standard input.
/// `format` nullptr means the file's own: that of the elements, or fp64 for text and integers.
/// Floating-point elements are rounded to another format once; integers convert exactly or are refused.
Column read_column(const std::string& path, const FormatInfo* format = nullptr);

// The same on bytes in memory; the name is for the messages only.
Column parse_npy(std::span<const std::byte> file, std::string_view name, const FormatInfo* format = nullptr);
Column parse_text(std::string_view text, std::string_view name, const FormatInfo* format = nullptr);
Column parse_raw(std::span<const std::byte> file, std::string_view name, const FormatInfo& stored,
                 const FormatInfo* format = nullptr);

/// One decimal or hexadecimal number, inf, infinity or nan, rounded once; nothing if the text isn't one.
std::optional<Number> parse_number(std::string_view text, const FormatInfo& format);

}  // namespace samesum::harness
