/// The declared trees are found in the results of small instances of the kernels.
///
/// They are the smallest instances possible. Each of the 32 threads of a warp has a lane and loads 16 bytes
/// at a time, from one row or from two, so a row has at least 256 bytes; eight rows are loaded together.
/// Lengths up to 64 are part of one leaf. Three leaves and more are reduced by several warps of a block, or
/// by several blocks whose states are merged.
#include "backend/cuda_support.hpp"
#include "harness/reveal.hpp"
#include "samesum/backend/cuda/tree/tree.cuh"

namespace samesum::harness {
namespace {

template <class Order, template <class> class A, class F> struct Instance {
  using Shape = Order;
  using Format = F;
  using State = A<Scalar<F>>;
  using LastBlockMerge = gpu::LastBlockMerge<State>;

  static cudaError_t launch(gpu::Launch& work) {
    const auto leaves_of_block = static_cast<std::size_t>(work.threads / gpu::warp);
    const std::size_t blocks = (Shape::leaves(work.call.layout.n) - 1) / leaves_of_block + 1;
    return gpu::launch(gpu::sum_leaves<Shape, A, F, F, LastBlockMerge>, blocks, work.threads, work.stream,
                       static_cast<const F*>(work.call.x.data), work.call.layout.n,
                       LastBlockMerge{static_cast<gpu::Header*>(work.workspace)->arrived.data(),
                                      static_cast<State*>(gpu::states(work.workspace))},
                       Destination{work.call.out.data});
  }
};

template <class I> class SmallOrderOnTheGpu : public ::testing::Test {
 protected:
  static constexpr std::size_t longest = 3 * I::Shape::leaf + 5;

  /// Returns a black box that launches blocks of the given number of threads.
  BlackBox box(int threads) {
    const FormatInfo& format = format_info<typename I::Format>();
    if (!room_) room_.emplace(Array{format, std::vector<double>(longest)}.values());
    return {format, [this, threads, &format](Values x) {
              room_->fill(x);
              return the_caller().sum(gpu::run_launch<I::launch>, format,
                                      {*x.format, room_->values().data, x.size}, {0, threads});
            }};
  }

 private:
  std::optional<OnGpu> room_;
};

using SmallOrders = ::testing::Types<
    Instance<Tree<32, 8, InTurn>, Plain, fp64>, Instance<Tree<32, 8, ByPairs>, DoubleWord, fp64>,
    Instance<Tree<64, 8, InTurn>, Kahan, fp32>, Instance<Tree<64, 8, ByPairs>, Plain, fp32>,
    Instance<Tree<128, 8, InTurn>, Plain, fp16>, Instance<Tree<128, 8, ByPairs>, Kahan, bf16>>;
TYPED_TEST_SUITE(SmallOrderOnTheGpu, SmallOrders);

TYPED_TEST(SmallOrderOnTheGpu, HasItsDeclaredTreeForEveryLengthUpTo64) {
  SAMESUM_NEEDS_GPU();
  const BlackBox box = this->box(gpu::warp);
  const std::optional<Masks> masks = box.seen_by();
  ASSERT_TRUE(masks);
  for (std::size_t n = 1; n <= 64; ++n)
    ASSERT_EQ(reveal(box, n, *masks).spelled(), declared_tree(typename TypeParam::Shape{}, n).spelled())
        << "n = " << n;
}

TYPED_TEST(SmallOrderOnTheGpu, HasItsDeclaredTreeAtSampledPlacesOfThreeLeavesAndMoreInBlocksOfAnySize) {
  SAMESUM_NEEDS_GPU();
  const SumTree declared = declared_tree(typename TypeParam::Shape{}, this->longest),
                other = declared_tree(Tree<16, 2, InTurn>{}, this->longest);
  for (const int warps : {1, 2, 4}) {
    const BlackBox box = this->box(warps * gpu::warp);
    const std::optional<Masks> masks = box.seen_by();
    ASSERT_TRUE(masks);
    EXPECT_EQ(first_difference(box, declared, *masks, 300, 1), "") << warps << " warps a block";
    EXPECT_NE(first_difference(box, other, *masks, 300, 1), "") << warps << " warps a block";
  }
}

}  // namespace
}  // namespace samesum::harness
