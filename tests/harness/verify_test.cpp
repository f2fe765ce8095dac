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

/// Rows of n elements of format F, and what a peer with a plausible fault makes of the second one.
template <class F> class Faults {
 public:
  explicit Faults(std::size_t n) : n_{n}, x_{made_in<F>(3 * n, 1)}, y_{made_in<F>(3 * n, 2)} {}

  void are_noticed() const {
    for (const char* name : {"sum/exact/", "mean/exact/", "dot/exact/", "norm/tree/", "moments/tree/"}) {
      const Method& m = find(name + std::string{format_info<F>().name});
      const auto found = [&](std::vector<F> second_row) {
        std::vector<F> all = results(m, 0, n_);
        all.insert(all.end(), second_row.begin(), second_row.end());
        for (const F& r : results(m, 2 * n_, n_)) all.push_back(r);
        return verify({.method = &m,
                       .x = Values{x_},
                       .y = m.inputs == 2 ? Values{y_} : Values{},
                       .layout = Layout::rows(3, n_),
                       .out = Results{std::span{all}}})
            .verified();
      };
      EXPECT_EQ(found(results(m, n_, n_)), true) << m.name << ", n = " << n_;
      EXPECT_EQ(found(results(m, n_, n_ - 1)), false)
          << m.name << ", n = " << n_ << ": an element is missing";
      EXPECT_EQ(found(results(m, n_ + 1, n_)), false) << m.name << ", n = " << n_ << ": it begins too late";
      std::vector<F> unbiased = results(m, n_, n_);
      unbiased.back() *= static_cast<F>(static_cast<double>(n_) / static_cast<double>(n_ - 1));
      EXPECT_EQ(found(unbiased), false) << m.name << ", n = " << n_ << ": n - 1 instead of n";
    }
  }

 private:
  template <class T> static std::vector<T> made_in(std::size_t n, std::uint64_t seed) {
    std::vector<double> x = testing_support::uniform(n, seed);
    for (double& e : x) e = 1 + e / 2;
    return {x.begin(), x.end()};
  }
  /// The results for n elements from `first`.
  std::vector<F> results(const Method& m, std::size_t first, std::size_t n) const {
    const std::span x = std::span{x_}.subspan(first, n), y = std::span{y_}.subspan(first, n);
    std::vector<F> all(static_cast<std::size_t>(m.results));
    m.inputs == 2 ? reduce(m, x, y, Layout::vector(n), Results{std::span{all}})
                  : reduce(m, x, Layout::vector(n), Results{std::span{all}});
    return all;
  }

  std::size_t n_;
  std::vector<F> x_, y_;
};

TEST(Verification, NoticesAMissingElementAShiftedRowAndAWrongDivisor) {
  Faults<float>{few_elements}.are_noticed();
  Faults<double>{few_elements}.are_noticed();
  Faults<double>{std::size_t{1} << 20}.are_noticed();
}

TEST(Verification, NoticesFaultsOfLongSumsAndMomentsOfNumbersAroundZeroInFp32) {
  Floats x(std::size_t{1} << 20);
  const std::vector<double> uniform = testing_support::uniform(x.size(), 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(uniform[i]);
  x.back() = 1;
  const auto found = [&](const char* name, std::size_t n, float times = 1) {
    const Method& m = find(name);
    Floats results(static_cast<std::size_t>(m.results));
    reduce(m, std::span<const float>{x}.first(n), Layout::vector(n), Results{std::span{results}});
    results.back() *= times;
    return verified(name, x, Layout::vector(x.size()), results).verified();
  };
  for (const char* name : {"sum/exact/fp32", "mean/exact/fp32", "moments/exact/fp32"}) {
    EXPECT_EQ(found(name, x.size()), true) << name;
    EXPECT_EQ(found(name, x.size() - 1), false) << name << ": an element is missing";
  }
  for (const float wrong : {0.9f, 1.1f}) EXPECT_EQ(found("moments/exact/fp32", x.size(), wrong), false);
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
