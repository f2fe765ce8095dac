#include "samesum/backend/cpu/loops/instruction_set.hpp"

#include "operation/reduction_support.hpp"

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
  if (instruction_set() == InstructionSet::baseline) GTEST_SKIP() << "there is no other instruction set";
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {1, 15, 128, 1000, 4096, 5 * 4096 + 37}) {
      const Array x{input, wide(n, 30, n)};
      for (const Method* m : sums_of("cpu", Promise::everywhere)) {
        if (!m->accepts(input)) continue;
        const Number expected = (*m)(x.values());
        for (const InstructionSet set : instruction_sets) {
          if (!is_supported(set) || set >= instruction_set()) continue;
          const Forced scope{set};
          ASSERT_EQ((*m)(x.values()), expected)
              << m->name << " of " << input.name << ", n = " << n << ", " << name_of(set);
        }
      }
    }
}

TEST(TheInstructionSet, ChangesNoBitOfAnyScan) {
  if (instruction_set() == InstructionSet::baseline) GTEST_SKIP() << "there is no other instruction set";
  std::vector<std::vector<double>> data;
  for (const std::size_t n : {1, 3, 5, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097, 9000})
    data.push_back(wide(n, 30, n));
  for (const Dataset& d : awkward_data(4500)) data.push_back(d.x);
  if (is_sanitized) std::erase_if(data, [](const auto& x) { return x.size() > 4097; });
  const auto bits_of = [](const Method& m, Values x) {
    return with_format(*m.format, [&]<class F>() {
      std::vector<std::uint64_t> bits;
      const auto add = [&](const Layout& layout, Options options) {
        std::vector<F> out(x.size);
        try {
          reduce(m, x, layout, std::span{out}, with_window(m, options));
        } catch (const std::overflow_error&) {  // such results are NaN
        }
        for (const F result : out) bits.push_back(to_bits(result));
      };
      add(Layout::vector(x.size), {.threads = 1});
      if (x.size >= 9) add(Layout::axis(1, x.size / 9, 9), {.threads = 1, .exclusive = m.is_scan()});
      return bits;
    });
  };
  int compared = 0;
  for (const FormatInfo& input : formats)
    for (const std::vector<double>& elements : data) {
      const Array x{input, elements};
      for (const Method& m : methods()) {
        if (m.backend != "cpu" || !(m.is_scan() || m.takes_window) || !m.accepts(input)) continue;
        const std::vector<std::uint64_t> expected = bits_of(m, x.values());
        for (const InstructionSet set : instruction_sets) {
          if (!is_supported(set) || set >= instruction_set()) continue;
          const Forced scope{set};
          ASSERT_EQ(bits_of(m, x.values()), expected)
              << m.name << " of " << input.name << ", n = " << x.values().size << ", " << name_of(set);
          ++compared;
        }
      }
    }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace samesum::cpu
