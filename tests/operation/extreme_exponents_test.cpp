/// Exact results where the anchors of windows are the largest and the smallest numbers.
#include "operation/extreme_exponents.hpp"

namespace samesum {
namespace {

using namespace testing_support;

class EveryExactMethod : public BackendTest {};
SAMESUM_ON_BACKENDS(EveryExactMethod, "cpu", "cuda");

TEST_P(EveryExactMethod, HasTheBitsOfItsReferenceWhereExponentsEnd) {
  // Calls on a GPU take far longer than these few elements on a CPU.
  if (backend == "cuda")
    expect_exact_bits_at_extreme_exponents(backend, is_sanitized ? 307 : 17);
  else
    expect_exact_bits_at_extreme_exponents(backend, is_sanitized ? 7 : 1);
}

}  // namespace
}  // namespace samesum
