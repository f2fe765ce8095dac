/// Digest of bytes: FNV-1a (Fowler, Noll, Vo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace samesum::harness {

inline constexpr std::uint64_t digest_of_nothing = 0xcbf29ce484222325;

/// Goes on from the digest of the bytes before these.
inline std::uint64_t digest(std::span<const std::byte> bytes, std::uint64_t hash = digest_of_nothing) {
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
  return hash;
}

}  // namespace samesum::harness
