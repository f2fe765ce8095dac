/// Integers of 192 bits round as the exact sum of their parts.
#include "samesum/backend/cuda/int192.hpp"

#include <cmath>
#include <random>

#include "support.hpp"

namespace samesum {
namespace {

/// Adds units·2^grid.
void add(Exact& sum, const Int192& units, int grid) {
  const Int192 magnitude = units.magnitude();
  for (int half = 0; half < 6; ++half) {
    const double part = std::ldexp(
        static_cast<double>(static_cast<std::uint32_t>(magnitude.word[half / 2] >> 32 * (half % 2))),
        grid + 32 * half);
    sum.add(units.is_negative() ? -part : part);
  }
}

/// Numbers of any length, some with long runs of equal bits.
Int192 random_units(std::mt19937_64& random) {
  Int192 x{{random(), random(), random()}};
  for (std::uint64_t& word : x.word)
    if (random() % 3 == 0) word = random() % 2 ? ~std::uint64_t{0} : 0;
  const auto length = static_cast<int>(random() % 190);  // bits that are not the sign
  Int192 short_one;
  for (int bit = 0; bit < length; ++bit)
    if (x.word[bit / 64] >> bit % 64 & 1) short_one = short_one + Int192::of(false, 1, bit);
  return random() % 2 ? short_one : short_one.negated();
}

template <class F> void expect_rounded_once(std::mt19937_64& random) {
  const Int192 units = random_units(random);
  const int grid = Format<F>::min_quantum + static_cast<int>(random() % 60);
  Exact sum;
  add(sum, units, grid);
  EXPECT_EQ(round_units<F>(units, grid, F{}, 1), units.is_zero() ? BitsOf<F>{0} : to_bits(sum.result<F>()));
  if (units.fits_128()) return;
  // The number that is held cancels the leading bits, or is anything.
  F held = from_bits<F>(static_cast<BitsOf<F>>(random()));
  if (random() % 2)
    held = from_bits<F>(static_cast<BitsOf<F>>(to_bits(sum.result<F>()) ^ Format<F>::sign_bit));
  if (!std::isfinite(convert<double>(held))) return;
  sum.add(held);
  const BitsOf<F> expected = to_bits(sum.result<F>());
  EXPECT_EQ(round_units<F>(units, grid, held, 1), expected)
      << units.word[0] << ' ' << units.word[1] << ' ' << units.word[2] << ", grid " << grid << ", held "
      << convert<double>(held);
}

TEST(Int192, RoundsOnceAloneAndWithANumberThatIsHeld) {
  std::mt19937_64 random{1};
  for (int i = 0; i < testing_support::random_cases(100'000); ++i) {
    expect_rounded_once<fp64>(random);
    expect_rounded_once<fp32>(random);
    expect_rounded_once<bf16>(random);
  }
}

TEST(Int192, DividesBeforeItRounds) {
  std::mt19937_64 random{2};
  for (int i = 0; i < testing_support::random_cases(100'000); ++i) {
    const Int192 units = random_units(random);
    if (!units.fits_128() || units.is_zero()) continue;
    const std::uint64_t divisor = random() % (std::uint64_t{1} << random() % 39) + 1;
    EXPECT_EQ(round_units<fp64>(units, -90, 0.0, divisor),
              (round_quotient<fp64, true>(units.low_128(), -90, divisor)));
  }
}

TEST(Int192, IsASumOfShiftedNumbers) {
  std::mt19937_64 random{3};
  for (int i = 0; i < testing_support::random_cases(10'000); ++i) {
    const std::uint64_t magnitude = random() >> random() % 64;
    const auto shift = static_cast<int>(random() % 127);
    const bool negative = random() % 2;
    Int192 by_doubling = Int192::of(Int128::of(negative, magnitude));
    for (int bit = 0; bit < shift; ++bit) by_doubling = by_doubling + by_doubling;
    const Int192 x = Int192::of(negative, magnitude, shift);
    for (int w = 0; w < 3; ++w) EXPECT_EQ(x.word[w], by_doubling.word[w]);
    EXPECT_TRUE((x - by_doubling).is_zero());
  }
}

}  // namespace
}  // namespace samesum
