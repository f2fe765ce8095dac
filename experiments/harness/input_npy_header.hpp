/// The header of a .npy file.
#pragma once

#include <cstdint>

#include "harness/input_parts.hpp"

namespace samesum::harness {

struct NpyHeader {
  std::string descr;  ///< element type in NumPy's notation
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Reads the header and removes it from `file`, which then has only data. Throws InputError for a bad header.
NpyHeader take_npy_header(std::span<const std::byte>& file, std::string_view name);

}  // namespace samesum::harness
