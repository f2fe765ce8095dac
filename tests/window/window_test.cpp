/// Sums in a window, and the compact state behind it, against the exact state of an accumulator.
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "samesum/operation/exact_reduction.hpp"
#include "samesum/window/compact_exact.hpp"
#include "samesum/window/exponent_range.hpp"
#include "samesum/window/leading_sum.hpp"

namespace samesum {
namespace {

int ceil_log2(std::size_t n) { return n < 2 ? 0 : static_cast<int>(std::bit_width(n - 1)); }

/// Numbers of which the exponents spread over some binades.
template <class T> std::vector<T> numbers(std::mt19937_64& generator, std::size_t n, int binades) {
  std::vector<T> x(n);
  for (T& element : x) {
    const double fraction = static_cast<double>(static_cast<std::int64_t>(generator())) * 0x1p-63;
    const int exponent = static_cast<int>(generator() % static_cast<unsigned>(binades + 1)) - binades / 2;
    element = convert<T>(std::ldexp(fraction, exponent));
  }
  return x;
}

/// A window for elements of T, or for their squares.
template <class T, int words, int power, class Word> struct Tried {
  using Element = T;
  using Window = TermWindow<T, Format<T>::precision, words, power, Word>;
  static constexpr int exponent = power;
};

template <class Case> class AWindow : public ::testing::Test {};
using Windows =
    ::testing::Types<Tried<fp32, 1, 1, double>, Tried<fp32, 2, 1, double>, Tried<fp32, 3, 1, double>,
                     Tried<fp32, 2, 2, double>, Tried<fp32, 3, 2, double>, Tried<bf16, 1, 1, double>,
                     Tried<bf16, 2, 1, float>, Tried<bf16, 2, 2, double>, Tried<fp16, 2, 1, float>,
                     Tried<fp16, 2, 1, double>, Tried<fp16, 2, 2, double>>;
TYPED_TEST_SUITE(AWindow, Windows);

/// Adds x^power in the window, and expects the sum of all words to be exact if the window holds x. Returns
/// whether it does.
template <class Case> bool is_exact_if_held(const std::vector<typename Case::Element>& x, int headroom) {
  using T = typename Case::Element;
  using Key = MagnitudeKey<T>;
  typename Case::Window window;
  std::uint32_t largest = 0, least_minus_1 = ~0u;
  for (const T element : x) {
    largest = std::max(largest, Key::of(element));
    least_minus_1 = std::min(least_minus_1, Key::minus_1(element));
  }
  window.place(largest, headroom, ceil_log2(x.size()));
  if (!window.holds(largest, least_minus_1)) return false;
  auto sum = window.begin();
  ExactTerms expected, actual;
  for (const T element : x) {
    using Word = std::remove_reference_t<decltype(sum.word[0])>;
    const auto wide = convert<double>(element);
    window.add(sum, static_cast<Word>(Case::exponent == 2 ? wide * wide : wide));
    if constexpr (Case::Window::splits)
      window.template add<1>(sum, static_cast<Word>(std::fma(wide, wide, -wide * wide)));
    expected.add(Case::exponent == 2 ? Term::square : Term::element, element, element);
  }
  for (int w = 0; w < Case::Window::words; ++w) actual.sum.add(static_cast<double>(window.added(sum, w)));
  EXPECT_EQ(actual.digits(), expected.digits());
  return true;
}

TYPED_TEST(AWindow, AddsWithoutAnErrorWhateverItHolds) {
  std::mt19937_64 generator{1};
  int held = 0, missed = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t n = 1 + generator() % 300;
    const auto x = numbers<typename TypeParam::Element>(generator, n, static_cast<int>(generator() % 90));
    ++(is_exact_if_held<TypeParam>(x, static_cast<int>(generator() % 4)) ? held : missed);
  }
  EXPECT_GT(held, 100);
  if (sizeof(typename TypeParam::Element) == 4 && TypeParam::Window::words < 3) {
    EXPECT_GT(missed, 100);
  }
}

// The largest sums that the proof allows: as many terms as possible, all just below the bound, with all bits.
TYPED_TEST(AWindow, AddsTheLargestTermsWithoutAnError) {
  using T = typename TypeParam::Element;
  for (const int log2_terms : {0, 1, 5, 12}) {
    const T almost_2 = from_bits<T>(BitsOf<T>(to_bits(convert<T>(2.0)) - 1));
    std::vector<T> x(std::size_t{1} << log2_terms, almost_2);
    EXPECT_TRUE(is_exact_if_held<TypeParam>(x, 0)) << log2_terms;
  }
}

// The smallest element that a window holds beside a large one; the next binade is outside.
TYPED_TEST(AWindow, HoldsEveryBitDownToItsEnd) {
  using T = typename TypeParam::Element;
  using Key = MagnitudeKey<T>;
  for (const int log2_terms : {1, 5, 12}) {
    typename TypeParam::Window window;
    const T large = convert<T>(1.0);
    window.place(Key::of(large), 0, log2_terms);
    const auto holds = [&](std::uint32_t key) { return window.holds(Key::of(large), key - 1); };
    std::uint32_t below = 0, least = Key::of(large);  // the largest key outside, the smallest inside
    while (least - below > 1) (holds((below + least) / 2) ? least : below) = (below + least) / 2;
    const T small = from_bits<T>(static_cast<BitsOf<T>>(least + (least > 1)));  // odd, unless it is subnormal
    // All other terms leave nearly the largest remainder for the last word.
    constexpr int p =
        Format<std::remove_reference_t<decltype(typename TypeParam::Window::Words{}.word[0])>>::precision;
    const int first = TypeParam::exponent + log2_terms + 1, words = TypeParam::Window::words,
              half_unit = words == 1   ? 0
                          : words == 2 ? first - p
                                       : first - 2 * p + log2_terms + 1;
    const double fill =
        std::ldexp(1 - Format<T>::unit_roundoff,
                   TypeParam::exponent == 1 ? half_unit : (half_unit - (half_unit % 2 != 0)) / 2);
    std::vector<T> x(std::size_t{1} << log2_terms,
                     holds(Key::of(convert<T>(fill))) ? convert<T>(fill) : small);
    x.front() = large;
    x.back() = small;
    EXPECT_TRUE(is_exact_if_held<TypeParam>(x, 0)) << log2_terms;
  }
}

template <class Case> class AWindowWhereExponentsEnd : public ::testing::Test {};
using WindowsOfAllFormats =
    ::testing::Types<Tried<fp64, 2, 1, double>, Tried<fp64, 3, 1, double>, Tried<fp64, 5, 1, double>,
                     Tried<fp32, 2, 1, double>, Tried<fp32, 3, 2, double>, Tried<bf16, 2, 1, float>,
                     Tried<bf16, 2, 2, double>>;
TYPED_TEST_SUITE(AWindowWhereExponentsEnd, WindowsOfAllFormats);

// Terms just below a power of two are rounded to it, so 2^L of them move an anchor to the next power of two,
// which must be a number.
TYPED_TEST(AWindowWhereExponentsEnd, AddsWithoutAnErrorWhateverItHolds) {
  using T = typename TypeParam::Element;
  using F = Format<T>;
  int held = 0, missed = 0;
  for (const int log2_terms : {0, 1, 5, 12})
    for (int beside = 0; beside < log2_terms + 6; ++beside)
      for (const int exponent :
           {F::max_exponent - beside, F::min_exponent + 60 + beside, F::min_quantum + beside})
        for (const double sign : {1.0, -1.0}) {
          const double ends[] = {2 - 2 * F::unit_roundoff, 1};
          std::vector<T> x;
          for (std::size_t i = 0; i < std::size_t{1} << log2_terms; ++i)
            x.push_back(convert<T>(sign * std::ldexp(ends[exponent < F::min_exponent], exponent)));
          ++(is_exact_if_held<TypeParam>(x, 0) ? held : missed);
        }
  EXPECT_GT(held, 30);
  if (sizeof(T) == 8 || TypeParam::Window::has_floats) {
    EXPECT_GT(missed, 10);
  }
}

template <class Case> class AWindowOfDoubles : public ::testing::Test {};
using WindowsOfDoubles = ::testing::Types<Tried<fp64, 3, 1, double>, Tried<fp64, 5, 1, double>,
                                          Tried<fp64, 5, 2, double>, Tried<fp64, 8, 2, double>>;
TYPED_TEST_SUITE(AWindowOfDoubles, WindowsOfDoubles);

TYPED_TEST(AWindowOfDoubles, AddsWithoutAnErrorWhateverItHolds) {
  std::mt19937_64 generator{8};
  int held = 0, missed = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto x = numbers<fp64>(generator, 1 + generator() % 100, static_cast<int>(generator() % 400));
    ++(is_exact_if_held<TypeParam>(x, static_cast<int>(generator() % 4)) ? held : missed);
  }
  EXPECT_GT(held, 100);
  EXPECT_GT(missed, 100);
}

// The key of a double is its upper word, in which the smallest numbers have no bit.
TYPED_TEST(AWindowOfDoubles, HoldsNoNumberBelowTheUpperWordBesideLargeOnes) {
  for (const double small : {0x1p-1074, 0x1.8p-1060, -0x1p-1043}) {
    EXPECT_FALSE(is_exact_if_held<TypeParam>({1.0, small}, 0)) << small;
    EXPECT_FALSE(is_exact_if_held<TypeParam>({small, 0x1p-700, 0}, 0)) << small;
  }
  EXPECT_TRUE(is_exact_if_held<TypeParam>({1.0, -0.0, 0.0}, 0));
}

// Rounded products, and what they lack, in windows of products.
template <int words> void expect_exact_products(std::mt19937_64& generator, int& held, int& missed) {
  using Key = MagnitudeKey<fp64>;
  const int binades = static_cast<int>(generator() % 150);
  const std::size_t n = 1 + generator() % 50;
  const auto x = numbers<fp64>(generator, n, binades), y = numbers<fp64>(generator, n, binades);
  TermWindow<fp64, 106, words> window;
  static_assert(window.splits);
  std::uint32_t largest = 0, least_minus_1 = ~0u;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, Key::of(x[i] * y[i]));
    least_minus_1 = std::min(least_minus_1, Key::minus_1(x[i] * y[i]));
  }
  window.place(largest, 2, ceil_log2(n));
  if (!window.holds(largest, least_minus_1)) return ++missed, void();
  ++held;
  auto sum = window.begin();
  ExactTerms expected, actual;
  for (std::size_t i = 0; i < n; ++i) {
    const double product = x[i] * y[i];
    window.add(sum, product);
    window.template add<1>(sum, std::fma(x[i], y[i], -product));
    expected.add(Term::product, x[i], y[i]);
  }
  for (int w = 0; w < words; ++w) actual.sum.add(window.added(sum, w));
  EXPECT_EQ(actual.digits(), expected.digits());
}
TEST(AWindowOfProductsOfDoubles, AddsWithoutAnErrorWhateverItHolds) {
  std::mt19937_64 generator{9};
  int held = 0, missed = 0;
  for (int i = 0; i < 1000; ++i) {
    expect_exact_products<5>(generator, held, missed);
    expect_exact_products<8>(generator, held, missed);
  }
  EXPECT_GT(held, 500);
  EXPECT_GT(missed, 300);
}

/// Subtracts the words to which terms are added as the anchors say.
template <int words, int spare>
void subtract_in_words(const Anchors<words, spare>& anchors, const std::vector<double>& terms, Exact& all) {
  double anchor[words] = {}, start[words] = {}, total[words] = {};
  for (int i = 0; i + 1 < words; ++i) {
    anchor[i] = anchor_at(anchors.exponent(i));
    start[i] = spare == 0 ? 0 : anchor[i];
  }
  const std::size_t run = std::size_t{1} << anchors.log2_terms;
  for (std::size_t first = 0; first < terms.size(); first += run) {
    double sum[words];
    std::ranges::copy(start, sum);
    for (std::size_t k = first; k < first + run; ++k) {
      double rest = terms[k];
      for (int i = 0; i + 1 < words; ++i) {
        const double before = spare == 0 ? anchor[i] : sum[i], part = (before + rest) - before;
        sum[i] += part;
        rest -= part;
      }
      sum[words - 1] += rest;
    }
    for (int i = 0; i + 1 < words; ++i) total[i] += sum[i] - start[i];
    all.add(-sum[words - 1]);
  }
  for (const double word : total) all.add(-word);
}

/// Expects the words to hold terms with all bits that the anchors allow: terms as large as the first word, or
/// the remainders in another one, can be; terms that leave the largest remainders, all of one sign, as long
/// as the anchor stays in its binade, or once it leaves it; and others.
template <int words, int spare>
void expect_no_loss(Anchors<words, spare> anchors, std::mt19937_64& generator) {
  ASSERT_TRUE(anchors.are_numbers());
  const int lowest = std::max(anchors.lowest(), Format<fp64>::min_quantum);
  std::vector<double> terms((std::size_t{1} << anchors.log2_terms) * (spare == 2 ? 8 : 1));
  const auto draw = [&](std::uint64_t n) { return static_cast<int>(generator() % n); };
  const auto term = [&](int word, int kind) {
    const int top = word == 0 ? anchors.top : anchors.exponent(word - 1) - 53,
              unit = std::max(top - 53, lowest), bits = std::clamp(top - unit, 1, 53),
              of_half = anchors.exponent(word) - 53 + (kind == 2) - unit;
    const std::uint64_t ones = ~std::uint64_t{0} >> (64 - bits);
    const std::uint64_t integer = kind == 0                       ? ones
                                  : kind == 3                     ? generator() & ones
                                  : of_half > 0 && of_half < bits ? ones - (std::uint64_t{1} << of_half) + 2
                                                                  : ones;
    return std::ldexp(static_cast<double>(integer), unit);
  };
  const int n = static_cast<int>(terms.size()), word = draw(words), first = draw(4), second = draw(4),
            changes = n / (1 + draw(2)), other = draw(terms.size());
  const bool has_signs = draw(3) == 0;
  for (int i = 0; i < n; ++i) {
    double& x = terms[static_cast<std::size_t>(i)];
    x = i == other ? term(words - 1, 3) : term(word, i < changes ? first : second);
    if (has_signs && draw(2) == 0) x = -x;
  }
  Exact lost;
  for (const double x : terms) lost.add(x);
  subtract_in_words(anchors, terms, lost);
  EXPECT_EQ(lost.result(format_info<fp64>()).as<double>(), 0)
      << words << " words, spare " << spare << ", top " << anchors.top << ", 2^" << anchors.log2_terms;
}

TEST(Anchors, LoseNoBitOfTheTermsThatTheyAllow) {
  std::mt19937_64 generator{6};
  for (int i = 0; i < 200; ++i)
    for (const int log2_terms : {1, 2, 3})
      for (const int top : {0, 1020 - log2_terms, -900, -960, -1015}) {
        expect_no_loss<1, 0>({top, log2_terms}, generator);
        expect_no_loss<2, 0>({top, log2_terms}, generator);
        expect_no_loss<3, 0>({top, log2_terms}, generator);
        expect_no_loss<2, 1>({top, log2_terms}, generator);
        expect_no_loss<3, 1>({top, log2_terms}, generator);
        expect_no_loss<2, 2>({top, log2_terms}, generator);
        expect_no_loss<3, 2>({top, log2_terms}, generator);
      }
}

TEST(Anchors, EndWhereTheLargestSumsAreNoNumbers) {
  EXPECT_TRUE((Anchors<2, 1>{1012, 9}.are_numbers()));  // terms just below 2^1012 move 1.5·2^1022 to 2^1023
  EXPECT_FALSE((Anchors<2, 1>{1013, 9}.are_numbers()));
  EXPECT_TRUE((Anchors<2, 1, float>{116, 9}.are_numbers()));
  EXPECT_FALSE((Anchors<2, 1, float>{117, 9}.are_numbers()));
}

TEST(Anchors, AllowAsManyTermsAsTheirRangeHasRoomFor) {
  for (int bits = 1; bits < 150; ++bits) {
    const int most = Anchors<3, 2>::most_log2_terms(bits);
    if (most < 1) continue;
    EXPECT_LE((Anchors<3, 2>{0, most}.lowest()), -bits);
    EXPECT_GT((Anchors<3, 2>{0, most + 1}.lowest()), -bits);
  }
}

TEST(AnAnchorOfUnits, CountsThemInItsBitsRoundedToNearestEven) {
  for (const int unit : {0, 3, -1022 - 52, 1023 - 53}) {
    const double anchor = unit_anchor(unit);
    const auto units = [&](double x) { return units_above(anchor, anchor + std::ldexp(x, unit)); };
    for (const std::int64_t whole :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 51, (std::int64_t{1} << 51) - 1}) {
      EXPECT_EQ(units(static_cast<double>(whole)), whole);
      EXPECT_EQ(units(-static_cast<double>(whole)), -whole);
    }
    if (unit < -1000) continue;  // nothing is below the unit
    EXPECT_EQ(units(0.5), 0);
    EXPECT_EQ(units(1.5), 2);
    EXPECT_EQ(units(-2.5), -2);
    EXPECT_EQ(units(2.5 + 0x1p-40), 3);
  }
  EXPECT_EQ(whole_anchor, 0x1.8p52);
}

TEST(AnExponentRange, BeginsAtTheLastBitAndEndsAboveTheFirstOne) {
  std::mt19937_64 generator{7};
  Formats::for_each([&]<class T>() {
    ExponentRange all;
    int top = -ExponentRange::bias, lowest = ExponentRange::bias;
    for (int i = 0; i < 500; ++i) {
      const T x = from_bits<T>(static_cast<BitsOf<T>>(generator() << generator() % Format<T>::width));
      const ExponentRange range = ExponentRange::of<T>(to_bits(x));
      all.merge(range);
      const double wide = convert<double>(x);
      ASSERT_EQ(range.is_empty(), wide == 0 || !std::isfinite(wide));
      if (range.is_empty()) continue;
      EXPECT_EQ(std::ilogb(wide) + 1, range.top());
      const double units =
          std::ldexp(std::ldexp(wide, -range.lowest() / 2), -range.lowest() + range.lowest() / 2);
      EXPECT_EQ(std::fabs(std::fmod(units, 2)), 1) << wide;
      top = std::max(top, range.top());
      lowest = std::min(lowest, range.lowest());
    }
    EXPECT_EQ(all.top(), top);
    EXPECT_EQ(all.lowest(), lowest);
  });
}

TEST(AnExponentRange, OfProductsHoldsThemAll) {
  using Range = ExponentRange;
  const Range a = Range::between(-3, 5), b = Range::between(-1074, -1000), zeros,
              special = Range::unbounded();
  EXPECT_EQ(a.times(b).lowest(), -1077);
  EXPECT_EQ(a.times(b).top(), -995);
  EXPECT_EQ(a.times(b).bits(), a.bits() + b.bits());
  EXPECT_TRUE(a.times(zeros).is_empty());
  EXPECT_TRUE(zeros.is_bounded());
  for (const Range& other : {a, zeros, special}) {  // an infinity times 0 is NaN
    EXPECT_FALSE(special.times(other).is_bounded());
    EXPECT_FALSE(other.times(special).is_bounded());
  }
  Range all = a;
  all.merge(special);
  EXPECT_FALSE(all.is_bounded());
  const Range largest = Range::between(Format<fp64>::min_quantum, Format<fp64>::max_exponent + 1);
  EXPECT_TRUE(largest.times(largest).is_bounded());
}

/// Elements of T, whose exponents spread over up to `most` binades, in a sum of a few words.
template <class T, int words, int most> struct Compact {
  using Element = T;
  using Sum = CompactSumOf<T, 1, words>;
  static constexpr unsigned binades = most;
};
template <class Case> class ACompactSumOf : public ::testing::Test {};
using CompactSums = ::testing::Types<Compact<fp32, 2, 250>, Compact<fp64, 3, 500>, Compact<fp64, 5, 800>>;
TYPED_TEST_SUITE(ACompactSumOf, CompactSums);

TYPED_TEST(ACompactSumOf, ElementsHasTheValueOfAllThatWasAddedAndMerged) {
  using Sum = typename TypeParam::Sum;
  using T = typename TypeParam::Element;
  std::mt19937_64 generator{2};
  int wide = 0;
  for (int i = 0; i < 2000; ++i) {
    Sum sum, other;
    Exact expected;
    const auto binades = static_cast<int>(generator() % TypeParam::binades);
    for (const T x : numbers<T>(generator, 1 + generator() % 20, binades)) {
      (generator() % 2 == 0 ? sum : other).add(x);
      expected.add(x);
    }
    sum.merge(other);
    wide += sum.is_wide();
    const auto bits = rounded_quotient<fp64>(sum.integer(), 1, 1, Sum::lowest);
    EXPECT_EQ(bits == Format<fp64>::sign_bit ? 0 : bits, expected.result(format_info<fp64>()).bits);
  }
  EXPECT_GT(wide, 100);
  EXPECT_LT(wide, 1900);
}

TEST(ACompactSum, HoldsTheSumOfAsManyOfTheLargestNumbersAsThereCanBe) {
  using Sum = CompactSumOf<fp32, 2>;
  const double largest = std::numeric_limits<fp32>::max(), square = largest * largest;
  Sum sum;
  sum.add(square);
  Exact expected;
  expected.add(square);
  for (int i = 0; i < 63; ++i) {  // doubles the sum; the exact state is beyond fp64, hence infinite, in both
    sum.merge(Sum{sum});
    expected.merge(Exact{expected});
  }
  EXPECT_FALSE(sum.integer().is_negative());
  sum.add(-square);
  Exact one;
  one.add(-square);
  expected.merge(one);
  EXPECT_EQ(rounded_quotient<fp64>(sum.integer(), 1, 1, Sum::lowest),
            expected.result(format_info<fp64>()).bits);
}

/// The exact variance from products of numbers of any length.
Number variance_by_products(const ExactTerms& terms, const ExactTerms& squares, std::uint64_t n,
                            std::uint64_t ddof, const FormatInfo& format) {
  if (n <= ddof) return {&format, format.canonical_nan};
  const Dyadic total = terms.value();
  return (squares.value() * Dyadic{n} - total * total).rounded_quotient(format, Dyadic{n} * Dyadic{n - ddof});
}

/// Expects mean and variance of x in every format, by words and by integers.
template <class T> void expect_moments(const std::vector<T>& x, std::uint64_t ddof, int& by_words) {
  using State = CompactExact<T, ExactlySummed::elements_and_squares>;
  State state;
  ExactTerms terms, squares;
  for (const T element : x) {
    const auto wide = convert<double>(element);
    state.terms.add(wide);
    if (std::fabs(wide) > 0x1p-450) {
      state.squares.add(wide * wide);
      state.squares.add(std::fma(wide, wide, -wide * wide));
    } else {  // doubles may not hold the square
      const Decomposed of = decompose<T>(to_bits(element));
      state.squares.add_to_integer(false, Wide{of.significand} * of.significand, 2 * of.exponent);
    }
    state.flags |= seen_flags(element);
    terms.add(Term::element, element, element);
    squares.add(Term::square, element, element);
  }
  const ExactResult of{x.size(), true, ddof};
  Formats::for_each([&]<class F>() {
    const Number mean = exact_moments(terms, squares, x.size(), ddof, format_info<F>())[0],
                 variance = variance_by_products(terms, squares, x.size(), ddof, format_info<F>());
    EXPECT_EQ(of.bits<F>(state.flags, state.quotient(of)), mean.bits);
    EXPECT_EQ(of.variance_bits<F>(state.flags, state.variance_quotient(of)), variance.bits);
    if (state.is_wide()) return;
    F result;
    if (state.words().round_sum(of, result)) {
      EXPECT_EQ(to_bits(result), mean.bits);
    }
    if (!state.words().round_variance(of, result)) return;
    EXPECT_EQ(to_bits(result), variance.bits);
    ++by_words;
  });
}

TEST(ExactMoments, HaveTheVarianceOfTheirProductsForElementsOfAnyExponents) {
  std::mt19937_64 generator{5};
  for (int i = 0; i < 2000; ++i) {
    // Numbers of fp64 of nearly all exponents, the largest or the smallest of them.
    const int binades = i % 3 == 0 ? 2040 : 60, middle = i % 3 == 0 ? 0 : i % 3 == 1 ? 990 : -1040;
    ExactTerms terms, squares;
    const std::size_t n = 1 + generator() % 30;
    for (double x : numbers<double>(generator, n, binades)) {
      x = std::ldexp(x, middle);
      terms.add(Term::element, x, x);
      squares.add(Term::square, x, x);
    }
    const std::uint64_t ddof = generator() % 3;
    Formats::for_each([&]<class F>() {
      const FormatInfo& format = format_info<F>();
      EXPECT_EQ(exact_moments(terms, squares, n, ddof, format)[1].bits,
                variance_by_products(terms, squares, n, ddof, format).bits);
    });
  }
}

template <class T> class CompactMoments : public ::testing::Test {};
using AllFormats = ::testing::Types<fp16, bf16, fp32, fp64>;
TYPED_TEST_SUITE(CompactMoments, AllFormats);

TYPED_TEST(CompactMoments, AreRoundedOnce) {
  std::mt19937_64 generator{3};
  int by_words = 0;
  for (int i = 0; i < 1500; ++i) {
    auto x = numbers<TypeParam>(generator, 1 + generator() % 40, static_cast<int>(generator() % 30));
    if (i % 3 == 0)
      for (TypeParam& element : x)
        element = convert<TypeParam>(static_cast<double>(generator() % 7));  // ties
    expect_moments(x, generator() % 3, by_words);
  }
  EXPECT_GT(by_words, 1000);
}

TYPED_TEST(CompactMoments, OfSpecialElementsAreThoseOfTheExactState) {
  using T = TypeParam;
  const T infinity = from_bits<T>(Format<T>::infinity), nan = from_bits<T>(Format<T>::canonical_nan),
          minus_zero = from_bits<T>(Format<T>::sign_bit), one = convert<T>(1.0),
          smallest = from_bits<T>(BitsOf<T>{1});
  int by_words = 0;
  for (const std::vector<T>& x : {std::vector<T>{infinity, one},
                                  {nan},
                                  {minus_zero, minus_zero},
                                  {minus_zero, convert<T>(0.0)},
                                  {one, one, one},
                                  {smallest},
                                  {smallest, minus_zero, smallest}})
    for (const std::uint64_t ddof : {0, 1, 2}) {
      if (std::ranges::any_of(
              x, [](T e) { return (to_bits(e) & Format<T>::infinity) == Format<T>::infinity; })) {
        CompactExact<T, ExactlySummed::elements_and_squares> state;
        for (const T element : x) state.flags |= seen_flags(element);
        const ExactResult of{x.size(), true, ddof};
        EXPECT_EQ(of.variance_bits<T>(state.flags, state.variance_quotient(of)), Format<T>::canonical_nan);
      } else {
        expect_moments(x, ddof, by_words);
      }
    }
}

// Many variances of integers are ties, or 0.
TYPED_TEST(CompactMoments, OfEqualElementsAndOfFewBitsNeedNoIntegers) {
  using T = TypeParam;
  std::mt19937_64 generator{8};
  int by_words = 0;
  constexpr int repetitions = 400, formats = 4;
  for (int i = 0; i < repetitions; ++i) {
    std::vector<T> x(1 + generator() % 300, numbers<T>(generator, 1, 30)[0]);
    if (i % 2 == 0)
      for (T& element : x) element = convert<T>(static_cast<double>(generator() % 1000) - 499.5);
    expect_moments(x, generator() % 3, by_words);
  }
  EXPECT_EQ(by_words, repetitions * formats);
}

// All but the last bits of the elements are equal: their variance is not 0.
TYPED_TEST(CompactMoments, OfNearlyEqualElementsAreRoundedOnce) {
  using T = TypeParam;
  std::mt19937_64 generator{9};
  int by_words = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<T> x(2 + generator() % 300, numbers<T>(generator, 1, 30)[0]);
    x[generator() % x.size()] = from_bits<T>(BitsOf<T>(to_bits(x[0]) ^ 1));
    expect_moments(x, generator() % 2, by_words);
  }
}

template <class T> class WordsOfProducts : public ::testing::Test {};
using LongFormats = ::testing::Types<fp32, fp64>;
TYPED_TEST_SUITE(WordsOfProducts, LongFormats);

TYPED_TEST(WordsOfProducts, AreRoundedOnce) {
  using T = TypeParam;
  using State = CompactExact<T, ExactlySummed::products>;
  std::mt19937_64 generator{4};
  int by_words = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t n = 1 + generator() % 30;
    const int binades = static_cast<int>(generator() % 120);
    auto x = numbers<T>(generator, n, binades), y = numbers<T>(generator, n, binades);
    if (i % 2 == 0)  // sums of which the leading words cancel
      for (std::size_t k = 1; k < n; k += 2) x[k] = -x[k - 1], y[k] = generator() % 8 == 0 ? y[k] : y[k - 1];
    State state;
    ExactTerms expected;
    for (std::size_t k = 0; k < n; ++k) {
      const double a = x[k], b = y[k];
      state.terms.add(a * b);
      state.terms.add(std::fma(a, b, -a * b));
      state.flags |= SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
      expected.add(Term::product, x[k], y[k]);
    }
    for (const bool mean : {false, true}) {
      const ExactResult of{n, mean, 0};
      Formats::for_each([&]<class F>() {
        const Number result = expected.quotient(format_info<F>(), mean ? n : 1);
        EXPECT_EQ(of.bits<F>(state.flags, state.quotient(of)), result.bits);
        F found;
        if (!state.is_wide() && state.words().round_sum(of, found)) {
          EXPECT_EQ(to_bits(found), result.bits);
          ++by_words;
        }
      });
    }
  }
  EXPECT_GT(by_words, 10000);
}

template <class T> class LeadingBitsOfSums : public ::testing::Test {};
TYPED_TEST_SUITE(LeadingBitsOfSums, LongFormats);

/// Elements of any bit pattern that is a number; with `cancel`, every other one is nearly the previous one's
/// negative.
template <class T> std::vector<T> any_numbers(std::mt19937_64& generator, std::size_t n, bool cancel) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    do x[i] = from_bits<T>(static_cast<BitsOf<T>>(generator()));
    while (!std::isfinite(convert<double>(x[i])));
    if (cancel && i % 2 == 1)
      x[i] =
          from_bits<T>(static_cast<BitsOf<T>>((to_bits(x[i - 1]) ^ Format<T>::sign_bit) ^ (generator() % 2)));
  }
  return x;
}
template <ExactlySummed what, class T>
LeadingExact<what> leading_sums(const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<IntegerTerm> terms;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Decomposed a = decompose<T>(to_bits(x[i])), b = decompose<T>(to_bits(y[i]));
    terms.push_back(what == ExactlySummed::products
                        ? IntegerTerm{a.negative != b.negative, Wide{a.significand} * b.significand,
                                      a.exponent + b.exponent}
                        : IntegerTerm{a.negative, a.significand, a.exponent});
  }
  LeadingExact<what> sums;
  sums.flags = SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
  int top = IntegerTerm{}.top();
  for (const IntegerTerm& term : terms) top = std::max(top, term.top());
  sums.place(top, ceil_log2(terms.size()));
  for (const IntegerTerm& term : terms) sums.add(term);
  return sums;
}

// Where both bounds round to the same number, that is the result, as for nearly all sums that do not cancel.
TYPED_TEST(LeadingBitsOfSums, BoundTheResult) {
  using T = TypeParam;
  std::mt19937_64 generator{12};
  int sure = 0, unsure = 0, unsure_of_cancelling = 0;
  bool cancels = false;
  const auto check = [&]<class F>(BitsOf<F> low, BitsOf<F> high, const Number& expected) {
    if (low == high) {
      EXPECT_EQ(low, expected.bits);
    }
    ++(low == high ? sure : cancels ? unsure_of_cancelling : unsure);
  };
  for (int i = 0; i < 3000; ++i) {
    const std::size_t n = 1 + generator() % 40;
    cancels = i % 4 == 0;
    const std::uint64_t ddof = generator() % 3;
    const auto x = any_numbers<T>(generator, n, cancels),
               y = cancels ? x : any_numbers<T>(generator, n, false);
    ExactTerms terms, squares, products;
    for (std::size_t k = 0; k < n; ++k) {
      terms.add(Term::element, x[k], x[k]);
      squares.add(Term::square, x[k], x[k]);
      products.add(Term::product, x[k], y[k]);
    }
    const auto of_elements = leading_sums<ExactlySummed::elements_and_squares>(x, x);
    const auto of_products = leading_sums<ExactlySummed::products>(x, y);
    for (const bool mean : {false, true}) {
      const ExactResult of{n, mean, ddof};
      Formats::for_each([&]<class F>() {
        const FormatInfo& format = format_info<F>();
        const auto both = [&](const auto& sums, const Number& expected) {
          check.template operator()<F>(of.bits<F>(sums.flags, sums.quotient(of, -1)),
                                       of.bits<F>(sums.flags, sums.quotient(of, 1)), expected);
        };
        both(of_elements, terms.quotient(format, mean ? n : 1));
        both(of_products, products.quotient(format, mean ? n : 1));
        check.template operator()<F>(
            of.variance_bits<F>(of_elements.flags, of_elements.variance_quotient(of, -1)),
            of.variance_bits<F>(of_elements.flags, of_elements.variance_quotient(of, 1)),
            exact_moments(terms, squares, n, ddof, format)[1]);
      });
    }
  }
  EXPECT_GT(sure, 10000 * unsure);
  EXPECT_GT(unsure_of_cancelling, 100);
}

// Without an element that was cut off, the sum and the variance would be ties.
TYPED_TEST(LeadingBitsOfSums, DoNotDecideWhatAnElementBelowThemDecides) {
  using T = TypeParam;
  const double tie = Format<T>::unit_roundoff, a = sizeof(T) == 8 ? 0x1p27 - 1 : 4097;  // a² is a tie
  for (const double tiny : {0x1p-140, -0x1p-140}) {
    const std::vector<T> of_sum = {1, static_cast<T>(tie), static_cast<T>(tiny)},
                         of_variance = {static_cast<T>(a), static_cast<T>(tiny)};
    const auto sums = leading_sums<ExactlySummed::elements_and_squares>(of_sum, of_sum),
               moments = leading_sums<ExactlySummed::elements_and_squares>(of_variance, of_variance);
    const ExactResult sum{3, false, 0}, variance{2, true, 1};
    EXPECT_NE(sum.bits<T>(sums.flags, sums.quotient(sum, -1)),
              sum.bits<T>(sums.flags, sums.quotient(sum, 1)));
    EXPECT_NE(variance.variance_bits<T>(moments.flags, moments.variance_quotient(variance, -1)),
              variance.variance_bits<T>(moments.flags, moments.variance_quotient(variance, 1)));
  }
}

TEST(DistilledWords, HaveTheSameSumAndNoBitTwice) {
  std::mt19937_64 generator{10};
  int distilled = 0;
  for (int i = 0; i < 2000; ++i) {
    double word[5];
    ExactTerms before, after;
    const auto drawn = numbers<fp64>(generator, 5, static_cast<int>(generator() % 400));
    std::ranges::copy(drawn, word);
    if (i % 4 == 0) word[1] = -word[0];
    for (const double w : word) before.sum.add(w);
    if (!distill(word)) continue;
    ++distilled;
    for (const double w : word) after.sum.add(w);
    EXPECT_EQ(before.digits(), after.digits());
    for (int w = 0; w < 4; ++w) EXPECT_EQ(word[w] + word[w + 1], word[w]);
  }
  EXPECT_GT(distilled, 1500);
}

// A sum that is just above a tie only because of a bit far below it.
TEST(TwoWords, AreRoundedWithAStickyBit) {
  for (const double below : {0x1p-60, -0x1p-60, 0.0}) {
    const double tie = 1 + 0x1p-24;
    EXPECT_EQ(rounded<fp32>(tie, below), below > 0 ? 1 + 0x1p-23f : 1.0f);
    EXPECT_EQ(rounded<fp64>(1 + 0x1p-52, below * 0x1p-40), 1 + 0x1p-52);
  }
  fp32 result = 0;
  EXPECT_FALSE(round_if_sure<fp32>(1 + 0x1p-24, 0, 0x1p-80, result));
  EXPECT_TRUE(round_if_sure<fp32>(1 + 0x1p-25, 0, 0x1p-80, result));
  EXPECT_EQ(result, 1.0f);
}

// A tie, which words below the first two decide.
TEST(WordsOfASum, AreRoundedWithAllOfThem) {
  constexpr std::uint32_t plain = SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
  for (const double n : {1.0, 3.0})
    for (const double below : {0x1p-110, -0x1p-110, 0x1p-160, -0x1p-160}) {
      const ExactResult of{static_cast<std::uint64_t>(n), n > 1, 0};
      const ExactWords<5> of_double{{n, n * 0x1p-53, 0, below, 0}, {}, plain},
          of_float{{n, n * 0x1p-24, below, 0, 0}, {}, plain};
      double wide = 0;
      float narrow = 0;
      EXPECT_TRUE(of_double.round_sum(of, wide));
      EXPECT_EQ(wide, below > 0 ? 1 + 0x1p-52 : 1.0) << n << " " << below;
      EXPECT_TRUE(of_float.round_sum(of, narrow));
      EXPECT_EQ(narrow, below > 0 ? 1 + 0x1p-23f : 1.0f) << n << " " << below;
    }
}

// The second word of the quotient underflows.
TEST(WordsOfAMean, AreNotRoundedIfTheirQuotientMayLoseBits) {
  constexpr std::uint32_t plain = SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
  for (const std::uint64_t n : {1024, 3072})
    for (const double small : {0x1p-1074, 0x1p-1070, -0x1p-1074}) {
      const ExactWords<3> words{{static_cast<double>(n), small, 0}, {}, plain};
      double mean = 0;
      if (words.round_sum(ExactResult{n, true, 0}, mean)) {
        EXPECT_EQ(mean, 1);
      }
    }
}

// What is left out of the words' arithmetic brings both variances below a tie whose even neighbour is above.
TEST(WordsOfAVariance, DoNotRoundATieThatTheyCannotTell) {
  constexpr std::uint32_t plain = SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
  const ExactWords<3, 5> of_double{{0, 0, 0}, {1 + 0x1p-52, 0x1p-53, 0, -0x1p-170, 0}, plain};
  const ExactWords<2, 4> of_float{{1, 0x1p-55}, {1 + 0x1p-24 + 0x1p-25, 0x1p-55, 0, 0}, plain};
  double wide = 0;
  float narrow = 0;
  if (of_double.round_variance(ExactResult{1, true, 0}, wide)) {
    EXPECT_EQ(wide, 1 + 0x1p-52);
  }
  if (of_float.round_variance(ExactResult{2, true, 1}, narrow)) {
    EXPECT_EQ(narrow, 0.5f + 0x1p-24f);
  }
}

TEST(ACompactSum, HoldsASumBeyondTheLargestDouble) {
  using Sum = CompactSumOf<fp64, 1, 3>;
  const double largest = std::numeric_limits<double>::max();
  Sum sum;
  for (const double x : {largest, 0x1p969, 0x1p969, -0x1p970}) sum.add(x);
  EXPECT_EQ(rounded_quotient<fp64>(sum.integer(), 1, 1, Sum::lowest), to_bits(largest));
}

TEST(AQuotientOfWords, IsRoundedOnceOrRefused) {
  std::mt19937_64 generator{5};
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto units = static_cast<double>(generator() >> 40),
               n = static_cast<double>(1 + generator() % 1000);
    Exact sum;
    sum.add(units);
    ExactTerms terms;
    terms.sum = sum;
    fp32 result = 0;
    if (!round_quotient<fp32>(units, 0, n, result)) {
      ++refused;
      continue;
    }
    EXPECT_EQ(to_bits(result), terms.quotient(format_info<fp32>(), static_cast<std::uint64_t>(n)).bits);
  }
  EXPECT_LT(refused, 200);
}

}  // namespace
}  // namespace samesum
