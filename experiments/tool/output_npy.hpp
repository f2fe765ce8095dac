/// Writes arrays as .npy files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "samesum/call/values.hpp"

namespace samesum::harness {

/// Writes an array in C order, or nothing if it cannot be written. `format` is nullptr for std::int64_t.
/// Throws OutputError, also for bf16, which .npy files do not have.
void write_npy(const std::string& path, const std::vector<std::uint64_t>& shape, const FormatInfo* format,
               std::span<const std::byte> elements);

}  // namespace samesum::harness
