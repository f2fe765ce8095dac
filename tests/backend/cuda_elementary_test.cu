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

std::uint64_t digest_of(Function function, std::uint64_t stride) {
  const auto memory = device_memory(8);
  auto* digest = reinterpret_cast<std::uint64_t*>(memory.get());
  succeed(cudaMemset(digest, 0, 8));
  add_shares<<<2048, 256>>>(function, first_argument(function), stride, digest);
  succeed(cudaGetLastError());
  std::uint64_t result = 0;
  succeed(cudaMemcpy(&result, digest, 8, cudaMemcpyDeviceToHost));
  return result;
}

TEST(ExpAndLogOnAGpu, HaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  for (const GoldenDigest& golden : golden_digests) {
    EXPECT_EQ(digest_of(golden.function, odd_stride), golden.of_some);
    if (!reduced) EXPECT_EQ(digest_of(golden.function, 1), golden.of_all) << "over all arguments";
  }
}

}  // namespace
}  // namespace samesum
