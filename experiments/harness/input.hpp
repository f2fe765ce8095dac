/// Readers of the user's data: NumPy files, raw little-endian arrays and text.
///
/// The readers use integer arithmetic only and round each number once, to nearest, ties to even. Results do
/// not depend on the locale, the rounding mode or flush-to-zero.
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
  std::vector<std::byte> bytes;  ///< aligned for every format, because operator new is

  std::size_t size() const { return bytes.size() / format->bytes; }
  Values values() const { return {*format, bytes.data(), size()}; }
};

/// Bad input. what() is one printable line with the file, the place in it, and, if there is one, the remedy.
class InputError : public std::runtime_error {
 public:
  /// `problem` must be printable. The name of the file may be any text.
  InputError(std::string_view name, const std::string& problem);
};

/// The extensions of files that can be read: ".npy .f16 …".
std::string known_extensions();

/// Reads a file according to its extension: .npy .f16 .bf16 .f32 .f64 .txt .csv; "-" is text on standard
/// input. If `format` is nullptr, keeps the format of the elements; text and integers become fp64. Otherwise
/// rounds floating-point elements once to `format`. Throws InputError for a bad file, and for an integer that
/// the format cannot represent.
Column read_column(const std::string& path, const FormatInfo* format = nullptr);

// The same for bytes in memory. The name appears in messages only.
Column parse_npy(std::span<const std::byte> file, std::string_view name, const FormatInfo* format = nullptr);
Column parse_text(std::string_view text, std::string_view name, const FormatInfo* format = nullptr);
Column parse_raw(std::span<const std::byte> file, std::string_view name, const FormatInfo& stored,
                 const FormatInfo* format = nullptr);

/// Reads one decimal or hexadecimal number, inf, infinity or nan, and rounds it once. Empty if the text is
/// none of these.
std::optional<Number> parse_number(std::string_view text, const FormatInfo& format);

}  // namespace samesum::harness
