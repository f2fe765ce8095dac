/// Rolling methods on a GPU have the bits of the CPU, whose tests compare them with each window alone.
#include "backend/cuda_support.hpp"
#include "operation/rolling_support.hpp"

namespace samesum {
namespace {

class EveryRollingMethodOnAGpu : public ::testing::TestWithParam<const Method*> {
 protected:
  const Method& m = *GetParam();
  const Method& cpu = find_on("cpu", m);

  void compare(const Array& x, const Layout& layout, const Options& options, std::size_t stride = 0) const {
    const Bits expected = rolled(cpu, x.values(), layout, options, stride);
    ASSERT_EQ(rolled(m, x.values(), layout, options, stride), expected)
        << "a window of " << options.window << ", centred " << options.centred << ", skip_nan "
        << options.skip_nan;
    ASSERT_EQ(rolled(m, OnGpu{x.values()}.values(), layout, options, stride), expected) << "in device memory";
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryRollingMethodOnAGpu);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryRollingMethodOnAGpu, ::testing::ValuesIn(rolling_methods_of("cuda")),
                         test_name);

/// Windows around the groups of 8, 32, 64, 256 and 512 elements.
TEST_P(EveryRollingMethodOnAGpu, HasTheBitsOfTheCpuForAwkwardData) {
  constexpr std::size_t windows[] = {1, 7, 8, 9, 31, 65, 100, 257, 520, 1300, 4000};
  const std::size_t n = reduced ? 300 : 1300;
  std::size_t k = 0;
  for (const Dataset& d : data_with_specials(4100)) {
    SCOPED_TRACE(d.name);
    const Array x =
        elements_for_windows(m, *m.format, {d.x.end() - static_cast<std::ptrdiff_t>(n), d.x.end()});
    for (int turn = 0; turn < 3; ++turn, ++k) {
      const std::size_t window = windows[k % std::size(windows)];
      compare(x, Layout::vector(n),
              {.ddof = static_cast<double>(k % 3),
               .skip_nan = k % 2 == 1,
               .window = window,
               .centred = k % 4 >= 2,
               .min_periods = k % 5 == 0 ? 0 : std::min<std::size_t>(window, k % 5)});
    }
  }
}

TEST_P(EveryRollingMethodOnAGpu, ReadsEveryFormat) {
  for (const FormatInfo& input : formats) {
    ASSERT_EQ(m.accepts(input), cpu.accepts(input)) << input.name;
    if (!m.accepts(input)) continue;
    for (const int binades : {12, 220})
      compare(elements_for_windows(m, input, wide(600, binades, 3)), Layout::vector(600),
              {.window = 50, .min_periods = 1});
  }
}

TEST_P(EveryRollingMethodOnAGpu, TakesRowsAndAxes) {
  for (const auto& sizes : {std::array<std::size_t, 3>{3, 50, 1}, {2, 600, 3}, {1, 70, 40}, {2, 1, 5}}) {
    const std::size_t outer = sizes[0], n = sizes[1], inner = sizes[2];
    const Array x = elements_for_windows(m, *m.format, wide(outer * n * inner, 12, n));
    for (const std::size_t gap : {0, 4})
      compare(x, Layout::axis(outer, n, inner), {.window = 37, .min_periods = 2},
              gap == 0 ? 0 : n * inner + gap);
  }
}

TEST_P(EveryRollingMethodOnAGpu, HasTheBitsOfTheCpuForLongWindows) {
  if (reduced) return;
  constexpr std::size_t n = 300'001;
  std::vector<double> x = wide(n, 24, 8);
  for (std::size_t i = 0; i < n; i += 9973) x[i] = i % 2 == 0 ? NAN : -0.0;
  const Array elements = elements_for_windows(m, *m.format, x);
  for (const std::size_t window : {std::size_t{1000}, n / 3, 2 * n})
    compare(elements, Layout::vector(n), {.skip_nan = true, .window = window, .min_periods = 1});
}

TEST(ARollingSumOnAGpu, ReportsASumThatOverflowsItsGrid) {
  SAMESUM_NEEDS_GPU();
  const std::vector<double> x{1, 2, 0x1p100, 4, 5, 6};
  std::vector<double> sums(x.size());
  const auto roll = [&](int grid) {
    reduce(find("rolling_sum/fixed_point/fp64@cuda"), Values{std::span<const double>{x}},
           Layout::vector(x.size()), std::span{sums}, {.grid = grid, .window = 2});
  };
  EXPECT_THROW(roll(-40), std::overflow_error);
  EXPECT_EQ(sums[1], 3);
  EXPECT_TRUE(std::isnan(sums[2]) && std::isnan(sums[3]));
  EXPECT_EQ(sums[5], 11);
  roll(-20);
  EXPECT_EQ(sums[2], 0x1p100 + 2);
}

}  // namespace
}  // namespace samesum
