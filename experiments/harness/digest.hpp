/// Digest of bytes: FNV-1a (Fowler, Noll, Vo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace samesum::harness {

inline std::uint64_t digest(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
  return hash;
}

}  // namespace samesum::harness
