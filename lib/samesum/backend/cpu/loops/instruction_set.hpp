/// Instruction sets of the inner loops, and the one in use. The choice cannot change a bit.
#pragma once

#include <array>
#include <string_view>

namespace samesum::cpu {

/// Instruction sets; each includes the previous ones.
enum class InstructionSet {
  baseline,  ///< available on every processor of the architecture: SSE2, NEON
  avx2,      ///< AVX2, F16C and FMA: Haswell (2013), Zen (2017) and later
  avx512,    ///< AVX-512 F, BW, DQ, VL: Skylake-SP (2017), Zen 4 (2022) and later
};

/// All instruction sets of this architecture, the widest last.
#if defined(__x86_64__)
inline constexpr std::array instruction_sets{InstructionSet::baseline, InstructionSet::avx2,
                                             InstructionSet::avx512};
#else
inline constexpr std::array instruction_sets{InstructionSet::baseline};
#endif

constexpr std::string_view name_of(InstructionSet set) {
  constexpr std::array<std::string_view, 3> names{"baseline", "avx2", "avx512"};
  return names[static_cast<std::size_t>(set)];
}

/// Whether this machine supports `set`, and the library has loops for it: lib/CMakeLists.txt says for which.
bool is_supported(InstructionSet set);

/// The instruction set in use: the widest that is supported, unless `force` has set another.
InstructionSet instruction_set();

/// Whether compute-heavy loops should prefetch cache lines in software. Intel's hardware prefetchers do not
/// run far enough ahead of such loops; AMD's do better alone.
bool wants_prefetch();

/// Makes all later calls of this process use `set`, which must be supported. For tests and experiments.
void force(InstructionSet set);

}  // namespace samesum::cpu
