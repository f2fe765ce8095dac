/// Which instructions the inner loops use. None of it can change a bit.
#pragma once

#include <array>
#include <string_view>

namespace samesum::cpu {

/// Each of them includes those before it.
enum class InstructionSet {
  baseline,  ///< what every processor of the architecture has: SSE2, NEON
  avx2,      ///< AVX2, F16C and FMA: Haswell (2013), Zen (2017) and later
  avx512,    ///< AVX-512 F, BW, DQ, VL: Skylake-SP (2017), Zen 4 (2022) and later
};

/// Those that were compiled, the widest last; lib/CMakeLists.txt says how many.
inline constexpr auto instruction_sets = [] {
  std::array<InstructionSet, SAMESUM_INSTRUCTION_SETS> sets{};
  for (std::size_t i = 0; i < sets.size(); ++i) sets[i] = static_cast<InstructionSet>(i);
  return sets;
}();

constexpr std::string_view name_of(InstructionSet set) {
  constexpr std::array<std::string_view, 3> names{"baseline", "avx2", "avx512"};
  return names[static_cast<std::size_t>(set)];
}

/// Whether this machine has it.
bool is_supported(InstructionSet set);

/// The one in use: the widest that this machine has, unless another was forced.
InstructionSet instruction_set();

/// Whether loops that compute much had better ask for cache lines ahead. Intel's prefetchers do not run far
/// enough ahead of them, and AMD's do better alone.
bool asks_ahead();

/// For tests and experiments: all sums of this process use it from now on. It must be supported.
void force(InstructionSet set);

}  // namespace samesum::cpu
