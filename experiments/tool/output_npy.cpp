#include "tool/output_npy.hpp"

#include "harness/results.hpp"

namespace samesum::harness {

// The header is that of version 1.0 (NumPy Enhancement Proposal 1): magic bytes, its length in two bytes, and
// a Python dictionary, padded with blanks so that the elements begin at a multiple of 64 bytes.
void write_npy(const std::string& path, const std::vector<std::uint64_t>& shape, const FormatInfo* format,
               std::span<const std::byte> elements) {
  if (format == &format_info<bf16>())
    throw OutputError{"--output: .npy files have no elements of bf16; name a method in another format"};
  std::string header = "{'descr': '" + (format ? "<f" + std::to_string(format->bytes) : std::string{"<i8"}) +
                       "', 'fortran_order': False, 'shape': (";
  for (const std::uint64_t n : shape) header += std::to_string(n) + ",";
  header += "), }";
  const std::size_t before = 10, end = (before + header.size() + 1 + 63) / 64 * 64;
  header.resize(end - before - 1, ' ');
  header += '\n';
  std::string file{"\x93NUMPY\x01\x00", 8};
  file += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  file += header;
  write_file(path, file.append(reinterpret_cast<const char*>(elements.data()), elements.size()));
}

}  // namespace samesum::harness
