/// Rolling methods on a GPU read device memory.
#include "backend/cuda_support.hpp"
#include "operation/rolling_support.hpp"

namespace samesum {
namespace {

using EveryRollingMethodOnAGpu = MethodTest;
INSTANTIATE_TEST_SUITE_P(Cuda, EveryRollingMethodOnAGpu,
                         ::testing::ValuesIn(or_absent(rolling_methods_of("cuda"))), test_name);

TEST_P(EveryRollingMethodOnAGpu, ReadsDeviceMemoryInEveryFormat) {
  const Method& cpu = find_on("cpu", m);
  for (const FormatInfo& input : formats) {
    ASSERT_EQ(m.accepts(input), cpu.accepts(input)) << input.name;
    if (!m.accepts(input)) continue;
    for (const int binades : {12, 220}) {
      const Array x = elements_for_windows(m, input, wide(600, binades, 3));
      for (const Layout& layout : {Layout::vector(600), Layout::axis(2, 60, 5)}) {
        const Options options{.window = 50, .min_periods = 1};
        const Bits expected = rolled(cpu, x.values(), layout, options);
        ASSERT_EQ(rolled(m, x.values(), layout, options), expected) << input.name;
        ASSERT_EQ(rolled(m, OnGpu{x.values()}.values(), layout, options), expected) << input.name;
      }
    }
  }
}

}  // namespace
}  // namespace samesum
