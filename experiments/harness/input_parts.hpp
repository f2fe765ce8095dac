/// Functions shared by the readers of input.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/input.hpp"

namespace samesum::harness {

/// Formats a piece of the file for a message: quoted, printable, on one line, and shortened.
std::string shown(std::string_view text);

/// Loads an unsigned integer in either byte order, from any alignment.
template <class Bits> Bits load(const std::byte* from, bool big_endian) {
  std::byte bytes[sizeof(Bits)];
  std::memcpy(bytes, from, sizeof(Bits));
  if (big_endian != (std::endian::native == std::endian::big)) std::reverse(bytes, bytes + sizeof(Bits));
  return std::bit_cast<Bits>(bytes);
}

template <class F> void store(Column& to, std::size_t i, BitsOf<F> bits) {
  std::memcpy(&to.bytes[i * sizeof(F)], &bits, sizeof bits);
}

/// Converts contiguous elements from the stored format to another one.
Column convert_elements(std::span<const std::byte> elements, bool big_endian, const FormatInfo& stored,
                        const FormatInfo& format);

}  // namespace samesum::harness
