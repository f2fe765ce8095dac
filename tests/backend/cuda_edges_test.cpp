/// Windows at the ends of the exponents, and sums that overflow a grid, on a GPU.
#include "cuda_support.hpp"
#include "operation/extreme_exponents.hpp"
#include "operation/grid_overflow.hpp"

namespace samesum {
namespace {

TEST(EveryExactMethodOfAGpu, HasTheBitsOfItsReferenceWhereExponentsEnd) {
  SAMESUM_NEEDS_GPU();
  expect_exact_bits_at_extreme_exponents("cuda", reduced ? 307 : 17);
}

TEST(EveryMethodOnAGridOfAGpu, WritesAndReportsWhatItsReferenceDoes) {
  SAMESUM_NEEDS_GPU();
  expect_outcomes_of_the_reference("cuda", reduced ? 97 : 5);
}

}  // namespace
}  // namespace samesum
