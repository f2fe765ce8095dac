/// Numbers as text.
#pragma once

#include <string>
#include <string_view>

#include "samesum/base/text.hpp"
#include "samesum/format/value.hpp"

namespace samesum::harness {

/// The shortest decimal that reads back as the same bits of the same format, and of those the nearest; inf
/// and nan by name. Integers below 10^16 have all their digits, unless an exponent is shorter.
std::string shortest_decimal(Number x);

/// The same with control characters, and on demand bytes beyond ASCII, as \xNN: safe in one line of a
/// terminal.
std::string printable(std::string_view text, bool keep_high_bytes = true);

/// A message as one printable line.
std::string one_line(std::string message);

/// As printf's %a writes the value.
std::string hexadecimal(Number x);

/// "0x3c00": all the bits, as many digits as the format is wide.
std::string bit_string(Number x);

/// At most `width` characters and so many significant digits, for tables: "0.31", "1.2e+07", "inf", "-" for
/// NaN.
std::string compact(double x, int width, int digits = 3);

/// Three digits that stand still in a column: "0.12", "1.20", "12.0", "120".
std::string three_digits(double x);

/// "12.3ms"
std::string duration(double seconds);

/// Text padded with blanks; what is longer than the column keeps its length.
std::string left(std::string text, std::size_t width);
std::string right(std::string text, std::size_t width);

/// The text with a new line, and `indent` blanks, instead of the last blank before each line would be longer
/// than the width. A word that is longer has a line of its own.
std::string wrapped(const std::string& text, std::size_t width = 80, std::size_t indent = 2);

}  // namespace samesum::harness
