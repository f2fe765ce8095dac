/// exp and log on a GPU have the digests of the CPU.
#include "backend/cuda_support.hpp"
#include "format/elementary_digest.hpp"

namespace samesum {
namespace {

__global__ void add_shares(Function function, std::uint64_t first, std::uint64_t stride,
                           std::uint64_t* digest) {
  std::uint64_t sum = 0;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::uint64_t bits = first + thread * stride; bits >> 32 == 0; bits += threads * stride) {
    const auto argument = static_cast<std::uint32_t>(bits);
    sum += share(argument, apply(function, Scalar<fp32>{from_bits<float>(argument)}).v);
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(digest), static_cast<unsigned long long>(sum));
}

__global__ void add_shares_in_fp64(Function function, std::uint64_t count, std::uint64_t* digest) {
  std::uint64_t sum = 0;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += threads) {
    const double argument = argument_in_fp64(function, i);
    sum += share(argument, apply(function, Scalar<fp64>{argument}).v);
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(digest), static_cast<unsigned long long>(sum));
}

/// Returns the digest that launch(digest) adds to.
template <class Launch> std::uint64_t digest_of(Launch launch) {
  const auto memory = device_memory(8);
  auto* digest = reinterpret_cast<std::uint64_t*>(memory.get());
  succeed(cudaMemset(digest, 0, 8));
  launch(digest);
  succeed(cudaGetLastError());
  std::uint64_t result = 0;
  succeed(cudaMemcpy(&result, digest, 8, cudaMemcpyDeviceToHost));
  return result;
}

TEST(ExpAndLogOnAGpu, HaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  for (const GoldenDigest& golden : golden_digests) {
    const auto of_every = [&](std::uint64_t stride) {
      return digest_of([&](std::uint64_t* digest) {
        add_shares<<<2048, 256>>>(golden.function, first_argument(golden.function), stride, digest);
      });
    };
    EXPECT_EQ(of_every(odd_stride), golden.of_some);
    if (!is_sanitized) EXPECT_EQ(of_every(1), golden.of_all) << "over all arguments";
  }
}

TEST(ExpAndLogOnAGpu, HaveTheBitsOfTheCpuInFp64) {
  SAMESUM_NEEDS_GPU();
  for (const GoldenDigest& golden : golden_digests_in_fp64)
    EXPECT_EQ(digest_of([&](std::uint64_t* digest) {
                add_shares_in_fp64<<<512, 256>>>(golden.function, all_in_fp64, digest);
              }),
              golden.of_all);
}

}  // namespace
}  // namespace samesum
