/// Arguments are checked before anything is read or written.
#include "samesum/call/validation.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <thread>

#include "operation/reduction_support.hpp"
#include "operation/user_reductions.hpp"
#include "samesum/operation/distinct.hpp"
#include "samesum/operation/softmax.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

constexpr std::size_t huge = std::size_t{1} << 63, minus_three = static_cast<std::size_t>(-3);

// --- layouts --------------------------------------------------------------------------------------------

TEST(ALayout, WhoseExtentOverflowsIsRefused) {
  const std::vector<float> six(6, 1.0f);
  std::vector<float> out(3);
  const auto refused = [&](const Layout& layout, std::size_t results) {
    return refusal_by([&] { reduce(find("sum/exact/fp32"), six, layout, std::span{out}.first(results)); });
  };
  EXPECT_THAT(refused(Layout::rows(2, 3, minus_three), 2), HasSubstr("layout reaches beyond 2^63 elements"));
  EXPECT_THAT(refused(Layout::rows(3, 2, huge), 3), HasSubstr("layout reaches beyond 2^63 elements"));
  EXPECT_THAT(refused({1, 3, 1, 0, huge}, 1), HasSubstr("layout reaches beyond 2^63 elements"));
  EXPECT_THAT(refused({2, huge - 1, 1, 0, 1}, 2), HasSubstr("layout reads 2 x"));
  EXPECT_THAT(refused({huge, 1, 2, 0, 2}, 0), HasSubstr("results; fewer than 2^63"));
}

TEST(ALayout, WhoseNumberOfResultsOverflowsIsRefused) {
  const std::vector<float> six(6, 1.0f);
  std::vector<float> out(4);
  const Method& moments = find("moments/tree/fp32");
  EXPECT_THAT(refusal_by([&] {
                reduce(moments, six, {huge, 1, 1, 0, 1}, std::span{out}.first(0));
              }),
              HasSubstr("results; fewer than 2^63"));
  EXPECT_THAT(refusal_by([&] {
                reduce(moments, six, {huge + 1, 1, 2, 0, 2}, std::span{out});
              }),
              HasSubstr("results; fewer than 2^63"));
  EXPECT_THAT(refusal_by([&] {
                reduce(moments, six, {huge / 2, 1, 1, 0, 1}, std::span{out}.first(0));
              }),
              HasSubstr("out has room for 0 results"));
  EXPECT_THAT(refusal_by([&] { reduce(moments, six, Layout::rows(2, 3), std::span{out}.first(3)); }),
              HasSubstr("out has room for 3 numbers; it needs 2 for each result"));
}

TEST(Segments, WithoutOffsetsAreRefused) {
  EXPECT_THAT(refusal_by([] { Layout::segments(nullptr, 2); }), HasSubstr("offsets is null"));
}

TEST(Segments, AreCountedBeforeAnyOffsetIsRead) {
  const std::vector<float> x(6, 1.0f);
  std::vector<float> out(2);
  const std::uint64_t offsets[] = {0, 3, 6};
  for (const std::size_t count : {std::size_t{1}, std::size_t{3}, huge, huge - 1, ~std::size_t{0}})
    EXPECT_NE(refusal_by([&] {
                reduce(find("sum/tree/plain/fp32"), x, Layout::segments(offsets, count), std::span{out});
              }),
              "")
        << count;
}

TEST(Segments, IgnoreStridesInEveryBackend) {
  const std::vector<float> x{1, 2, 4, 8, 16, 32};
  const std::uint64_t offsets[] = {0, 2, 6};
  for (const char* name : {"sum/tree/plain/fp32@reference", "sum/exact/fp32@reference", "sum/exact/fp32@cpu",
                           "sum/tree/plain/fp32@cpu", "norm/tree/fp32@cpu"}) {
    std::vector<float> plain(2), strange(2);
    reduce(find(name), x, Layout::segments(offsets, 2), std::span{plain});
    reduce(find(name), x, Layout{2, huge + 5, 1, huge, 7, offsets}, std::span{strange});
    EXPECT_EQ(plain, strange) << name;
  }
}

/// Returns a number near a power of two, where products overflow.
std::size_t near_a_power(std::mt19937_64& random) {
  const std::size_t power = random() % 4 ? std::size_t{1} << random() % 5 : std::size_t{1} << random() % 64;
  return power + random() % 5 - 2;
}

/// Whether the layout fits n elements and the given number of results, computed with 128 bits.
bool fits(const Layout& l, std::size_t n, std::size_t results) {
  using Wide = unsigned __int128;
  if (Wide{l.outer} * l.inner != results) return false;
  if (results == 0 || l.n == 0) return true;
  if (l.n > 1 && l.stride != 0 && l.stride < l.inner) return false;
  // Below 2^128: no factor exceeds 2^64.
  const Wide last = Wide{l.outer - 1} * l.outer_stride, within = Wide{l.n - 1} * l.stride;
  return last <= n && within <= n && last + within + l.inner <= n;
}

TEST(LayoutsNearEveryPowerOfTwo, AreReducedIfTheyFitAndRefusedOtherwise) {
  std::mt19937_64 random{7};
  int reduced = 0, refused = 0;
  const std::vector<const Method*> all = reductions_of("cpu");
  for (int round = 0; round < 40'000; ++round) {
    Layout layout{near_a_power(random), near_a_power(random), near_a_power(random),
                  near_a_power(random), near_a_power(random), nullptr};
    if (random() % 2) layout.inner = 1;
    if (random() % 2) layout.stride = layout.inner;
    if (layout.stride == 0 && layout.n > 5000) continue;  // it may be valid, and take years
    const std::size_t n = random() % 64, results = random() % 2 ? layout.results() % 64 : random() % 8;
    // On the heap and of exactly this size, so that the address sanitizer detects an access outside.
    const std::vector<float> x(n, 1.0f);
    std::vector<float> out(results), both(2 * results);
    std::vector<std::int64_t> indices(results);
    const Method* r = all[random() % all.size()];
    while (r->format->index != Formats::index_of<fp32>() || !r->accepts(format_info<fp32>()))
      r = all[random() % all.size()];
    const Results to = r->returns_index  ? Results{std::span{indices}}
                       : r->results == 2 ? Results{std::span{both}}
                                         : Results{std::span{out}};
    const std::string message =
        refusal_by([&] { r->inputs == 2 ? reduce(*r, x, x, layout, to) : reduce(*r, x, layout, to); });
    ++(message.empty() ? reduced : refused);
    ASSERT_EQ(message.empty(), fits(layout, n, results))
        << message << ": " << layout.outer << " " << layout.n << " " << layout.inner << " "
        << layout.outer_stride << " " << layout.stride << " of " << n << " elements, " << results
        << " results";
  }
  EXPECT_GT(reduced, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(LayoutsNearEveryPowerOfTwo, OfACustomReductionAreRefusedIfTheyOverflow) {
  std::mt19937_64 random{8};
  int reduced = 0, refused = 0;
  const std::vector<float> x(4096, 1.0f);
  for (int round = 0; round < 20'000; ++round) {
    const Layout layout{near_a_power(random), near_a_power(random), random() % 2 ? 1 : near_a_power(random),
                        near_a_power(random), near_a_power(random), nullptr};
    if (layout.stride == 0 && layout.n > 5000) continue;
    using Wide = unsigned __int128;
    const Wide results = Wide{layout.outer} * layout.inner, most = PTRDIFF_MAX / sizeof(float);
    const Wide reach = results == 0 || layout.n == 0 ? 0
                                                     : Wide{layout.outer - 1} * layout.outer_stride +
                                                           Wide{layout.n - 1} * layout.stride;
    const bool possible = results <= 64 && fits(layout, x.size(), layout.results());
    // The call does not state the number of elements, so only impossible layouts are refused.
    if (!possible && reach <= most && results <= most) continue;
    std::vector<float> out(64);
    const std::string message = refusal_by([&] { reduce(RoundingSum{}, x.data(), layout, out.data()); });
    ASSERT_TRUE(possible || !message.empty()) << "an impossible layout was accepted";
    ++(message.empty() ? reduced : refused);
  }
  EXPECT_GT(reduced, 100);
  EXPECT_GT(refused, 100);
  EXPECT_THAT(refusal_by([&] {
                reduce(RoundingSum{}, static_cast<const float*>(nullptr), Layout::vector(3), nullptr);
              }),
              HasSubstr("x is null"));
  EXPECT_THAT(refusal_by([&] { reduce(RoundingSum{}, x.data(), Layout::vector(3), nullptr); }),
              HasSubstr("out is null"));
  const std::uint64_t falling[] = {0, 5, 3};
  std::vector<float> out(2);
  EXPECT_THAT(refusal_by([&] { reduce(RoundingSum{}, x.data(), Layout::segments(falling, 2), out.data()); }),
              HasSubstr("decreases from 5 to 3"));
}

TEST(RowsNearEveryPowerOfTwo, AreSoftmaxedIfTheyFitAndRefusedOtherwise) {
  std::mt19937_64 random{9};
  int computed = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t rows = near_a_power(random), columns = near_a_power(random),
                      in_stride = random() % 2 ? columns : near_a_power(random),
                      out_stride = random() % 2 ? columns : near_a_power(random),
                      really = out_stride == 0 ? in_stride : out_stride;
    using Wide = unsigned __int128;
    const auto elements = [&](std::size_t stride) {
      return rows == 0 || columns == 0 ? Wide{0} : Wide{rows - 1} * stride + columns;
    };
    const bool nothing = rows == 0 || columns == 0;
    const bool small = std::max(elements(in_stride), elements(really)) <= 4096;
    const std::vector<float> in(small ? static_cast<std::size_t>(elements(in_stride)) : 1);
    std::vector<float> out(small ? static_cast<std::size_t>(elements(really)) : 1);
    const std::string message = refusal_by([&] {
      reduce(find("softmax/tree/plain/fp32"), in, Layout::rows(rows, columns, in_stride),
             Results{std::span{out}, out_stride});
    });
    const bool fits =
        nothing ? rows < huge : small && (rows == 1 || (in_stride >= columns && really >= columns));
    ASSERT_EQ(message.empty(), fits) << message << ": " << rows << " rows of " << columns << ", " << in_stride
                                     << " and " << out_stride << " apart";
    ++(fits ? computed : refused);
  }
  EXPECT_GT(computed, 1000);
  EXPECT_GT(refused, 1000);
}

// --- arrays ---------------------------------------------------------------------------------------------

TEST(Elements, ThatCannotBeInMemoryAreRefusedByEveryFunction) {
  const float number[2] = {1, 2};
  const FormatInfo& single = format_info<fp32>();
  FormatInfo strange = single;
  strange.index = 17;
  struct Wrong {
    Values x;
    const char* why;
  };
  const std::byte* const between = reinterpret_cast<const std::byte*>(number) + 1;
  for (const Wrong& wrong : {Wrong{{single, nullptr, 3}, "x is null but has 3 elements"},
                             Wrong{{single, number, huge}, "more than memory can hold"},
                             Wrong{{single, number, huge / 4}, "more than memory can hold"},
                             Wrong{{single, number, ~std::size_t{0}}, "more than memory can hold"},
                             Wrong{{single, between, 1}, "x is not aligned to its elements of 4 bytes"},
                             Wrong{{strange, number, 2}, "x has an unknown format"}}) {
    const Values& x = wrong.x;
    EXPECT_THAT(refusal_by([&] { find("tree/plain/fp32")(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { find("exact/fp32@reference")(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { find("tree/plain/fp32").bind(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { find("tree/plain/fp32").place(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { sum<"tree/plain/fp32">(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { accumulate(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { estimate("tree/plain/fp32", x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { Partial{"tree/kahan/fp32"}.add(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { count_distinct(x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { reduce("sum/tree/plain/fp32", x); }), HasSubstr(wrong.why));
    EXPECT_THAT(refusal_by([&] { reduce("dot/tree/plain/fp32", x, x); }), HasSubstr(wrong.why));
  }
}

TEST(AFormat, ThatIsACopyOfAListedOneIsAccepted) {
  const float x[] = {1, 2, 4};
  const FormatInfo copy = format_info<fp32>();
  EXPECT_EQ(reduce("dot/tree/plain/fp32", Values{copy, x, 3}, Values{format_info<fp32>(), x, 3}).to_double(),
            21);
  EXPECT_EQ(find("tree/plain/fp32").bound(copy, 3, Number{&copy, 0}, 7),
            find("tree/plain/fp32").bound(format_info<fp32>(), 3, Number{&format_info<fp32>(), 0}, 7));
}

TEST(ADotProduct, OfVectorsOfDifferentLengthsIsRefused) {
  const std::vector<float> five(5, 1.0f), seven(7, 1.0f);
  EXPECT_THAT(refusal_by([&] { reduce("dot/tree/plain/fp32", five, seven); }),
              HasSubstr("x has 5 elements and y has 7; pass inputs of equal length"));
  EXPECT_THAT(refusal_by([&] { reduce("dot/exact/fp32", seven, five); }),
              HasSubstr("x has 7 elements and y has 5"));
}

// --- numbers --------------------------------------------------------------------------------------------

TEST(ABound, RefusesNegativeMagnitudesAndNumbersOfAnotherFormat) {
  const Number single = Number::of(1.0f), twice = Number::of(1.0), none{nullptr, 0};
  const FormatInfo& input = format_info<fp32>();
  for (const Method& m : methods()) {
    const Number own{m.result_format(input) ? m.result_format(input) : m.format, 0};
    const std::string what = (m.results == 2 ? "largest" : "magnitudes") + std::string{" is -1"};
    EXPECT_THAT(refusal_by([&] { m.bound(input, 3, {own, own}, -1); }), HasSubstr(what)) << m.name;
    if (m.operation != "sum") continue;
    EXPECT_THAT(refusal_by([&] { m.bound(input, 3, own, -1); }),
                HasSubstr("magnitudes is -1; it must be 0 or more"))
        << m.name;
    EXPECT_THAT(refusal_by([&] { m.bound(input, 3, own, -1, {.probability = 0.5}); }),
                HasSubstr("magnitudes is -1"))
        << m.name;
    EXPECT_EQ(m.bound(input, 3, Number{m.format, m.format->infinity}, NAN), INFINITY) << m.name;
  }
  const Method& m = find("tree/plain/fp32");
  EXPECT_THAT(
      refusal_by([&] { m.bound(input, 3, twice, 1); }),
      HasSubstr("result has format fp64; pass the number that the method returned, which has format fp32"));
  EXPECT_THAT(refusal_by([&] { m.bound(input, 3, none, 1); }), HasSubstr("result has format (unknown)"));
  EXPECT_THAT(refusal_by([&] { m.bound(input, 3, twice, 1, {.probability = 0.5}); }),
              HasSubstr("result has format fp64"));
  EXPECT_THAT(refusal_by([&] { find("norm/tree/fp32").bound(input, 3, twice); }), HasSubstr("format fp64"));
  const Method& moments = find("moments/tree/fp32");
  EXPECT_THAT(refusal_by([&] { moments_bound(moments, input, 3, twice, single); }),
              HasSubstr("mean has format fp64"));
  EXPECT_THAT(refusal_by([&] { moments_bound(moments, input, 3, single, twice); }),
              HasSubstr("variance has format fp64"));
  EXPECT_THAT(refusal_by([&] { moments_bound(moments, input, 3, single, single, -1); }),
              HasSubstr("ddof is -1; it must be 0 or more"));
  const Method& softmax = find("softmax/tree/plain/fp32");
  EXPECT_THAT(refusal_by([&] { softmax.bound(input, 5, single, -1); }), HasSubstr("magnitudes is -1"));
  EXPECT_THAT(refusal_by([&] { softmax.bound(input, 5, twice, 1); }), HasSubstr("result has format fp64"));
  EXPECT_EQ(softmax.bound(format_info<fp64>(), 5, twice, 1), INFINITY) << "softmax does not accept fp64";
  FormatInfo strange = input;
  strange.index = 17;
  EXPECT_THAT(refusal_by([&] { m.bound(strange, 3, single, 1); }), HasSubstr("input is not a format"));
}

TEST(ABound, OfAnImpossibleResultIsInfinite) {
  const Number minus_five = Number::of(-5.0f), one = Number::of(1.0f);
  const FormatInfo& input = format_info<fp32>();
  for (const char* name :
       {"sum_of_magnitudes/tree/plain/fp32", "squared_norm/tree/kahan/fp32", "norm/tree/fp32"})
    EXPECT_EQ(find(name).bound(input, 10, minus_five), INFINITY) << name;
  EXPECT_EQ(find("softmax/tree/plain/fp32").bound(input, 5, Number::of(-0.5f), 1), INFINITY);
  EXPECT_EQ(moments_bound(find("moments/tree/fp32"), input, 3, one, one, 5).variance, INFINITY);
}

TEST(Ddof, IsReadByMomentsAlone) {
  const std::vector<float> x{1, 2, 4};
  EXPECT_EQ(reduce("sum/tree/plain/fp32", x, {.ddof = -1}).to_double(), 7);
  EXPECT_EQ(reduce("max/fp32", x, {.ddof = NAN}).to_double(), 4);
  std::vector<float> two(2);
  for (const double ddof : {-1.0, -0x1p-1060, static_cast<double>(NAN)})
    EXPECT_THAT(refusal_by([&] {
                  reduce(find("moments/tree/fp32"), x, Layout::vector(3), std::span{two}, {.ddof = ddof});
                }),
                HasSubstr("it must be 0 or more"));
  EXPECT_THAT(refusal_by([&] {
                reduce(find("moments/exact/fp32"), x, Layout::vector(3), std::span{two}, {.ddof = 0.5});
              }),
              HasSubstr("a whole number"));
}

TEST(AnEnumeration, ThatWasCastFromAnotherNumberIsRefused) {
  for (const int wrong : {-1, 5, 9, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    const auto promise = static_cast<Promise>(wrong);
    EXPECT_THAT(refusal_by([&] { choose({.length = 3, .promise = promise, .ulps = 1}); }),
                HasSubstr("promise"))
        << wrong;
    EXPECT_THROW(name_of(promise), std::out_of_range) << wrong;
  }
}

// --- threads --------------------------------------------------------------------------------------------

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, {}));
}

TEST(TheNumberOfThreads, IsLimitedByTheWorkAndToFourPerProcessor) {
  // With the first thread, sanitizers start a thread of their own.
  std::thread{[] {}}.join();
  const std::size_t before = threads_of_this_process();
  const std::vector<float> x(3000, 1.0f);
  std::vector<float> out(3000), y(3000);
  std::vector<std::int64_t> index(3000);
  const int threads = 3000;
  for (const char* name : {"sum/exact/fp32", "dot/exact/fp32", "sum/tree/plain/fp32", "norm/tree/fp32"}) {
    const Method& r = find(name);
    r.inputs == 2 ? reduce(r, x, x, Layout::rows(3000, 1), std::span{out}, {.threads = threads})
                  : reduce(r, x, Layout::rows(3000, 1), std::span{out}, {.threads = threads});
    EXPECT_EQ(out, x) << name;
  }
  reduce(find("argmax/fp32"), x, Layout::axis(1, 1, 3000), std::span{index}, {.threads = threads});
  reduce(RoundingSum{}, x.data(), Layout::rows(3000, 1), out.data(), {.threads = threads});
  reduce(find("softmax/exact/fp32"), x, Layout::rows(3000, 1), std::span{y}, {.threads = threads});
  static_cast<void>(accumulate(x, {.threads = threads}));
  EXPECT_LE(threads_of_this_process(), before) << "3000 elements are the work of one thread";

  // Enough elements for more threads than are allowed; a piece of work has 2^16 elements.
  const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
  const std::vector<float> many(std::max(std::size_t{1} << 23, processors << 19), 1.0f);
  EXPECT_EQ(sum(many, {.threads = threads}), static_cast<float>(many.size()));
  EXPECT_EQ(sum<"tree/plain/fp32">(many, {.threads = threads}), static_cast<float>(many.size()));
  EXPECT_LE(threads_of_this_process(), before + 4 * processors - 1);
}

}  // namespace
}  // namespace samesum
