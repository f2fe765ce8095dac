/// Detects the instruction sets of this machine, and finds the loops for the one in use.
#include "samesum/backend/cpu/loops/instruction_set.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "samesum/backend/cpu/loops/kernels.hpp"

namespace samesum::cpu {
namespace {

/// The instruction sets that have loops.
constexpr auto compiled_sets = [] {
  using enum InstructionSet;
  return std::array{SAMESUM_INSTRUCTION_SETS};
}();

}  // namespace

bool is_supported(InstructionSet set) {
  if (std::ranges::find(compiled_sets, set) == compiled_sets.end()) return false;
  if (set == InstructionSet::baseline) return true;
#if defined(__x86_64__)
  unsigned a, b, c = 0, d;
  const bool f16c_and_fma = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 && (c & bit_FMA) != 0;
  const bool avx2 = __builtin_cpu_supports("avx2") && f16c_and_fma;
  if (set == InstructionSet::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

namespace {
std::atomic<InstructionSet>& chosen() {
  static std::atomic<InstructionSet> set{
      *std::find_if(instruction_sets.rbegin(), instruction_sets.rend(), is_supported)};
  return set;
}
}  // namespace

InstructionSet instruction_set() { return chosen().load(std::memory_order_relaxed); }

bool wants_prefetch() {
#if defined(__x86_64__)
  static const bool intel = __builtin_cpu_is("intel");
  return intel;
#else
  return false;
#endif
}

void force(InstructionSet set) { chosen().store(set, std::memory_order_relaxed); }

const Kernels& kernels(std::size_t format) {
  using OfFormats = std::array<const Kernels& (*)(), Formats::size>;
  static constexpr auto in_set = []<InstructionSet set, std::size_t... index>(std::index_sequence<index...>) {
    return OfFormats{&kernels_of<set, index>...};
  };
  static constexpr auto all = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<OfFormats, sizeof...(i)>{
        in_set.operator()<compiled_sets[i]>(std::make_index_sequence<Formats::size>{})...};
  }
  (std::make_index_sequence<compiled_sets.size()>{});
  const auto in_use = std::ranges::find(compiled_sets, instruction_set()) - compiled_sets.begin();
  return all[static_cast<std::size_t>(in_use)][format]();
}

}  // namespace samesum::cpu
