#include "samesum/accumulator/running_exact.hpp"

#include "support.hpp"

namespace samesum {
namespace {

TEST(ARunningSum, HasTheBitsOfAnExactSumAfterEachElement) {
  std::mt19937_64 random{71};
  for (int round = 0; round < 400; ++round) {
    Exact exact;
    RunningSum running;
    const std::uint64_t exponents =
        random() % 4 ? random() & 0x7ff : 0x7ff;  // with any bits, few sums cancel
    std::vector<double> terms;
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t bits = random();
      double x = from_bits<double>((bits & 0x800fffffffffffff) | (bits >> 52 & exponents) << 52);
      if (!std::isfinite(x) && random() % 50) x = 0x1p1000;
      if (random() % 4 == 0)
        x = random() % 2 ? from_bits<double>(bits % 4) : std::ldexp(1, int(random() % 2000) - 1000);
      if (!terms.empty() && random() % 3 == 0) x = -terms[random() % terms.size()];
      if (random() % 40 == 0) x = -0.0;
      terms.push_back(x);
      if (random() % 30 == 0) running = RunningSum{exact};
      exact.add(x);
      running.add(x);
      ASSERT_EQ(to_bits(running.result<double>()), to_bits(exact.result<double>())) << x;
      ASSERT_EQ(to_bits(running.result<float>()), to_bits(exact.result<float>())) << x;
      ASSERT_EQ(to_bits(running.result<fp16>()), to_bits(exact.result<fp16>())) << x;
    }
  }
}

TEST(ARunningSum, CarriesThroughAllWords) {
  Exact exact;
  RunningSum running;
  const auto add = [&](double x) {
    exact.add(x);
    running.add(x);
    EXPECT_EQ(to_bits(running.result<double>()), to_bits(exact.result<double>())) << x;
  };
  EXPECT_EQ(to_bits(running.result<double>()), 0u);
  for (const double x : {-0.0, 0x1p-1074, -0x1p-1073, 0x1p-1074, 0x1p1023, 0x1p1023, -0x1p-1074, -0x1p1023,
                         -0x1p1023, -0x1p-1010, 0x1p-1010, 0x1p-1074, -0x1p-1010})
    add(x);
  for (int bit = 0; bit < 128; ++bit) add(-std::ldexp(1, bit - 1074));
  for (int bit = 0; bit < 128; ++bit) add(std::ldexp(1, bit - 1074));
}

}  // namespace
}  // namespace samesum
