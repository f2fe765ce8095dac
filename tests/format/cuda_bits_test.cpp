/// Compares the 16-bit formats with the CUDA Toolkit's own types, whose conversions also run on the host.
#include "support.hpp"

#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#pragma GCC diagnostic pop
#define SAMESUM_HAS_CUDA_FORMATS
#endif

namespace samesum {
namespace {

#ifdef SAMESUM_HAS_CUDA_FORMATS
template <class F, class Cuda>
void expect_same_bits(Cuda (*from_float)(float), Cuda (*from_double)(double), float (*widen)(Cuda)) {
  static_assert(sizeof(F) == sizeof(Cuda) && alignof(F) == alignof(Cuda));
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto ours = from_bits<F>(static_cast<std::uint16_t>(bits));
    const float wide = widen(std::bit_cast<Cuda>(ours));
    if (is_nan_bits<F>(to_bits(ours))) {
      EXPECT_TRUE(is_nan_bits<float>(to_bits(wide)));
    } else {
      ASSERT_EQ(to_bits(wide), to_bits(convert<float>(ours))) << bits;
    }
  }
  std::mt19937_64 random{1};
  for (int i = 0; i < 1'000'000; ++i) {
    const float x = from_bits<float>(static_cast<std::uint32_t>(random()));
    if (is_nan_bits<float>(to_bits(x))) continue;
    ASSERT_EQ(std::bit_cast<std::uint16_t>(from_float(x)), convert<F>(x).bits) << x;
    const double y = static_cast<double>(x) * (1 + static_cast<double>(random() % 3) * 0x1p-52);
    ASSERT_EQ(std::bit_cast<std::uint16_t>(from_double(y)), convert<F>(y).bits) << y;
  }
}

TEST(Fp16, HasTheBitsOfCudasHalf) {
  expect_same_bits<fp16, __half>(__float2half_rn, __double2half, __half2float);
}
TEST(Bf16, HasTheBitsOfCudasBfloat16) {
  expect_same_bits<bf16, __nv_bfloat16>(__float2bfloat16_rn, __double2bfloat16, __bfloat162float);
}
#else
TEST(SixteenBitFormats, HaveTheBitsOfCudaTypes) { GTEST_SKIP() << "no CUDA Toolkit headers on this machine"; }
#endif

}  // namespace
}  // namespace samesum
