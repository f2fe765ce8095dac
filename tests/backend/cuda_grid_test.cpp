/// Reductions on a given grid on the GPU. Those on a grid that is found are tested with all other methods.
#include <optional>
#include <stdexcept>

#include "backend/cuda_support.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {
namespace on_a_grid_of_the_gpu {

std::vector<const Method*> scans_on_grid() {
  std::vector<const Method*> all;
  for (const Method& m : methods())
    if (m.backend == "cuda" && m.accumulator == "fixed_point" && !m.takes_keys && !m.takes_window &&
        m.is_scan())
      all.push_back(&m);
  return all;
}

/// The bits of all results of a scan of contiguous rows or columns; nothing if a sum overflows.
std::optional<Bits> bits_of_scan(const Method& m, const Values& x, const Layout& layout, bool exclusive,
                                 int grid) {
  return with_format(*m.format, [&]<class F>() -> std::optional<Bits> {
    std::vector<F> out(x.size);
    try {
      reduce(m, x, layout, std::span{out}, {.exclusive = exclusive, .grid = grid});
    } catch (const std::overflow_error&) {
      return std::nullopt;
    }
    Bits bits;
    for (const F& result : out) bits.push_back(to_bits(result));
    return bits;
  });
}

TEST(ScansOnAGivenGrid, HaveTheBitsOfTheCpuOnTheGpu) {
  SAMESUM_NEEDS_GPU();
  for (const Method* m : scans_on_grid())
    for (const FormatInfo& input : formats) {
      const Array x{input, wide(30'000, 20, 1)};
      for (const int grid : {lowest_grid, -1000, -149, -60, -47, -42, -30, 0, 9, 30, highest_grid})
        for (const Layout& layout : {Layout::vector(30'000), Layout::rows(100, 300), Layout::rows(3, 10'000),
                                     Layout::axis(1, 300, 100), Layout::axis(2, 5000, 3)})
          for (const bool exclusive : {false, true})
            ASSERT_EQ(bits_of_scan(*m, x.values(), layout, exclusive, grid),
                      bits_of_scan(find_on("cpu", *m), x.values(), layout, exclusive, grid))
                << m->name << " of " << input.name << ", 2^" << grid << ", " << layout.results()
                << " vectors, exclusive " << exclusive;
    }
}

/// The passes that find the grids and that scan share a workspace, and need no header.
TEST(AScanOnAGridThatIsFound, StaysInTheStatesOfItsWorkspace) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t n = 30'000, behind = 4096;
  for (const Method* m : scans_on_grid()) {
    const Array x{*m->format, wide(n, 20, 1)};
    const OnGpu there{x.values()};
    const std::size_t size = n * m->format->bytes;
    const auto out = device_memory(size);
    const Results results{m->format, out.get(), n};
    for (const Layout& layout : {Layout::vector(n), Layout::rows(3, 10'000), Layout::rows(100, 300),
                                 Layout::axis(1, 300, 100), Layout::axis(2, 5000, 3)}) {
      std::size_t bytes = 0;
      succeed(gpu::reduce(*m, nullptr, bytes, there.values(), layout, results));
      const auto workspace = device_memory(bytes + behind);
      succeed(cudaMemset(workspace.get(), 0xa5, bytes + behind));
      succeed(gpu::reduce(*m, workspace.get(), bytes, there.values(), layout, results));
      std::vector<std::byte> held(bytes + behind), found(size), expected(size);
      succeed(cudaMemcpy(held.data(), workspace.get(), held.size(), cudaMemcpyDeviceToHost));
      succeed(cudaMemcpy(found.data(), out.get(), size, cudaMemcpyDeviceToHost));
      reduce(find_on("cpu", *m), x.values(), layout, Results{m->format, expected.data(), n});
      EXPECT_EQ(found, expected) << m->name << ", " << layout.results() << " vectors";
      const auto is_untouched = [](std::byte b) { return b == std::byte{0xa5}; };
      EXPECT_TRUE(std::all_of(held.begin(), held.begin() + gpu::header_bytes, is_untouched)) << m->name;
      EXPECT_TRUE(std::all_of(held.end() - behind, held.end(), is_untouched)) << m->name;
    }
  }
}

TEST(AGivenGridOnTheGpu, ThatOverflowsInAStreamGivesNaN) {
  SAMESUM_NEEDS_GPU();
  const std::vector<float> host{1, -1, 0x1p20f};
  const OnGpu x{Values{host}};
  const auto out = device_memory(3 * sizeof(float));
  gpu::reduce(gpu::find("fixed_point/fp32"), x.values(), Layout::rows(3, 1),
              Results{&format_info<float>(), out.get(), 3}, nullptr, nullptr, {.grid = -43});
  std::vector<float> rows(3);
  succeed(cudaMemcpy(rows.data(), out.get(), 3 * sizeof(float), cudaMemcpyDeviceToHost));
  EXPECT_EQ(rows[0], 1);
  EXPECT_EQ(to_bits(rows[2]), Format<float>::canonical_nan) << "only the row that overflows";
}

}  // namespace on_a_grid_of_the_gpu
}  // namespace
}  // namespace samesum
