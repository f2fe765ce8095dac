/// Reductions on the GPU: the bits of their literal reading in every batch, at every address.
#include "backend/cuda_support.hpp"
#include "operation/reduction_support.hpp"
#include "samesum/gpu_reduction.hpp"

namespace samesum {
namespace {

class EveryGpuReduction : public ::testing::TestWithParam<const Reduction*> {
 protected:
  const Reduction& cpu = *GetParam();
  const Reduction& on_gpu() const { return find_reduction(cpu.name.substr(0, cpu.name.find('@')) + "@cuda"); }
};

/// Those that a GPU has, in their own format; without one, none.
std::vector<const Reduction*> on_both() {
  if (!gpu_is_there()) return {};
  std::vector<const Reduction*> all = reductions_of("cpu");
  std::erase_if(all, [](const Reduction* r) {
    const bool products = r->operation == "dot" || r->operation == "squared_norm";
    return r->accumulator == "exact" &&
           (r->operation == "moments" || (products && r->format == &format_info<fp64>()));
  });
  return all;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryGpuReduction);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryGpuReduction, ::testing::ValuesIn(on_both()), reduction_name);

TEST(GpuReductions, AreThoseOfTheCpuButForExactMomentsAndExactProductsOfDoubles) {
  SAMESUM_NEEDS_GPU();
  for (const Reduction* r : reductions_of("cpu")) {
    const std::string name = r->name.substr(0, r->name.find('@')) + "@cuda";
    if (r->accumulator == "exact" && r->operation == "moments") {
      EXPECT_THROW(find_reduction(name), std::invalid_argument) << name;
      continue;
    }
    const bool products = r->operation == "dot" || r->operation == "squared_norm";
    for (const FormatInfo& input : formats)
      EXPECT_EQ(find_reduction(name).takes(input),
                r->takes(input) && !(r->accumulator == "exact" && products && input.bytes == 8))
          << name << ", " << input.name;
  }
}

TEST_P(EveryGpuReduction, HasTheBitsOfItsLiteralReadingInEveryBatch) {
  SAMESUM_NEEDS_GPU();
  for (const BatchCase& b : batches()) {
    if (reduced && b.elements > 10'000) continue;
    const Array x{*cpu.format, wide(b.elements, 12, 1)}, y{*cpu.format, wide(b.elements, 12, 2)};
    EXPECT_EQ(reduce_all(on_gpu(), x.values(), y.values(), b.layout),
              reduce_all(cpu, x.values(), y.values(), b.layout))
        << b.name;
  }
}

TEST_P(EveryGpuReduction, HasTheBitsOfItsLiteralReadingOnEveryKindOfDataAndFormat) {
  SAMESUM_NEEDS_GPU();
  const std::size_t n = reduced ? 500 : 5000;
  for (const FormatInfo& input : formats) {
    if (!on_gpu().takes(input)) continue;
    for (const Dataset& d : datasets(n)) {
      const Array x{input, d.x}, y{input, uniform(n, 11)};
      EXPECT_EQ(reduce_all(on_gpu(), x.values(), y.values(), Layout::vector(n)),
                reduce_all(reference_of(cpu), x.values(), y.values(), Layout::vector(n)))
          << d.name << " of " << input.name;
    }
  }
}

TEST_P(EveryGpuReduction, HasTheSameBitsAtEveryAddressAndStride) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t rows = 5, columns = 1000;
  const std::vector<double> data = wide(rows * columns, 12, 3);
  const Array x{*cpu.format, data};
  const Bits expected = reduce_all(cpu, x.values(), x.values(), Layout::rows(rows, columns));
  for (const std::size_t stride : {1000, 1001, 1002, 1004, 1024})
    for (const std::size_t offset : {0, 1, 2, 4, 8}) {
      std::vector<double> apart(offset + rows * stride, -3.0);
      for (std::size_t i = 0; i < data.size(); ++i)
        apart[offset + i / columns * stride + i % columns] = data[i];
      const Array strided{*cpu.format, apart};
      const OnGpu there{strided.values()};
      const Values v{*cpu.format,
                     static_cast<const std::byte*>(there.values().data) + offset * cpu.format->bytes,
                     rows * stride};
      EXPECT_EQ(reduce_all(on_gpu(), v, v, Layout::rows(rows, columns, stride)), expected)
          << offset << ", " << stride;
    }
}

TEST_P(EveryGpuReduction, HasTheBitsOfTheCpuForLongVectorsAndManyRows) {
  SAMESUM_NEEDS_GPU();
  if (reduced) GTEST_SKIP() << "long";
  for (const auto& [name, layout, n] : {std::tuple{"a vector", Layout::vector(3'000'003), 3'000'003u},
                                        {"rows", Layout::rows(30, 100'000), 3'000'000u},
                                        {"columns", Layout::axis(1, 10'000, 300), 3'000'000u}}) {
    const Array x{*cpu.format, wide(n, 12, 5)}, y{*cpu.format, uniform(n, 6)};
    EXPECT_EQ(reduce_all(on_gpu(), x.values(), y.values(), layout),
              reduce_all(cpu, x.values(), y.values(), layout))
        << name;
  }
}

TEST(GpuReductions, CountDifferentNumbersAsTheCpuDoes) {
  SAMESUM_NEEDS_GPU();
  for (const FormatInfo& format : formats) {
    std::vector<double> data = wide(reduced ? 1000 : 100'000, 8, 3);
    data.insert(data.end(), {0.0, -0.0, NAN, INFINITY, -INFINITY, data[0], data[1]});
    const Array x{format, data};
    EXPECT_EQ(gpu::count_distinct(OnGpu{x.values()}.values()), count_distinct(x.values())) << format.name;
  }
  EXPECT_EQ(gpu::count_distinct(Values{format_info<fp32>(), nullptr, 0}), 0u);
}

TEST(GpuReductions, RunInAStreamFromDeviceMemoryInTwoPhases) {
  SAMESUM_NEEDS_GPU();
  const Array x{format_info<fp32>(), wide(100'000, 12, 7)};
  const OnGpu there{x.values()};
  const Reduction& r = find_reduction("norm/tree/fp32@cuda");
  const auto out = device_memory(100 * sizeof(float));
  const Results results{std::span{reinterpret_cast<float*>(out.get()), 100}};
  std::size_t bytes = 0;
  succeed(gpu::reduce(r, nullptr, bytes, there.values(), Layout::rows(100, 1000), results));
  const auto workspace = device_memory(bytes);
  succeed(gpu::reduce(r, workspace.get(), bytes, there.values(), Layout::rows(100, 1000), results,
                      the_caller().stream()));
  succeed(cudaStreamSynchronize(the_caller().stream()));
  std::vector<float> host(100), expected(100);
  succeed(cudaMemcpy(host.data(), out.get(), 400, cudaMemcpyDeviceToHost));
  reduce(find_reduction("norm/tree/fp32"), x.values(), Layout::rows(100, 1000), std::span{expected});
  EXPECT_EQ(host, expected);
  gpu::reduce(r, there.values(), Layout::rows(100, 1000), results);
  succeed(cudaDeviceSynchronize());
  const Results short_of{std::span{reinterpret_cast<float*>(out.get()), 99}};
  EXPECT_EQ(gpu::reduce(r, workspace.get(), bytes, there.values(), Layout::rows(100, 1000), short_of),
            cudaErrorInvalidValue);
  EXPECT_THROW(gpu::reduce(r, there.values(), Layout::rows(100, 1000), short_of), std::invalid_argument);
  EXPECT_THROW(
      gpu::reduce(find_reduction("norm/tree/fp32"), there.values(), Layout::rows(100, 1000), results),
      std::invalid_argument);
}

}  // namespace
}  // namespace samesum
