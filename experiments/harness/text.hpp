/// Numbers as text.
#pragma once

#include <string>
#include <string_view>

#include "samesum/base/text.hpp"
#include "samesum/call/values.hpp"

namespace samesum::harness {

/// The shortest decimal that reads back as the same bits of the same format; of several, the nearest one.
/// Infinities and NaN are "inf", "-inf" and "nan". Integers below 10^16 have all their digits, unless an
/// exponent is shorter.
std::string shortest_decimal(Number x);

/// Replaces control characters by \xNN, and also bytes beyond ASCII if `keep_high_bytes` is false, so that
/// the text is safe in one line of a terminal.
std::string printable(std::string_view text, bool keep_high_bytes = true);

/// Converts a message to one printable line.
std::string one_line(std::string message);

/// The value as printf writes it with %a.
std::string hexadecimal(Number x);

/// All bits of a number in hexadecimal, "0x3c00"; the number of digits depends on the format only.
std::string bit_string(Number x);

/// A number for tables, with at most `width` characters and `digits` significant digits: "0.31", "1.2e+07",
/// "inf", "-" for NaN.
std::string compact(double x, int width, int digits = 3);

/// A number with three digits, of constant width in a column: "0.12", "1.20", "12.0", "120".
std::string three_digits(double x);

/// A time with three digits and its unit: "12.3ms".
std::string duration(double seconds);

/// Pads text with blanks to the width of a column. Longer text keeps its length.
std::string left(std::string text, std::size_t width);
std::string right(std::string text, std::size_t width);

/// Wraps text at blanks to lines of at most `width` bytes; all lines but the first begin with `indent`
/// blanks. A longer word gets its own line.
std::string wrapped(const std::string& text, std::size_t width = 80, std::size_t indent = 2);

}  // namespace samesum::harness
