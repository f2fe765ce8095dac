/// The ladder's kernels on a GPU.
#include <set>

#include "backend/cuda_support.hpp"
#include "ladder_support.hpp"

namespace samesum {
namespace {

TEST(TheLadderOnAGpu, IsCorrect) {
  SAMESUM_NEEDS_GPU();
  const std::shared_ptr<const harness::Place> place = harness::gpu_place();
  ladder::expect_right(*place, ladder::gpu_kernels(place), is_sanitized ? 4097 : 1 << 20);
}

TEST(TheLadderOnAGpu, KeepsItsBoundsOnElementsThatCancel) {
  SAMESUM_NEEDS_GPU();
  const std::shared_ptr<const harness::Place> place = harness::gpu_place();
  ladder::expect_right_of_cancelling(*place, ladder::gpu_kernels(place));
}

TEST(TheLadderOnAGpu, ScalesItsSumsOfExponentials) {
  SAMESUM_NEEDS_GPU();
  const std::shared_ptr<const harness::Place> place = harness::gpu_place();
  ladder::expect_right_softmax(*place, ladder::gpu_kernels(place));
}

TEST(TheLadderOnAGpu, GivesTheSameBitsByAllKernelsThatDeclareATree) {
  SAMESUM_NEEDS_GPU();
  const std::shared_ptr<const harness::Place> place = harness::gpu_place();
  const std::size_t n = ladder::most_of_block;
  const ladder::Workbench bench{*place, ladder::elements(n, 1), n, 0};
  std::map<ladder::Reading, std::set<float>> sums;
  for (const ladder::Kernel& k : ladder::gpu_kernels(place))
    if (k.demonstration.empty() && k.most == n) sums[k.reading].insert(bench.sum(k, n));
  EXPECT_EQ(sums.size(), 2u);
  for (const auto& [reading, all] : sums) EXPECT_EQ(all.size(), 1u);
}

TEST(TheLadderOnAGpu, HasOneBlockSizeThatCudaSuggests) {
  SAMESUM_NEEDS_GPU();
  const std::shared_ptr<const harness::Place> place = harness::gpu_place();
  int suggested = 0;
  for (const ladder::Kernel& k : ladder::gpu_kernels(place)) {
    suggested += k.suggested;
    EXPECT_LE(k.occupancy, 1);
    EXPECT_EQ(k.occupancy > 0, k.demonstration == "occupancy");
  }
  EXPECT_EQ(suggested, 1);
}

}  // namespace
}  // namespace samesum
