/// Exact results where the anchors of windows are the largest and the smallest numbers.
#include "operation/extreme_exponents.hpp"

namespace samesum {
namespace {

using namespace testing_support;

TEST(EveryExactMethod, HasTheBitsOfItsReferenceWhereExponentsEnd) {
  expect_exact_bits_at_extreme_exponents("cpu");
}

}  // namespace
}  // namespace samesum
