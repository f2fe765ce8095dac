/// Tests the canonical orders of WG21 P4016: their definition, their published bits, and their bits on a CPU.
#include "samesum/order/canonical.hpp"

#include <string>

#include "operation/reduction_support.hpp"
#include "order/spelled.hpp"

namespace samesum {
namespace {

using namespace testing_support;

TEST(ACanonicalTree, HasTheAdditionsOfItsDefinition) {
  // Each lane adds pairs of neighbours; then pairs of neighbouring lanes are added.
  EXPECT_EQ(spelled_sum(CanonicalTree<4>{}, 1), "0");
  EXPECT_EQ(spelled_sum(CanonicalTree<4>{}, 4), "((0+1)+(2+3))");
  EXPECT_EQ(spelled_sum(CanonicalTree<4>{}, 8), "(((0+4)+(1+5))+((2+6)+(3+7)))");
  EXPECT_EQ(spelled_sum(CanonicalTree<2>{}, 8), "(((0+2)+(4+6))+((1+3)+(5+7)))");
  // The last of an odd number of terms moves up unchanged, within lanes and across them.
  EXPECT_EQ(spelled_sum(CanonicalTree<4>{}, 3), "((0+1)+2)");
  EXPECT_EQ(spelled_sum(CanonicalTree<2>{}, 6), "(((0+2)+4)+((1+3)+5))");
  // Some lanes have one element less.
  EXPECT_EQ(spelled_sum(CanonicalTree<2>{}, 7), "(((0+2)+(4+6))+((1+3)+5))");
  EXPECT_EQ(spelled_sum(CanonicalTree<4>{}, 6), "(((0+4)+(1+5))+(2+3))");
}

/// Adds neighbours until one number is left. The last of an odd number of terms moves up unchanged.
double added_by_neighbours(std::vector<double> x) {
  while (x.size() > 1) {
    std::vector<double> sums;
    for (std::size_t i = 0; i + 1 < x.size(); i += 2) sums.push_back(x[i] + x[i + 1]);
    if (x.size() % 2 == 1) sums.push_back(x.back());
    x = sums;
  }
  return x.front();
}

double canonical(const std::vector<double>& x, std::size_t lanes) {
  std::vector<std::vector<double>> lane(std::min(lanes, x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) lane[i % lanes].push_back(x[i]);
  std::vector<double> sums;
  for (const std::vector<double>& l : lane) sums.push_back(added_by_neighbours(l));
  return added_by_neighbours(sums);
}

TEST(ACanonicalSum, EqualsItsDefinitionWrittenOutForDoubles) {
  SAMESUM_UNSANITIZED("the loops are those of other orders");
  for (const std::size_t n : {1, 2, 15, 16, 17, 127, 128, 129, 300, 1000, 4096, 10'001}) {
    const std::vector<double> x = wide(n, 30, n);
    for (const std::size_t lanes : {16, 128})
      for (const char* backend : {"@reference", "@cpu"})
        EXPECT_EQ(reduce("canonical" + std::to_string(lanes) + "/plain/fp64" + backend, x).as<double>(),
                  canonical(x, lanes))
            << "n = " << n << ", " << lanes << backend;
  }
}

TEST(ACanonicalSum, HasThePublishedBits) {
  SAMESUM_UNSANITIZED("the loops are those of other orders");
  // P4016R0: 10^6 numbers in [-1, 1) of a linear congruential generator.
  std::vector<double> x(1'000'000);
  std::uint64_t state = 0x243f6a8885a308d3u;
  for (double& e : x) {
    state = 6364136223846793005u * state + 1442695040888963407u;
    e = (static_cast<double>(state >> 11) - 0x1p52) * 0x1p-52;
  }
  EXPECT_EQ(to_bits(x[0]), 0x3fd37de3b20e9fdcu);
  for (const char* backend : {"@reference", "@cpu"}) {
    EXPECT_EQ(reduce(std::string{"canonical16/plain/fp64"} + backend, x).bits, 0x40618f71f6379380u)
        << backend;
    EXPECT_EQ(reduce(std::string{"canonical128/plain/fp64"} + backend, x).bits, 0x40618f71f6379397u)
        << backend;
  }
}

TEST(ACanonicalSum, HasTheBitsOfItsReferenceAtEveryLengthUpTo300AndBeyond) {
  SAMESUM_UNSANITIZED("the loops are those of other orders");
  std::vector<std::size_t> lengths{511, 1000, 2047, 2049, 4096, 16'401, 100'003};
  for (std::size_t n = 0; n <= 300; ++n) lengths.push_back(n);
  int methods = 0;
  for (const Method* m : sums_of("cpu")) {
    if (!m->order.starts_with("canonical")) continue;
    ++methods;
    const Method& reference = reference_of(*m);
    for (const std::size_t n : lengths) {
      const Array x{*m->format, wide(n, 12, n)};
      ASSERT_EQ((*m)(x.values()), reference(x.values())) << m->name << ", n = " << n;
    }
    for (const FormatInfo& input : formats)
      for (const std::size_t n : {0, 1, 100, 129, 5000}) {
        const Array x{input, wide(n, 40, n)};
        ASSERT_EQ((*m)(x.values()), reference(x.values()))
            << m->name << " of " << input.name << ", n = " << n;
      }
  }
  EXPECT_EQ(methods, 2 * 16);
}

TEST(ACanonicalSum, DoesNotDependOnTheNumberOfThreads) {
  SAMESUM_UNSANITIZED("the loops are those of other orders");
  const Array x{format_info<fp32>(), wide(300'000, 12, 3)};
  for (const char* name : {"canonical16/kahan/fp32", "canonical128/plain/fp32"})
    for (const int threads : {0, 1, 2, 5})
      EXPECT_EQ(find(name)(x.values(), {.threads = threads}), find(name)(x.values(), {.threads = 1})) << name;
}

}  // namespace
}  // namespace samesum
