#include "harness/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/truth.hpp"
#include "samesum/samesum.hpp"
#include "support.hpp"

namespace samesum::harness {
namespace {

constexpr float overflow = std::numeric_limits<float>::infinity();
using Floats = std::vector<float>;

Verification verified(const std::string& method, const Floats& x, Layout layout, Floats results,
                      const Floats& y = {}) {
  return verify({.method = &find(method),
                 .x = Values{x},
                 .y = y.empty() ? Values{} : Values{y},
                 .layout = layout,
                 .out = Results{std::span{results}}});
}

/// Numbers in (0.5, 1.5).
Floats made(std::size_t n, std::uint64_t seed) {
  std::vector<double> x = testing_support::uniform(n, seed);
  for (double& e : x) e = 1 + e / 2;
  return {x.begin(), x.end()};
}

TEST(Verification, AcceptsRoundedTruthsAndRejectsOtherResults) {
  const Floats x = made(1000, 1), y = made(1000, 2);
  for (const char* name :
       {"sum/exact/fp32", "dot/exact/fp32", "mean/exact/fp32", "norm/tree/fp32", "max/fp32"}) {
    const Method& m = find(name);
    const Floats second = m.inputs == 2 ? y : Floats{};
    const Truth truth =
        Truth::of(m.operation, Values{x}, m.inputs == 2 ? std::optional{Values{y}} : std::nullopt);
    const auto right = static_cast<float>(truth.rounded(format_info<fp32>()).to_double());
    const auto found = [&](float result) {
      return verified(name, x, Layout::vector(1000), {result}, second).verified();
    };
    EXPECT_EQ(found(right), true) << name;
    for (const float wrong : {0.0f, right * 1.001f, -right, overflow, std::nanf("")})
      EXPECT_EQ(found(wrong), false) << name << ": " << wrong;
  }
}

TEST(Verification, ComparesEveryResultOfTheLayout) {
  Floats x(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Floats rows{0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9 + 10 + 11, 54, 70, 86}, columns{12, 15, 18, 21};
  const auto check = [&](Layout layout, const Floats& right, const std::string& name = "sum/exact/fp32") {
    EXPECT_EQ(verified(name, x, layout, right).wrong, "");
    for (std::size_t i = 0; i < right.size(); ++i) {
      Floats wrong = right;
      wrong[i] = std::nanf("");
      EXPECT_EQ(verified(name, x, layout, wrong).verified(), false) << layout.inner << ": " << i;
    }
  };
  check(Layout::rows(6, 4), rows);
  check(Layout::axis(1, 3, 4), columns);
  check(Layout::axis(2, 3, 4), {12, 15, 18, 21, 48, 51, 54, 57});
  check(Layout::rows(2, 3), {0, 1, 3, 3, 7, 12}, "cumsum/exact/fp32");
  check(Layout::rows(2, 2), {0.5, 0.25, 2.5, 0.25}, "moments/tree/fp32");
  check(Layout::rows(2, 2),
        {1 / (1 + std::exp(1.0f)), 1 / (1 + std::exp(-1.0f)), 1 / (1 + std::exp(1.0f)),
         1 / (1 + std::exp(-1.0f))},
        "softmax/tree/plain/fp32");
  for (float& e : x) ++e;
  check(Layout::rows(2, 3), {6, 120}, "prod/tree/fp32");
}

TEST(Verification, ComparesTheResultsOfAllKeys) {
  const Floats x{1, 2, 4, 8, 16, 32};
  const std::vector<std::uint32_t> keys{2, 0, 2};
  const auto found = [&](Floats results) {
    return verify({.method = &find("scatter_add/exact/fp32"),
                   .x = Values{x},
                   .keys = keys,
                   .layout = Layout::axis(1, 3, 2),
                   .out = Results{std::span{results}}});
  };
  EXPECT_EQ(found({4, 8, 0, 0, 17, 34}).verified(), true);
  EXPECT_EQ(found({4, 8, 0, 0, 17, 36}).wrong.substr(0, 37), "result 5 is 36 instead of 34, with a ");
  EXPECT_EQ(found({4, 8, 0, 1, 17, 34}).verified(), false);
}

TEST(Verification, IsEmptyIfNoResultCouldBeToldFromZero) {
  const std::string sum = "sum/exact/fp32";
  EXPECT_EQ(verified(sum, {1, -1, 1e-9f}, Layout::vector(3), {0}).verified(), std::nullopt) << "it cancels";
  EXPECT_EQ(verified(sum, {3e38f, 3e38f, -3e38f}, Layout::vector(3), {overflow}).verified(), std::nullopt)
      << "in this order it overflows";
  EXPECT_EQ(verified(sum, {1, std::nanf("")}, Layout::vector(2), {1}).verified(), std::nullopt);
  EXPECT_EQ(verified("prod/tree/fp32", {1e-30f, 1e-30f, 1e30f}, Layout::vector(3), {0}).verified(),
            std::nullopt)
      << "in this order it underflows";
  for (const auto& [method, result] : {std::pair{"sum/exact/fp32", 0.0f},
                                       {"mean/exact/fp32", 5.0f},
                                       {"prod/tree/fp32", 3.0f},
                                       {"norm/tree/fp32", 2.0f}})
    EXPECT_EQ(verified(method, {overflow, 2}, Layout::vector(2), {result}).verified(), std::nullopt)
        << method;
  EXPECT_EQ(verified(sum, {}, Layout::vector(0), {0}).verified(), true);
  EXPECT_EQ(verified("mean/exact/fp32", {}, Layout::vector(0), {0}).verified(), false) << "it is NaN";
}

}  // namespace
}  // namespace samesum::harness
