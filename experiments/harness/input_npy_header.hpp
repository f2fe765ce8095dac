/// The header of a .npy file.
#pragma once

#include <cstdint>

#include "harness/input_parts.hpp"

namespace samesum::harness {

struct NpyHeader {
  std::string descr;  ///< the element type, as NumPy spells it
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Reads the header and cuts it off: what is left of the file are the data.
NpyHeader take_npy_header(std::span<const std::byte>& file, std::string_view name);

}  // namespace samesum::harness
