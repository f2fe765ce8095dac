#include "samesum/accumulator/exact.hpp"

#include <algorithm>
#include <bit>

#include "cases.hpp"
#include "harness/truth.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using harness::Truth;

/// Expects every way to compute the exact sum of x to round it correctly to every format.
void expect_correctly_rounded(Values x, const std::string& what) {
  const Truth truth{x};
  Exact one_by_one;
  with_format(*x.format, [&]<class T>() { one_by_one.add(x.as<T>()); });
  const Exact state = accumulate(x, {.threads = 2});
  ASSERT_EQ(state.serialise(), one_by_one.serialise()) << what;
  Formats::for_each([&]<class F>() {
    const Number expected = truth.rounded(format_info<F>());
    ASSERT_EQ(Number::of(one_by_one.result<F>()), expected) << what;
    ASSERT_EQ(find(std::string{"exact/"}.append(Format<F>::name))(x), expected) << what;
  });
}

/// Returns a short sum that is hard to round: random bits, mixed exponents, cancellation, ties with far
/// smaller terms, subnormals, or magnitudes near the largest.
template <class T> std::vector<T> awkward_sum(std::mt19937_64& random) {
  using F = Format<T>;
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto random_value = [&] {
    for (;;)
      if (const auto bits = static_cast<BitsOf<T>>(random());
          !is_nan_bits<T>(bits) && (bits & ~F::sign_bit) != F::infinity)
        return from_bits<T>(bits);
  };
  const auto scaled = [&](int exponent) {
    const double significand = 1 + static_cast<double>(below(1u << 7)) * 0x1p-7;
    return convert<T>((below(2) ? -significand : significand) *
                      power_of_two(std::clamp(exponent, -1074, 1023)));
  };
  std::vector<T> x(1 + below(12));
  const int centre =
      F::min_quantum + static_cast<int>(below(static_cast<std::uint64_t>(F::max_exponent - F::min_quantum)));
  switch (below(5)) {
    case 0:
      std::ranges::generate(x, random_value);
      break;
    case 1:  // neighbouring exponents
      std::ranges::generate(x, [&] { return scaled(centre + static_cast<int>(below(12))); });
      break;
    case 2:  // a number, a tie, and small terms that break it either way
      x = {scaled(centre + F::precision), scaled(centre), scaled(centre - 1),
           scaled(centre - static_cast<int>(below(40)))};
      break;
    case 3:  // all elements cancel except one
      std::ranges::generate(x, random_value);
      for (std::size_t i = 0, half = x.size(); i < half; ++i)
        x.push_back(from_bits<T>(BitsOf<T>(to_bits(x[i]) ^ F::sign_bit)));
      x.push_back(scaled(centre));
      break;
    default:  // near the largest
      std::ranges::generate(x, [&] { return scaled(F::max_exponent - static_cast<int>(below(3))); });
      break;
  }
  std::ranges::shuffle(x, random);
  return x;
}

template <class T> class ExactSums : public FormatTest<T> {};
using AllFormats = ::testing::Types<fp16, bf16, fp32, fp64>;
TYPED_TEST_SUITE(ExactSums, AllFormats);

TYPED_TEST(ExactSums, AreCorrectlyRoundedForAwkwardShortArrays) {
  std::mt19937_64 random{7};
  for (int i = 0; i < (is_sanitized ? 8000 : 40'000); ++i) {
    const std::vector<TypeParam> x = awkward_sum<TypeParam>(random);
    const Truth truth{x};
    Exact state;
    state.add(std::span<const TypeParam>{x});
    const Number expected = truth.rounded(format_info<TypeParam>());
    ASSERT_EQ(Number::of(state.result<TypeParam>()), expected) << i;
    ASSERT_EQ(Number::of(sum(x)), expected) << i;
    // Rounded to the other formats too: an fp64 sum that is rounded to fp32 must not be rounded twice.
    const FormatInfo& other = formats[static_cast<std::size_t>(i) % formats.size()];
    ASSERT_EQ(with_format(other, [&]<class F>() { return Number::of(state.result<F>()); }),
              truth.rounded(other))
        << i;
  }
}

TYPED_TEST(ExactSums, AreCorrectlyRoundedForLongArrays) {
  for (const std::size_t n : {1000, 4096, 65'536, 300'001}) {
    if (is_sanitized && n != 4096 && n != 65'536) continue;
    for (const Dataset& d : datasets(n))
      expect_correctly_rounded(Array{format_info<TypeParam>(), d.x}.values(), d.name);
  }
  for (const int binades : {1, 30, 60, 200, 2000})
    expect_correctly_rounded(Array{format_info<TypeParam>(), wide(100'003, binades, 1)}.values(),
                             std::to_string(binades) + " binades");
}

TYPED_TEST(ExactSums, DoNotDependOnOrderOrPartition) {
  std::mt19937_64 random{8};
  for (int round = 0; round < 300; ++round) {
    std::vector<TypeParam> x;
    while (x.size() < 60) std::ranges::copy(awkward_sum<TypeParam>(random), std::back_inserter(x));
    Exact whole;
    whole.add(std::span<const TypeParam>{x});
    std::ranges::shuffle(x, random);
    std::vector<Exact> parts(1 + random() % 6);
    for (const TypeParam& element : x) parts[random() % parts.size()].add(element);
    Exact merged;
    for (const Exact& part : parts) merged.merge(Exact::deserialise(part.serialise()));
    ASSERT_EQ(merged.serialise(), whole.serialise());
    ASSERT_EQ(to_bits(merged.result<TypeParam>()), to_bits(whole.result<TypeParam>()));
  }
}

TEST(ExactSum, GivesTheKnownAnswerOfEveryCase) {
  for (const testing::Case& c : testing::cases()) {
    const testing::Array x = c.array();
    const std::string name = std::string{"exact/"}.append(c.format->name);
    for (const char* backend : {"@cpu", "@reference"})
      EXPECT_EQ(find(name + backend)(x.values()), c.expected()) << c;
  }
}

TEST(ExactState, CarriesCorrectlyIfManyStatesOfOneSignAreMerged) {
  // Doubling 40 times passes every threshold at which carries must be propagated.
  Exact state;
  state.add(Format<fp64>::max_finite);
  state.add(-1.0);
  Exact smaller;
  smaller.add(0x1p-1074);
  for (int i = 0; i < 40; ++i) {
    state.merge(Exact{state});
    smaller.merge(Exact{smaller});
  }
  EXPECT_EQ(state.result<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(smaller.result<double>(), 0x1p-1034);
  Exact negative;
  negative.add(-Format<fp64>::max_finite);
  negative.add(1.0);
  for (int i = 0; i < 40; ++i) negative.merge(Exact{negative});
  state.merge(negative);
  EXPECT_EQ(to_bits(state.result<double>()), 0u);
}

TEST(ExactState, SettlesItsCarriesBeforeADigitOverflows) {
  // All significant bits are set, so each doubling fills the digits; after 31 of them one would overflow.
  const double full = 2 - 0x1p-52;
  Exact state, negative;
  state.add(full);
  negative.add(-full);
  for (int i = 1; i <= 63; ++i) {
    state.merge(Exact{state});
    negative.merge(Exact{negative});
    ASSERT_EQ(state.result<double>(), full * power_of_two(i)) << i;
    ASSERT_EQ(negative.result<double>(), -full * power_of_two(i)) << i;
  }
}

TEST(ExactState, OfTooManyElementsIsRefusedOrInfiniteButNeverWrong) {
  Exact largest;
  largest.add(Format<fp64>::max_finite);
  for (int i = 0; i < 63; ++i) largest.merge(Exact{largest});
  EXPECT_NO_THROW(Exact::deserialise(largest.serialise()));  // 2^63 elements
  for (int i = 0; i < 20; ++i) largest.merge(Exact{largest});
  EXPECT_EQ(largest.result<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(largest.result<float>(), std::numeric_limits<float>::infinity());
  EXPECT_THROW(largest.serialise(), std::length_error);
  Exact one;
  one.add(1.0);
  std::vector<std::byte> forged = one.serialise();
  forged[forged.size() - 2] = std::byte{0x7f};  // of the top digit
  EXPECT_THROW(Exact::deserialise(forged), std::invalid_argument);
  forged = one.serialise();
  forged[11] = std::byte{2 + 1 + 8};  // +inf, and digits beside it
  EXPECT_THROW(Exact::deserialise(forged), std::invalid_argument);
}

TEST(ExactState, SettlesItsCarriesAfterABillionElements) {
  if (std::getenv("SAMESUM_LONG_TESTS") == nullptr)
    GTEST_SKIP() << "2^31 additions take seconds to minutes; set SAMESUM_LONG_TESTS=1 (the merges "
                    "above pass the same thresholds)";
  Exact state;
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 31) + 5; ++i) state.add(1 - 0x1p-53);
  // The sum is 2^31 + 5 - 2^-22 - 5·2^-53, just below the middle of two doubles.
  EXPECT_EQ(state.result<double>(), 0x1p31 + 5 - 0x1p-21);
}

TEST(ExactState, HasEqualBytesForEqualSums) {
  Exact a, b;
  for (const double x : {1e300, 1.0, -1e300}) a.add(x);
  b.add(fp16{1.0f});
  EXPECT_EQ(a.serialise(), b.serialise());
  b.add(0.0f);
  EXPECT_EQ(a.serialise(), b.serialise());
  a.add(std::numeric_limits<float>::infinity());
  b.add(std::numeric_limits<double>::infinity());
  a.add(3.0);
  EXPECT_EQ(a.serialise(), b.serialise());
  Exact empty, minus_zero;
  minus_zero.add(-0.0);
  EXPECT_NE(empty.serialise(), minus_zero.serialise());
}

TEST(ExactState, RefusesInvalidBytes) {
  Exact state;
  for (const double x : {1.5, -1e-300, 1e200}) state.add(x);
  const std::vector<std::byte> bytes = state.serialise();
  EXPECT_EQ(bytes.size(), 284u);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(Exact::deserialise(std::span{bytes}.first(size)), std::invalid_argument);
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{});
  EXPECT_THROW(Exact::deserialise(longer), std::invalid_argument);
  for (std::size_t at = 0; at < 12; ++at) {  // header and flags
    std::vector<std::byte> wrong = bytes;
    wrong[at] ^= std::byte{0x40};
    EXPECT_THROW(Exact::deserialise(wrong), std::invalid_argument) << at;
  }
  std::vector<std::byte> no_flags = bytes;
  no_flags[11] = std::byte{0};
  EXPECT_THROW(Exact::deserialise(no_flags), std::invalid_argument);
}

std::vector<std::byte> bytes_of(std::initializer_list<int> few) {
  std::vector<std::byte> all;
  for (const int b : few) all.push_back(static_cast<std::byte>(b));
  return all;
}

TEST(AnExactState, HasItsGoldenBytes) {
  // "SSUM", version 1, the name's length and the name, flags, 68 digits of 32 bits.
  std::vector<std::byte> header = bytes_of({'S', 'S', 'U', 'M', 1, 5, 'e', 'x', 'a', 'c', 't', 3});
  Exact state;
  state.add(-0x1p-1074);
  std::vector<std::byte> minus_one = header;  // in units of 2^-1074
  minus_one.resize(284, std::byte{0xff});
  EXPECT_EQ(state.serialise(), minus_one);

  state.add(1.0);
  state.add(fp16{3.0f});
  std::vector<std::byte> expected = header;  // 2^1076 - 1 of these units
  expected.resize(header.size() + 134, std::byte{0xff});
  expected.push_back(std::byte{0x0f});
  expected.resize(284, std::byte{0});
  EXPECT_EQ(state.serialise(), expected);
  EXPECT_EQ(Exact::deserialise(expected).result<double>(), 4);
}

TEST(AnExactState, IsRestoredFromDamagedBytesOnlyIfTheyAreValid) {
  std::mt19937_64 random{3};
  int taken = 0, refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    Exact state;
    for (std::size_t i = random() % 4; i > 0; --i) state.add(from_bits<double>(random()));
    std::vector<std::byte> bytes = state.serialise();
    for (std::size_t i = 1 + random() % 3; i > 0; --i) {
      if (bytes.empty() || random() % 16 == 0) bytes.resize(random() % 300);
      if (!bytes.empty())
        bytes[random() % (random() % 2 ? bytes.size() : std::min<std::size_t>(bytes.size(), 12))] =
            static_cast<std::byte>(random());
    }
    try {
      ASSERT_EQ(Exact::deserialise(bytes).serialise(), bytes);
      ++taken;
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  EXPECT_GT(taken, 200);
  EXPECT_GT(refused, 200);
}

// --- the words of fp64 in front of the superaccumulator --------------------------------------------

/// Returns n finite elements with exponent fields from `base` to `base + span`. `kind` selects how exponents,
/// significands and signs are distributed.
template <class T>
std::vector<T> block(std::size_t n, int base, int span, int kind, std::mt19937_64& random) {
  constexpr int fraction_bits = Format<T>::precision - 1;
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool alone = i == (kind & 1 ? 0 : n - 1);
    const int field = kind == 5   ? base + static_cast<int>(random() % unsigned(span + 1))
                      : kind == 4 ? base + (random() & 1 ? span : 0)
                                  : base + (alone ? 0 : span);
    const std::uint64_t fraction = kind == 0 || kind == 4 ? ~0ull
                                   : kind == 1            ? (alone ? 1 : ~0ull)
                                                          : random() | 1;
    const std::uint64_t sign = kind >= 2 && random() & 1 ? Format<T>::sign_bit : 0;
    x[i] = from_bits<T>(BitsOf<T>(sign | (std::uint64_t(field) << fraction_bits) |
                                  (fraction & ((1ull << fraction_bits) - 1))));
  }
  return x;
}

/// Returns the sum that the words hold, and in `taken` the number of elements that they accepted.
template <class T> Exact sum_of_words(const std::vector<T>& x, std::size_t& taken) {
  cpu::Expansions words;
  taken = cpu::kernels(Formats::index_of<T>()).add_exactly(words, x.data(), x.size());
  Exact sum;
  sum.add(T{});
  for (const auto& word : words.word) sum.add(std::span<const double>{word});
  return sum;
}

template <class T> Exact one_by_one(std::span<const T> x) {
  Exact sum;
  sum.add(T{});
  sum.add(x);
  return sum;
}

template <class T> class Words : public FormatTest<T> {};
TYPED_TEST_SUITE(Words, AllFormats);

TYPED_TEST(Words, EqualSingleAdditionsForEverySpanLengthAndPlace) {
  using T = TypeParam;
  std::mt19937_64 random{7};
  const int top = 2 * Format<T>::max_exponent;
  std::size_t whole = 0;
  for (int span = 0; span <= std::min(top, 175); span += span < 60 ? 1 : 3)
    for (const std::size_t n : {64, 192, 960, 2048})
      for (const int base : {0, 1, top / 2 - span / 2, top - span - 12, top - span - 5, top - span})
        for (int kind = 0; kind < 6; ++kind) {
          if (base < 0 || base + span > top) continue;
          if (is_sanitized && (span + kind) % 12 != 0) continue;
          const std::vector<T> x = block<T>(n, base, span, kind, random);
          std::size_t taken;
          const Exact sum = sum_of_words(x, taken);
          whole += taken == n;
          ASSERT_EQ(sum.serialise(), one_by_one(std::span{x}.first(taken)).serialise())
              << "n = " << n << ", span " << span << ", base " << base << ", kind " << kind;
        }
  EXPECT_GT(whole, is_sanitized ? 60u : 1000u) << "too few blocks were accepted whole";
}

TYPED_TEST(Words, StopBeforeABlockThatTheyCannotHold) {
  using T = TypeParam;
  std::mt19937_64 random{8};
  const int top = 2 * Format<T>::max_exponent, apart = std::min(200, top / 4);
  std::vector<T> x;
  for (int i = 0; i < 4; ++i)
    for (const T e : block<T>(cpu::exact_block, 1 + i * apart, 3, 5, random)) x.push_back(e);
  std::size_t taken;
  const Exact sum = sum_of_words(x, taken);
  EXPECT_EQ(sum.serialise(), one_by_one(std::span{std::as_const(x)}.first(taken)).serialise());
  EXPECT_EQ(taken == x.size(), 3 * apart < 150);
}

// Words expect that a block resembles the one before it. After 18 blocks of one kind, one differs.
TYPED_TEST(Words, AreExactForABlockUnlikeThoseBeforeIt) {
  using T = TypeParam;
  std::mt19937_64 random{9};
  const int top = 2 * Format<T>::max_exponent, usual = std::min(80 - Format<T>::precision, top / 5);
  std::vector<T> alike;
  for (int i = 0; i < 18; ++i)
    for (const T e : block<T>(cpu::exact_block, top / 3, usual, 5, random)) alike.push_back(e);
  const Exact of_alike = one_by_one(std::span{std::as_const(alike)});
  for (int shift = -usual; shift <= usual; shift += is_sanitized ? 12 : 1)
    for (const int span : {0, usual / 2, usual, usual + usual / 4})
      for (const std::size_t n : {64ul, 960ul, 2048ul}) {
        std::vector<T> x = alike;
        for (const T e : block<T>(n, top / 3 + shift, span, 5, random)) x.push_back(e);
        std::size_t taken;
        const Exact sum = sum_of_words(x, taken);
        ASSERT_GE(taken, alike.size());
        Exact expected{of_alike};
        expected.merge(one_by_one(std::span{std::as_const(x)}.subspan(alike.size(), taken - alike.size())));
        ASSERT_EQ(sum.serialise(), expected.serialise())
            << "shift " << shift << ", span " << span << ", n = " << n;
      }
}

}  // namespace
}  // namespace samesum
