/// Windows at the ends of the exponents, and sums that overflow a grid, on a GPU.
#include "cuda_support.hpp"
#include "operation/extreme_exponents.hpp"
#include "operation/grid_overflow.hpp"

namespace samesum {
namespace {

TEST(EveryExactMethodOfAGpu, HasTheBitsOfItsReferenceWhereExponentsEnd) {
  SAMESUM_NEEDS_GPU();
  if (reduced) GTEST_SKIP() << "too long for a reduced run";
  expect_exact_bits_at_extreme_exponents("cuda", {1, 2}, {9});
}

TEST(EveryMethodOnAGridOfAGpu, WritesAndReportsWhatItsReferenceDoes) {
  SAMESUM_NEEDS_GPU();
  if (reduced) GTEST_SKIP() << "too long for a reduced run";
  expect_outcomes_of_the_reference("cuda");
}

}  // namespace
}  // namespace samesum
