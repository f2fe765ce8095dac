/// What the readers of input.hpp share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/input.hpp"

namespace samesum::harness {

/// A piece of the file for a message: quoted, on one line, printable, and not long.
std::string shown(std::string_view text);

/// An unsigned integer stored in either byte order, at any alignment.
template <class Bits> Bits load(const std::byte* from, bool big_endian) {
  std::byte bytes[sizeof(Bits)];
  std::memcpy(bytes, from, sizeof(Bits));
  if (big_endian != (std::endian::native == std::endian::big)) std::reverse(bytes, bytes + sizeof(Bits));
  return std::bit_cast<Bits>(bytes);
}

template <class F> void store(Column& to, std::size_t i, BitsOf<F> bits) {
  std::memcpy(&to.bytes[i * sizeof(F)], &bits, sizeof bits);
}

/// Elements one after another, stored in one format and taken in another.
Column convert_elements(std::span<const std::byte> elements, bool big_endian, const FormatInfo& stored,
                        const FormatInfo& format);

}  // namespace samesum::harness
