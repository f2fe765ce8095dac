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

/// Reads the header from the start of a file. Throws InputError for a bad header.
NpyHeader read_npy_header(Bytes& file, std::string_view name);

}  // namespace samesum::harness
