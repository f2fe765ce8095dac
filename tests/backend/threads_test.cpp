/// Custom reductions by several threads. They are templates over the pool of threads, so with the thread
/// sanitizer they are tested without the rest of the library.
#include "operation/user_reductions.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

TEST(APolynomialHash, IsThatOfALoopForEveryLengthAndNumberOfThreads) {
  for (const int length : {0, 1, 2, 3, 127, 128, 129, 4095, 4096, 4097, 12'293, 200'001}) {
    const auto n = static_cast<std::size_t>(length);
    std::vector<std::uint32_t> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<std::uint32_t>(i * i + 7);
    std::uint64_t hash = 0;
    for (const std::uint32_t e : x) hash = hash * PolynomialHash::base + e + 1;
    for (const int threads : {1, 3})
      EXPECT_EQ(reduce<Blocked>(PolynomialHash{}, x, {.threads = threads}), hash ^ n) << n;
  }
}

/// Throws at some elements.
struct ThrowingSum : RoundingSum {
  float map(float x, std::uint64_t i) const {
    return x == 1000 ? throw std::out_of_range{std::to_string(i)} : x;
  }
};

TEST(AnExceptionOfACustomReduction, ReachesTheCallerFromAnyThreadWhenAllThreadsAreDone) {
  const std::vector<double> elements = wide(is_sanitized ? 500'000 : 1'000'000, 12, 3);
  const std::vector<float> x{elements.begin(), elements.end()};
  const float expected = reduce(RoundingSum{}, x);
  for (const std::size_t at : {std::size_t{0}, std::size_t{400'000}, x.size() - 1})
    for (const int threads : {1, 4}) {
      std::vector<float> bad = x;
      bad[at] = 1000;
      for (int again = 0; again < (is_sanitized ? 3 : 20); ++again) {
        try {
          reduce(ThrowingSum{}, bad, {.threads = threads});
          FAIL() << "element " << at << ", " << threads << " threads";
        } catch (const std::out_of_range& error) {
          EXPECT_EQ(error.what(), std::to_string(at));
        }
        EXPECT_EQ(reduce(ThrowingSum{}, x, {.threads = threads}), expected);
      }
      // On several threads, too.
      EXPECT_THROW(reduce(ThrowingSum{}, std::vector<float>(x.size(), 1000), {.threads = threads}),
                   std::out_of_range);
    }
}

}  // namespace
}  // namespace samesum
