#include "samesum/backend/cpu/instruction_set.hpp"

#include "support.hpp"

namespace samesum::cpu {
namespace {

using namespace testing_support;

/// Forces an instruction set for the lifetime of the object.
class Forced {
 public:
  explicit Forced(InstructionSet set) { force(set); }
  ~Forced() { force(before_); }

 private:
  InstructionSet before_ = instruction_set();
};

TEST(TheInstructionSet, IsTheWidestThatTheMachineSupports) {
  for (const InstructionSet set : instruction_sets)
    EXPECT_TRUE(!is_supported(set) || set <= instruction_set());
  EXPECT_TRUE(is_supported(instruction_set()));
}

TEST(TheInstructionSet, CanBeForced) {
  for (const InstructionSet set : instruction_sets) {
    if (!is_supported(set)) continue;
    const Forced scope{set};
    EXPECT_EQ(instruction_set(), set);
  }
}

TEST(TheInstructionSet, ChangesNoBitOfAnySumForAnyInputAndLength) {
  for (const Method* m : sums_of("cpu", Promise::everywhere))
    for (const FormatInfo& input : formats)
      for (const std::size_t n : {1, 15, 128, 1000, 4096, 70'001}) {
        const Array x{input, wide(n, 30, n)};
        const Number expected = (*m)(x.values());
        for (const InstructionSet set : instruction_sets) {
          if (!is_supported(set)) continue;
          const Forced scope{set};
          ASSERT_EQ((*m)(x.values()), expected)
              << m->name << " of " << input.name << ", n = " << n << ", " << name_of(set);
        }
      }
}

}  // namespace
}  // namespace samesum::cpu
