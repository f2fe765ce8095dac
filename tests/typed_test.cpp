/// Tests of reductions that are typed by their elements, or by a name that the compiler checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "samesum/catalogue/support.hpp"
#include "samesum/samesum.hpp"
#include "support.hpp"
#include "typed_reductions.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

/// Elements that are equal in all formats.
template <class T> std::vector<T> some_elements() {
  std::vector<T> x;
  for (const float element : {3.0f, -4.0f, 12.0f, 1.0f, 0.5f}) x.push_back(convert<T>(element));
  return x;
}

/// The results of a method as bytes.
template <class T> std::string bytes_of_call(const Method& m, const std::vector<T>& x) {
  std::string bytes(static_cast<std::size_t>(m.results) * (m.returns_index ? 8 : m.format->bytes), '\0');
  run({.method = &m,
       .x = x,
       .y = m.inputs == 2 ? Values{x} : Values{},
       .layout = Layout::vector(x.size()),
       .out = {m.result_format(*m.format), bytes.data(), static_cast<std::size_t>(m.results)}});
  return bytes;
}
template <class Result> std::string bytes_of_result(const Result& result) {
  return {reinterpret_cast<const char*>(&result), sizeof result};
}

TEST(AReductionByOperation, HasTheBitsOfTheDefaultMethodAndTheTypeOfItsResults) {
  std::ptrdiff_t reductions = 0;
  Formats::for_each([&]<class T>() {
    for_each_typed_reduction(some_elements<T>(), {}, [&](std::string_view operation, const auto& result) {
      const Method& m = *default_method(operation, format_info<T>());
      EXPECT_EQ(bytes_of_result(result), bytes_of_call(m, some_elements<T>())) << m.name;
      ++reductions;
    });
  });
  const auto operations = std::ranges::count_if(operation_facts, &OperationFacts::reduces);
  EXPECT_EQ(reductions, operations * std::ptrdiff_t{Formats::size}) << "a new operation has no function";
  static_assert(std::is_same_v<decltype(mean(std::vector<fp16>{})), fp16>);
  static_assert(std::is_same_v<decltype(logsumexp(std::vector<bf16>{})), float>);
  static_assert(std::is_same_v<decltype(argmax(std::span<const double>{})), std::int64_t>);
  static_assert(std::is_same_v<decltype(moments(std::array<float, 3>{})), MeanVariance<float>>);
}

TEST(AReductionByOperation, TakesOptionsAndRefusesInvalidOnes) {
  const std::vector<double> x{1, 2, 3, 6};
  EXPECT_EQ(moments(x, {.ddof = 1}), (MeanVariance<double>{3, 14.0 / 3}));
  EXPECT_TRUE(std::isnan(mean(std::vector<double>{})));
  EXPECT_THROW(mean(x, {.threads = -1}), std::invalid_argument);
  EXPECT_THROW(dot(x, std::vector<double>{1}), std::invalid_argument);
}

/// Compares reduce<name> with the same name at run time.
template <Name name> void expect_same_as_at_run_time() {
  const std::vector<float> x = some_elements<float>();
  const Method& m = find(name.view(), {.format = "fp32"});
  if constexpr (Named<name, float>::facts.inputs == 2)
    EXPECT_EQ(bytes_of_result(reduce<name>(x, x)), bytes_of_call(m, x)) << m.name;
  else
    EXPECT_EQ(bytes_of_result(reduce<name>(x)), bytes_of_call(m, x)) << m.name;
}

TEST(AReductionByName, IsThatOfTheSameNameAtRunTime) {
  expect_same_as_at_run_time<"dot/tree/kahan/fp32">();
  expect_same_as_at_run_time<"dot/kahan">();
  expect_same_as_at_run_time<"norm/tree">();
  expect_same_as_at_run_time<"norm/tree/fp64">();
  expect_same_as_at_run_time<"argmax">();
  expect_same_as_at_run_time<"min@reference">();
  expect_same_as_at_run_time<"moments/exact/fp64">();
  expect_same_as_at_run_time<"moments/tree">();
  expect_same_as_at_run_time<"logsumexp/pairwise">();
  expect_same_as_at_run_time<"fixed_point">();
  expect_same_as_at_run_time<"pairwise">();
  const std::vector<float> x = some_elements<float>();
  EXPECT_EQ(reduce<"norm/tree/fp64">(Values{x}), find("norm/tree/fp64")(x).as<double>()) << "any format";
}

TEST(TheNamesThatCompile, AreThoseOfMethodsThatReduceVectors) {
  if (fewer_methods) GTEST_SKIP() << "the build for sanitizers has fewer methods";
  for (const Method& m : methods()) {
    if (m.backend == "cuda" || m.name.find("peer") != m.name.npos) continue;
    const bool reduces = !m.takes_keys && !m.has_result_per_element;
    EXPECT_EQ(format_of_name(m.name, {}) < Formats::size, reduces) << m.name;
  }
  for (const Unsupported& u : unsupported())
    EXPECT_EQ(format_of_name(u.name, {}), Formats::size) << u.name << ": " << u.reason;
}

TEST(AnEstimateOfALayout, IsThatOfEachOfItsVectors) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.1f}, y(x.rbegin(), x.rend());
  const std::uint64_t offsets[] = {0, 5, 5, 12};
  for (const char* name : {"tree/plain", "sum/exact", "norm/tree", "max", "mean/tree/kahan", "fixed_point"})
    for (const Layout& layout :
         {Layout::vector(12), Layout::rows(3, 4), Layout::axis(2, 3, 2), Layout::segments(offsets, 3)}) {
      const std::vector<Estimate> all = estimate(name, x, layout);
      ASSERT_EQ(all.size(), layout.results()) << name;
      for (std::size_t at = 0; at < all.size(); ++at) {
        const std::size_t o = at / layout.inner, i = at % layout.inner;
        std::vector<float> one;
        for (std::size_t k = 0; k < layout.length(o); ++k)
          one.push_back(x[layout.first(o) + k * layout.stride + i]);
        const Estimate expected = estimate(name, one);
        EXPECT_EQ(all[at].value.bits, expected.value.bits) << name;
        EXPECT_EQ(all[at].bound, expected.bound) << name;
        EXPECT_EQ(all[at].magnitudes, expected.magnitudes) << name;
      }
    }
  const std::vector<Estimate> dots = estimate("dot/tree/kahan", x, y, Layout::axis(1, 6, 2));
  ASSERT_EQ(dots.size(), 2u);
  std::vector<float> a, b;
  for (std::size_t k = 1; k < 12; k += 2) a.push_back(x[k]), b.push_back(y[k]);
  EXPECT_EQ(dots[1].value.bits, estimate("dot/tree/kahan", a, b).value.bits);
}

TEST(AnEstimateOfALayout, RefusesInvalidLayoutsAndMethods) {
  const std::vector<float> x(12);
  EXPECT_THAT(refusal_by([&] { estimate("tree", x, Layout::rows(3, 5)); }), HasSubstr("x has 12 elements"));
  EXPECT_THAT(refusal_by([&] { estimate("tree", x, Layout::rows(~std::size_t{0}, 5)); }),
              HasSubstr("layout"));
  EXPECT_THAT(refusal_by([&] { estimate("argmax", x, Layout::rows(3, 4)); }), HasSubstr("index"));
  EXPECT_THAT(refusal_by([&] { estimate("dot/tree/plain", x, Layout::rows(3, 4)); }), HasSubstr("y"));
}

TEST(ABound, ThatIsInfiniteWithoutMagnitudesIsRefusedWithTheRemedy) {
  const FormatInfo& fp32 = format_info<float>();
  const Number one = Number::of(1.0f);
  const auto refusal = [&](const char* name, const ResultNumbers& result) {
    return refusal_by([&] { find(name).bound(fp32, 1000, result); });
  };
  EXPECT_THAT(refusal("tree/plain/fp32", one),
              HasSubstr("magnitudes is missing, without which the bound is infinite; pass the sum of |x|"));
  EXPECT_THAT(refusal("mean/tree/kahan/fp32", one), HasSubstr("call estimate"));
  EXPECT_THAT(refusal("dot/tree/plain/fp32", one), HasSubstr("the sum of |xy|"));
  EXPECT_THAT(refusal("log_softmax/tree/plain/fp32", Number::of(-7.0f)),
              HasSubstr("largest minus the smallest"));
  for (const char* name : {"exact/fp32", "norm/tree/fp32", "max/fp32", "fixed_point/fp32"})
    EXPECT_EQ(refusal(name, one), "") << name;
  EXPECT_EQ(refusal("tree/plain/fp32", Number{&fp32, Format<float>::infinity}), "") << "numbers never throw";
  EXPECT_TRUE(std::isinf(find("tree/plain/fp32").bound(fp32, 1000, one, INFINITY)))
      << "given, though infinite";
}

}  // namespace
}  // namespace samesum
