/// Linked into a test program: all its tests run with the instruction set that SAMESUM_TEST_INSTRUCTION_SET
/// names. The program exits with 77 if that set is not supported.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "samesum/backend/cpu/loops/instruction_set.hpp"

namespace samesum::cpu {
namespace {

[[maybe_unused]] const bool forced = [] {
  const char* name = std::getenv("SAMESUM_TEST_INSTRUCTION_SET");
  if (!name) return false;
  const auto found = std::ranges::find(instruction_sets, std::string_view{name},
                                       [](InstructionSet set) { return name_of(set); });
  if (found == instruction_sets.end() || !is_supported(*found)) {
    std::printf("skipped: this machine does not support %s, or the library has no loops for it\n", name);
    std::exit(77);
  }
  force(*found);
  return true;
}();

}  // namespace
}  // namespace samesum::cpu
