/// Custom reductions on the GPU have the bits of the CPU.
#include "backend/cuda_support.hpp"
#include "operation/user_reductions.hpp"
#include "samesum/reducer.cuh"

namespace samesum {
namespace {

/// Returns the result of a custom reduction of n elements on the GPU.
template <class Order, class R, class T> ResultOf<R> on_gpu(const R& reduction, const T* x, std::size_t n) {
  const auto out = device_memory(sizeof(ResultOf<R>));
  gpu::reduce<Order>(reduction, x, n, reinterpret_cast<ResultOf<R>*>(out.get()));
  ResultOf<R> result;
  succeed(cudaMemcpy(&result, out.get(), sizeof result, cudaMemcpyDeviceToHost));
  return result;
}

template <class T> std::shared_ptr<std::byte> copy_of(const std::vector<T>& x) {
  const auto memory = device_memory(x.size() * sizeof(T));
  succeed(cudaMemcpy(memory.get(), x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all{0,   1,    2,    3,    5,    31,   32,   33,   127,  128,
                               129, 1000, 1100, 2100, 3000, 3100, 4095, 4096, 4097, 12'293};
  if (!is_sanitized) all.insert(all.end(), {200'001, 3'000'003});
  return all;
}

TEST(CustomReductionsOnTheGpu, HaveTheBitsOfTheCpuInEveryOrder) {
  SAMESUM_NEEDS_GPU();
  for (const std::size_t n : lengths())
    for (const std::size_t offset : {0, 1}) {
      const std::vector<double> data = wide(n + offset, 12, 3);
      const std::vector<float> x(data.begin(), data.end());
      const auto memory = copy_of(x);
      const float* there = reinterpret_cast<const float*>(memory.get()) + offset;
      const std::span<const float> here = std::span{x}.subspan(offset);
      EXPECT_EQ(on_gpu<CoarsenedTree>(RoundingSum{}, there, n), reduce(RoundingSum{}, here)) << n;
      EXPECT_EQ(on_gpu<Pairwise>(RoundingSum{}, there, n), reduce<Pairwise>(RoundingSum{}, here)) << n;
      EXPECT_EQ(on_gpu<Blocked>(RoundingSum{}, there, n), reduce<Blocked>(RoundingSum{}, here)) << n;
      EXPECT_EQ(on_gpu<CoarsenedTree>(LargestGap{there, n}, there, n),
                reduce(LargestGap{here.data(), n}, here))
          << n;
    }
}

TEST(CustomReductionsOnTheGpu, KeepTheOrderIfTheyAreNotCommutative) {
  SAMESUM_NEEDS_GPU();
  for (const std::size_t n : lengths()) {
    std::vector<std::uint32_t> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<std::uint32_t>(i * i + 7);
    const auto memory = copy_of(x);
    EXPECT_EQ(on_gpu<Blocked>(PolynomialHash{}, reinterpret_cast<const std::uint32_t*>(memory.get()), n),
              reduce<Blocked>(PolynomialHash{}, x))
        << n;
  }
}

TEST(CustomReductionsOnTheGpu, RefuseImpossibleLayoutsAndArrays) {
  const float x[6] = {};
  float out[6];
  std::size_t bytes = 0;
  alignas(16) std::byte workspace[16];
  constexpr std::size_t huge = std::size_t{1} << 63;
  for (const Layout& layout : {Layout::rows(2, 3, static_cast<std::size_t>(-3)), Layout::rows(3, 2, huge),
                               Layout{1, 3, 1, 0, huge}, Layout{huge, 1, 2, 0, 2}, Layout{1, 10, 10, 100, 5}})
    EXPECT_EQ(gpu::reduce(RoundingSum{}, nullptr, bytes, x, 6, layout, out), cudaErrorInvalidValue);
  EXPECT_THROW(gpu::reduce(RoundingSum{}, x, 6, Layout::rows(3, 2, huge), out), std::invalid_argument);
  const auto* nothing = static_cast<const float*>(nullptr);
  EXPECT_EQ(gpu::reduce(RoundingSum{}, workspace, bytes, nothing, 6, Layout::vector(6), out),
            cudaErrorInvalidValue);
  EXPECT_EQ(
      gpu::reduce(RoundingSum{}, workspace, bytes, x, 6, Layout::vector(6), static_cast<float*>(nullptr)),
      cudaErrorInvalidValue);
}

TEST(CustomReductionsOnTheGpu, ReduceRowsAndColumns) {
  SAMESUM_NEEDS_GPU();
  const std::vector<double> data = wide(60 * 5000, 12, 4);
  const std::vector<float> x(data.begin(), data.end());
  const auto memory = copy_of(x), out = device_memory(5000 * sizeof(float));
  const auto check = [&]<class Order>(const Layout& layout) {
    std::vector<float> here(layout.results()), there(layout.results());
    reduce<Order>(RoundingSum{}, x.data(), layout, here.data());
    std::size_t bytes = 0;
    const auto run = [&](void* workspace) {
      succeed(gpu::reduce<Order>(RoundingSum{}, workspace, bytes,
                                 reinterpret_cast<const float*>(memory.get()), x.size(), layout,
                                 reinterpret_cast<float*>(out.get())));
    };
    run(nullptr);
    const auto workspace = device_memory(bytes);
    run(workspace.get());
    succeed(cudaMemcpy(there.data(), out.get(), there.size() * sizeof(float), cudaMemcpyDeviceToHost));
    EXPECT_EQ(here, there);
  };
  for (const Layout& layout : {Layout::rows(60, 5000), Layout::rows(3000, 100), Layout::axis(1, 60, 5000),
                               Layout::axis(1, 5000, 60), Layout::axis(3, 100, 1000)}) {
    check.template operator()<CoarsenedTree>(layout);
    check.template operator()<Pairwise>(layout);
    check.template operator()<Blocked>(layout);
  }
}

}  // namespace
}  // namespace samesum
