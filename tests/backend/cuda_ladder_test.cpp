/// The ladder's kernels on a GPU.
#include <set>

#include "backend/cuda_support.hpp"
#include "ladder_support.hpp"

namespace samesum {
namespace {

TEST(TheLadderOnAGpu, IsCorrect) {
  SAMESUM_NEEDS_GPU();
  ladder::expect_right(*harness::gpu_place(), ladder::gpu_kernels(), is_sanitized ? 4097 : 1 << 20);
}

TEST(TheLadderOnAGpu, KeepsItsBoundsOnElementsThatCancel) {
  SAMESUM_NEEDS_GPU();
  ladder::expect_right_of_cancelling(*harness::gpu_place(), ladder::gpu_kernels());
}

TEST(TheLadderOnAGpu, ScalesItsSumsOfExponentials) {
  SAMESUM_NEEDS_GPU();
  ladder::expect_right_softmax(*harness::gpu_place(), ladder::gpu_kernels());
}

TEST(TheLadderOnAGpu, GivesTheSameBitsByAllKernelsThatDeclareATree) {
  SAMESUM_NEEDS_GPU();
  const auto place = harness::gpu_place();
  const std::size_t n = ladder::most_of_block;
  const ladder::Workbench bench{*place, ladder::elements(n, 1), n, 0};
  std::map<ladder::Reading, std::set<float>> sums;
  for (const ladder::Kernel& k : ladder::gpu_kernels())
    if (k.demonstration.empty() && k.most == n) sums[k.reading].insert(bench.sum(k, n));
  EXPECT_EQ(sums.size(), 2u);
  for (const auto& [reading, all] : sums) EXPECT_EQ(all.size(), 1u);
}

TEST(TheLadderOnAGpu, HasOneBlockSizeThatCudaSuggests) {
  SAMESUM_NEEDS_GPU();
  int suggested = 0;
  for (const ladder::Kernel& k : ladder::gpu_kernels()) {
    suggested += k.suggested;
    EXPECT_LE(k.occupancy, 1);
    EXPECT_EQ(k.occupancy > 0, k.demonstration == "occupancy");
  }
  EXPECT_EQ(suggested, 1);
}

}  // namespace
}  // namespace samesum
