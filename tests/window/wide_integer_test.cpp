/// Wide integers round as the exact sum of their parts.
#include "samesum/window/wide_integer.hpp"

#include <array>
#include <cmath>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "support.hpp"

namespace samesum {
namespace {

/// Adds units·2^grid.
void add(Exact& sum, const WideInteger<3>& units, int grid) {
  const WideInteger<3> magnitude = units.magnitude();
  for (int half = 0; half < 6; ++half) {
    const double part = std::ldexp(
        static_cast<double>(static_cast<std::uint32_t>(magnitude.word[half / 2] >> 32 * (half % 2))),
        grid + 32 * half);
    sum.add(units.is_negative() ? -part : part);
  }
}

/// Numbers of any length, some with long runs of equal bits.
WideInteger<3> random_units(std::mt19937_64& random) {
  WideInteger<3> x{{random(), random(), random()}};
  for (std::uint64_t& word : x.word)
    if (random() % 3 == 0) word = random() % 2 ? ~std::uint64_t{0} : 0;
  const auto length = static_cast<int>(random() % 190);  // bits that are not the sign
  WideInteger<3> short_one{};
  for (int bit = 0; bit < length; ++bit)
    if (x.word[bit / 64] >> bit % 64 & 1) short_one = short_one + WideInteger<3>::of(false, 1, bit);
  return random() % 2 ? short_one : short_one.negated_if(true);
}

template <class F> void expect_rounded_once(std::mt19937_64& random) {
  const WideInteger<3> units = random_units(random);
  const int grid = Format<F>::min_quantum + static_cast<int>(random() % 60);
  Exact sum;
  add(sum, units, grid);
  EXPECT_EQ(round_sum<F>(units, grid, F{}), units.is_zero() ? BitsOf<F>{0} : to_bits(sum.result<F>()));
  // The number that is held cancels the leading bits, or is anything.
  F held = from_bits<F>(static_cast<BitsOf<F>>(random()));
  if (random() % 2)
    held = from_bits<F>(static_cast<BitsOf<F>>(to_bits(sum.result<F>()) ^ Format<F>::sign_bit));
  if (!std::isfinite(convert<double>(held))) return;
  sum.add(held);
  const BitsOf<F> expected = to_bits(sum.result<F>());
  EXPECT_EQ(round_sum<F>(units, grid, held), expected)
      << units.word[0] << ' ' << units.word[1] << ' ' << units.word[2] << ", grid " << grid << ", held "
      << convert<double>(held);
}

TEST(WideInteger, RoundsOnceAloneAndWithANumberThatIsHeld) {
  std::mt19937_64 random{1};
  for (int i = 0; i < testing_support::random_cases(100'000); ++i) {
    expect_rounded_once<fp64>(random);
    expect_rounded_once<fp32>(random);
    expect_rounded_once<bf16>(random);
  }
}

TEST(WideInteger, DividesBeforeItRounds) {
  std::mt19937_64 random{2};
  for (int i = 0; i < testing_support::random_cases(100'000); ++i) {
    const WideInteger<3> units = random_units(random);
    if (!units.fits(2) || units.is_zero()) continue;
    const std::uint64_t divisor = random() % (std::uint64_t{1} << random() % 39) + 1;
    EXPECT_EQ(round_sum<fp64>(units, -90, 0.0, divisor),
              (round_units<fp64, true>(units.low_128(), -90, divisor)));
  }
}

template <class Count> class AWideInteger : public ::testing::Test {};
template <int count> using Count = std::integral_constant<int, count>;
using Counts = ::testing::Types<Count<2>, Count<3>, Count<5>, Count<12>, Count<18>, Count<34>>;
TYPED_TEST_SUITE(AWideInteger, Counts);

/// ±magnitude·2^shift, by doubling.
template <int count> WideInteger<count> shifted(bool negative, Wide magnitude, int shift) {
  auto x = WideInteger<count>::of(Int128::of(negative, magnitude));
  for (int bit = 0; bit < shift; ++bit) x = x + x;
  return x;
}

TYPED_TEST(AWideInteger, IsASumOfShiftedNumbersHoweverTheyAreAdded) {
  constexpr int count = TypeParam::value;
  std::mt19937_64 random{3};
  WideInteger<count> sum{}, through{}, in_memory{};
  for (int i = 0; i < testing_support::random_cases(500); ++i) {
    const Wide magnitude = (Wide{random()} << 64 | random()) >> (1 + random() % 127);
    const auto shift = static_cast<int>(random() % static_cast<unsigned>(64 * count - 127));
    const bool negative = random() % 2;
    const auto low = static_cast<std::uint64_t>(magnitude),
               high = static_cast<std::uint64_t>(magnitude >> 64);
    const auto expected = shifted<count>(negative, magnitude, shift);
    ASSERT_TRUE((expected - WideInteger<count>::of(negative, magnitude, shift)).is_zero());
    ASSERT_TRUE((expected == WideInteger<count>::of(negative, magnitude, shift)));
    ASSERT_FALSE((expected == expected + WideInteger<count>::of(false, 1, 64 * count - 1)));
    sum = sum + expected;
    through.add_through(negative, magnitude, shift);
    in_memory.add(negative, low, shift);
    if (high != 0) in_memory.add(negative, high, shift + 64);
    ASSERT_TRUE((sum - through).is_zero());
    ASSERT_TRUE((sum - in_memory).is_zero());
    ASSERT_EQ(expected.is_negative(), negative && magnitude != 0);
  }
}

TYPED_TEST(AWideInteger, IsTheSumOfWhatSeveralThreadsAddAtOnce) {
  using Integer = WideInteger<TypeParam::value>;
  Integer together{};
  std::array<Integer, 4> of_thread{};
  std::latch all_run{static_cast<std::ptrdiff_t>(of_thread.size())};
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < of_thread.size(); ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random{t};
      all_run.arrive_and_wait();
      for (int i = 0; i < testing_support::random_cases(20'000);
           ++i) {  // of either sign, so that carries pass through all words
        const bool negative = random() % 2;
        const auto shift = static_cast<int>(random() % static_cast<unsigned>(64 * Integer::words - 75));
        const std::uint64_t magnitude = random();
        together.template add_by<Atomically>(negative, magnitude, shift);
        of_thread[t].add(negative, magnitude, shift);
      }
    });
  threads.clear();  // joins them
  Integer expected{};
  for (const Integer& sum : of_thread) expected.add(sum);
  EXPECT_TRUE(together == expected);
}

TYPED_TEST(AWideInteger, HasLeadingBitsThatRoundAsTheNumberDoes) {
  constexpr int count = TypeParam::value;
  std::mt19937_64 random{4};
  for (int i = 0; i < testing_support::random_cases(5'000); ++i) {
    WideInteger<count> x{};
    for (std::uint64_t& word : x.word)
      word = random() % 3 == 0 ? random() : random() % 2 ? 0 : ~std::uint64_t{0};
    const auto length = static_cast<int>(random() % count);  // words
    for (int w = length; w < count; ++w) x.word[w] = x.word[length] >> 63 ? ~std::uint64_t{0} : 0;
    using Integer = WideInteger<count>;
    EXPECT_EQ(x.fits(1), (x - Integer::of(static_cast<std::int64_t>(x.word[0]))).is_zero());
    EXPECT_EQ(x.fits(2), (x - Integer::of(x.low_128())).is_zero());
    const LeadingBits leading = x.leading(-90);
    const std::uint64_t divisor = random() % (std::uint64_t{1} << random() % 39) + 1;
    EXPECT_EQ(leading.template rounded<fp64>(), rounded_quotient<fp64>(x, 1, 1, -90));
    EXPECT_EQ(leading.over(divisor).template rounded<fp64>(), rounded_quotient<fp64>(x, divisor, 1, -90));
  }
}

}  // namespace
}  // namespace samesum
