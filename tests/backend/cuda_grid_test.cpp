/// Reductions on a given grid on the GPU. Those on a grid that is found are tested with all other methods.
#include <optional>
#include <stdexcept>

#include "backend/cuda_support.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {
namespace on_a_grid_of_the_gpu {

std::vector<const Method*> methods_on_grid() {
  std::vector<const Method*> all;
  for (const Method& m : methods())
    if (m.backend == "cuda" && m.accumulator == "fixed_point" && !m.takes_keys) all.push_back(&m);
  return all;
}

/// The bits of all results; nothing if a sum overflows.
std::optional<Bits> bits_of(const Method& m, const Values& x, const Values& y, const Layout& layout,
                            int grid) {
  try {
    return reduce_all(m, x, y, layout, {.grid = grid});
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

TEST(MethodsOnAGivenGrid, HaveTheBitsOfTheCpuOnTheGpu) {
  SAMESUM_NEEDS_GPU();
  const std::uint64_t offsets[] = {0, 5, 5, 4200, 30'000};
  for (const Method* m : methods_on_grid())
    for (const FormatInfo& input : formats) {
      const Array x{input, wide(30'000, 20, 1)}, y{input, uniform(30'000, 2)};
      for (const int grid : {lowest_grid, -1000, -149, -60, -30, 0, 30, highest_grid})
        for (const Layout& layout :
             {Layout::vector(0), Layout::vector(1), Layout::vector(30'000), Layout::rows(100, 300),
              Layout::rows(3, 10'000), Layout::axis(1, 300, 100), Layout::segments(offsets, 4)})
          ASSERT_EQ(bits_of(*m, x.values(), y.values(), layout, grid),
                    bits_of(find_on("cpu", *m), x.values(), y.values(), layout, grid))
              << m->name << " of " << input.name << ", 2^" << grid << ", " << layout.results() << " results";
    }
}

TEST(AGivenGridOnTheGpu, ThatOverflowsIsAnErrorOrNaN) {
  SAMESUM_NEEDS_GPU();
  const std::vector<float> host{1, -1, 0x1p20f};
  const Method& m = gpu::find("fixed_point/fp32");
  EXPECT_EQ(m(host, {.grid = -42}).to_double(), 0x1p20);
  EXPECT_THROW(m(host, {.grid = -43}), std::overflow_error);
  const Job job = m.bind(host, {.grid = -43});
  for (int again = 0; again < 2; ++again) EXPECT_THROW(job(), std::overflow_error);
  std::vector<float> rows(3);
  EXPECT_THROW(reduce(m, host, Layout::rows(3, 1), std::span{rows}, {.grid = -43}), std::overflow_error);
  const OnGpu x{Values{host}};
  const auto out = device_memory(3 * sizeof(float));
  gpu::reduce(m, x.values(), Layout::rows(3, 1), Results{&format_info<float>(), out.get(), 3}, nullptr,
              nullptr, {.grid = -43});
  succeed(cudaMemcpy(rows.data(), out.get(), 3 * sizeof(float), cudaMemcpyDeviceToHost));
  EXPECT_EQ(rows[0], 1);
  EXPECT_EQ(to_bits(rows[2]), Format<float>::canonical_nan) << "only the row that overflows";
}

}  // namespace on_a_grid_of_the_gpu
}  // namespace
}  // namespace samesum
