#include "samesum/backend/cpu/exact/exponent_bins.hpp"

#include "samesum/backend/cpu/schedule/methods.hpp"
#include "support.hpp"

namespace samesum::cpu {
namespace {

/// Any bits, with few NaN and infinities.
template <class T> std::vector<T> any_bits(std::size_t n, int per_special, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<T> x(n);
  for (T& e : x) {
    e = from_bits<T>(static_cast<BitsOf<T>>(random()));
    if (special_flags_of(e) != 0 && (per_special == 0 || random() % static_cast<unsigned>(per_special) != 0))
      e = from_bits<T>(static_cast<BitsOf<T>>(random() % 3));
  }
  return x;
}

TEST(ExponentBins, HoldWhatASuperaccumulatorHolds) {
  Formats::for_each([]<class T>() {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const std::vector<T> x = any_bits<T>(seed * 100, seed % 3 == 0 ? 1 : 0, seed);
      Exact expected, found;
      expected.add(std::span{x});
      ExponentBins bins;
      bins.add(x.data(), x.size() / 2);
      bins.add(x.data() + x.size() / 2, x.size() - x.size() / 2);
      bins.move_to(found);
      found.add(T{});  // whether all elements are -0 is not known
      expected.add(T{});
      EXPECT_EQ(found.serialise(), expected.serialise()) << seed;
      Exact empty;
      bins.move_to(empty);
      EXPECT_EQ(to_bits(empty.result<double>()), Format<double>::sign_bit) << "the bins are empty again";
    }
  });
}

TEST(ExponentBins, HoldAsManyOfTheLargestElementsAsTheyPromise) {
  const std::vector<double> largest(ExponentBins::capacity, -std::numeric_limits<double>::max());
  Exact expected, found;
  expected.add(std::span{largest});
  ExponentBins bins;
  bins.add(largest.data(), largest.size());
  bins.move_to(found);
  found.add(1.0);
  expected.add(1.0);
  EXPECT_EQ(found.serialise(), expected.serialise());
}

TEST(AnExactSum, OfAnyBitsIsThatOfItsElementsOneByOne) {
  Formats::for_each([]<class T>() {
    for (const std::size_t n : {600u, 3000u, 20'000u, 1'100'000u}) {
      if (testing_support::is_sanitized && n > 20'000 && !std::is_same_v<T, fp32>) continue;
      const std::vector<T> x = any_bits<T>(n, n == 3000 ? 100 : 0, n);
      Exact expected;
      expected.add(std::span{x});
      for (const int threads : {1, 2})
        EXPECT_EQ(sum_exact(Values{x}, threads).serialise(), expected.serialise()) << n;
    }
  });
}

}  // namespace
}  // namespace samesum::cpu
