/// Detects the instruction sets of this machine.
#include "samesum/backend/cpu/instruction_set.hpp"

#include <algorithm>
#include <atomic>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace samesum::cpu {

bool is_supported(InstructionSet set) {
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

}  // namespace samesum::cpu
