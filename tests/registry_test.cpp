#include "samesum/registry.hpp"

#include <set>

#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

std::string refusal_of(std::string_view name) {
  try {
    find(name);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(found)";
}

TEST(TheRegistry, HoldsEveryCombinationOnceEitherAsAVariantOrWithAReason) {
  std::set<std::string> names;
  for (const Variant& v : variants()) EXPECT_TRUE(names.insert(v.name).second) << v.name;
  for (const Unsupported& u : unsupported()) {
    EXPECT_TRUE(names.insert(u.name).second) << u.name;
    EXPECT_FALSE(u.reason.empty());
  }
  const std::size_t recipes = (Orders::size * Accumulators::size + 1) * Formats::size;
  const std::size_t absent_variants = absent().empty() ? 0 : (3 * Accumulators::size + 3) * Formats::size;
  EXPECT_EQ(names.size(), backends.size() * recipes - absent_variants);
}

TEST(TheRegistry, FindsEachVariantByItsName) {
  for (const Variant& v : variants()) EXPECT_EQ(&find(v.name), &v);
}

TEST(TheRegistry, TakesANameWithoutBackendForTheCpu) {
  EXPECT_EQ(&find("tree/kahan/bf16"), &find("tree/kahan/bf16@cpu"));
}

TEST(TheRegistry, NamesTheNearestVariantsOfAnUnknownName) {
  EXPECT_THAT(refusal_of("tree/khan/bf16"), HasSubstr("tree/kahan/bf16@cpu"));
  EXPECT_THAT(refusal_of("exact/fp23"), HasSubstr("exact/fp32@cpu"));
  EXPECT_THAT(refusal_of(""), HasSubstr("nearest"));
  EXPECT_THAT(refusal_of("tree/kahan/bf16@gpu"), HasSubstr("tree/kahan/bf16@cpu"));
}

TEST(TheRegistry, SaysWhyACombinationMakesNoSense) {
  EXPECT_THAT(refusal_of("atomic/kahan/fp32"), HasSubstr("an atomic cell holds one number"));
  EXPECT_THAT(refusal_of("atomic/plain/fp32@reference"), HasSubstr("no literal reading"));
  EXPECT_THAT(refusal_of("atomic_element/plain/fp32"), HasSubstr("takes a GPU's many threads"));
}

TEST(TheRegistry, SaysWhyABackendIsAbsent) {
  for (const Absent& a : absent())
    EXPECT_EQ(refusal_of("tree/kahan/fp32@" + a.backend),
              "samesum: no variant 'tree/kahan/fp32@" + a.backend + "' here: " + a.reason);
  static_assert(detail::format_of("tree/kahan/fp32@cuda") == Formats::index_of<fp32>());
}

TEST(AVariant, StatesItsFacts) {
  for (const Variant& v : variants()) {
    EXPECT_EQ(v.promise, v.order.starts_with("atomic") ? Promise::none
                         : v.order.empty()             ? Promise::order_free
                                                       : Promise::everywhere);
    EXPECT_GT(v.state_bytes, 0u);
    EXPECT_GT(v.operations_per_element, 0);
    EXPECT_EQ(v.height(0).total(), 0u);
    EXPECT_EQ(v.height(1).total(), 0u);
    EXPECT_FALSE(v.height_formula.empty());
  }
  EXPECT_EQ(find("serial/plain/fp32").height(100).total(), 99u);
  EXPECT_EQ(find("tree/kahan/bf16").state_bytes, 4u);
  EXPECT_EQ(find("tree/plain/fp64").state_bytes, 8u);
}

TEST(AVariant, RefusesNegativeThreads) {
  const std::vector<float> x{1, 2};
  EXPECT_THROW(find("tree/plain/fp32")(x, {.threads = -1}), std::invalid_argument);
  EXPECT_THROW(accumulate(x, {.threads = -1}), std::invalid_argument);
}

TEST(AVariant, BoundToItsDataRunsManyTimes) {
  std::vector<float> x{1, 2, 3};
  const Job job = find("pairwise/plain/fp32").bind(x);
  EXPECT_EQ(job().as<float>(), 6);
  x[0] = 2;
  EXPECT_EQ(job().as<float>(), 7);
}

TEST(ACompileTimeName, SumsLikeTheVariantOfThatName) {
  const std::vector<double> data = wide(5000, 20, 1);
  const Array x{format_info<fp32>(), data};
  EXPECT_EQ(to_bits(sum<"pairwise/kahan/fp32">(x.values())), find("pairwise/kahan/fp32")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"tree/plain/bf16@reference">(x.values())), find("tree/plain/bf16")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"exact/fp16">(x.values())), find("exact/fp16")(x.values()).bits);
  static_assert(std::is_same_v<decltype(sum<"exact/bf16">(x.values())), bf16>);
  // Names that would not compile.
  static_assert(detail::format_of("tree/kahan/fp12") == Formats::size);
  static_assert(detail::format_of("atomic/kahan/fp32") == Formats::size);
  static_assert(detail::format_of("atomic/plain/fp32@reference") == Formats::size);
  static_assert(detail::format_of("tree/kahan/fp32@nowhere") == Formats::size);
  static_assert(detail::format_of("treekahan/fp32") == Formats::size);
}

TEST(SumByDefault, IsExactInTheElementsOwnFormat) {
  const std::vector<double> x{1e100, 1, -1e100, 1e-100, 1e50, -1, -1e50};
  EXPECT_EQ(sum(x), 1e-100);
  const std::vector<fp16> sevens(7, fp16{7.0f});
  EXPECT_EQ(static_cast<float>(sum(sevens)), 49);
}

}  // namespace
}  // namespace samesum
