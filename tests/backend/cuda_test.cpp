/// The GPU gives the bits of the CPU. Without a GPU, only the test of its absence runs.
#include <set>
#include <thread>

#include "backend/cuda_support.hpp"
#include "samesum/catalogue/support.hpp"

namespace samesum {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TheGpu, HasEverySum) {
  SAMESUM_NEEDS_GPU();
  EXPECT_EQ(sums_of("cuda").size(), (4 * Accumulators::size + 2 + OrderFree::size) * Formats::size);
}

TEST(AnAbsentGpu, IsReportedWithTheReason) {
  if (gpu_is_there()) GTEST_SKIP() << "there is a GPU";
  EXPECT_TRUE(sums_of("cuda").empty());
  ASSERT_EQ(absent().size(), 1u);
  EXPECT_EQ(absent()[0].backend, "cuda");
  EXPECT_THAT(absent()[0].reason, HasSubstr("no GPU can be used: "));
  std::size_t bytes = 0;
  float out = 0;
  EXPECT_EQ(gpu::sum(nullptr, bytes, &out, 1, &out), cudaErrorNoDevice);
  EXPECT_EQ(gpu::sum<"tree/kahan/fp32">(nullptr, bytes, &out, 1, &out), cudaErrorNoDevice);
  try {
    gpu::sum(&out, 1, &out);
    FAIL() << "no exception was thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("exact/fp32@cuda"), HasSubstr(absent()[0].reason)));
  }
}

class EverySumOnTheGpu : public MethodTest {
 protected:
  const Method& v = m;
  const Method& reference = find_on("reference", v);
  const bool serial = v.order == "serial";
};
INSTANTIATE_TEST_SUITE_P(Cuda, EverySumOnTheGpu,
                         ::testing::ValuesIn(or_absent(sums_of("cuda", Promise::everywhere))), test_name);

std::vector<std::size_t> lengths(const Method& v) {
  std::vector<std::size_t> all{0, 1, 2, 3, 7, 8, 31, 32, 33, 127, 128, 129, 130};
  if (const Shape shape = shape_of(v); shape.leaf != unbounded)
    for (const std::size_t n : {shape.leaf, 2 * shape.leaf, 8 * shape.leaf})
      all.insert(all.end(), {n - 1, n, n + 1, n + shape.leaf / 2});
  if (!is_sanitized) all.insert(all.end(), {1'000'003, (1 << 20) - 1});
  if (!is_sanitized && v.order != "serial") all.push_back((1 << 24) + 1);
  return all;
}

/// Returns the first n of many numbers over twelve binades, which are made once since that takes a while.
std::vector<double> first_of_many(std::size_t n) {
  static const std::vector<double> many = wide((std::size_t{1} << 24) + 1, 12, 6);
  return {many.begin(), many.begin() + static_cast<std::ptrdiff_t>(n)};
}

TEST_P(EverySumOnTheGpu, HasTheBitsOfItsReferenceAtEveryLength) {
  for (const std::size_t n : lengths(v)) {
    const Array x{*v.format, first_of_many(n)};
    EXPECT_EQ(the_caller().sum(v, OnGpu{x.values()}.values()), reference(x.values())) << "n = " << n;
  }
}

TEST_P(EverySumOnTheGpu, HasTheBitsOfItsReferenceOnEveryKindOfData) {
  for (const std::size_t n : {std::size_t{100}, std::size_t{70'000}})
    for (const Dataset& d : datasets(n)) {
      const Array x{*v.format, d.x};
      EXPECT_EQ(v(x.values()), reference(x.values())) << d.name << ", n = " << n;
    }
}

TEST_P(EverySumOnTheGpu, HasTheBitsOfItsReferenceForEveryInputFormat) {
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {std::size_t{130}, std::size_t{8192}, std::size_t{70'001}}) {
      std::vector<double> data = wide(n, 40, n);
      for (std::size_t i = 0; i < n; i += 3) data[i] *= 4 * input.smallest_subnormal;
      const Array x{input, data};
      EXPECT_EQ(the_caller().sum(v, OnGpu{x.values()}.values()), reference(x.values()))
          << input.name << ", n = " << n;
    }
}

TEST_P(EverySumOnTheGpu, HasTheSpecialValuesOfItsReference) {
  for (const testing::Case& c : testing::cases()) {
    const Array x = c.array();
    EXPECT_EQ(the_caller().sum(v, OnGpu{x.values()}.values()), reference(x.values())) << c;
  }
}

/// A fast path sums full leaves without checking each element; leaves with special values are summed again.
TEST_P(EverySumOnTheGpu, HasTheSpecialValuesOfItsReferenceInFullLeaves) {
  const double inf = std::numeric_limits<double>::infinity(), most = v.format->max_finite;
  const double ulp = most * v.format->unit_roundoff / (1 - v.format->unit_roundoff);  // of `most`
  struct {
    const char* name;
    double others;
    std::vector<double> first;  // of the second leaf
  } const cases[] = {
      {"all -0", -0.0, {}},
      {"-0, then +0", -0.0, {-0.0, 0.0}},
      {"what rounds to -0", -1e-60, {}},
      {"-0, then what cancels", -0.0, {-0.0, 1, -1}},
      {"inf", 0.5, {inf}},
      {"inf and -inf", 0.5, {inf, -inf}},
      {"NaN", 0.5, {std::numeric_limits<double>::quiet_NaN()}},
      {"overflow", 0.5, {most, most}},
      {"overflow and back", 0.5, {most, most, -most, -most}},
      {"overflow within TwoSum", -0.0, {-1.5 * ulp, most}},
  };
  for (const auto& c : cases) {
    for (const std::size_t apart : {1, 128}) {  // in neighbouring lanes, in one lane
      std::vector<double> data(5 * 4096 + 100, c.others);
      for (std::size_t i = 0; i < c.first.size(); ++i) data[4096 + i * apart] = c.first[i];
      for (const FormatInfo* input : {v.format, &format_info<fp64>()}) {
        const Array x{*input, data};
        EXPECT_EQ(the_caller().sum(v, OnGpu{x.values()}.values()), reference(x.values()))
            << c.name << ", from " << input->name;
      }
    }
  }
}

TEST_P(EverySumOnTheGpu, HasTheSameBitsAtEveryAddressAndForEveryLaunchShape) {
  // If blocks are small, the longest array has several groups of leaves, so that groups are merged too.
  const std::size_t longest = (std::size_t{1} << 20) + 5000;
  const std::vector<double> all = uniform(longest, 4);
  for (const std::size_t n : {std::size_t{1000}, std::size_t{12'288}, std::size_t{100'001}, longest}) {
    if (n > 100'000 && serial) continue;
    const std::vector<double> data{all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)};
    const Array x{*v.format, data};
    const Number expected = reference(x.values());
    for (std::size_t offset = 0; offset * v.format->bytes < 16; ++offset) {
      const OnGpu placed{x.values(), offset};
      if (is_sanitized && offset > 1) break;
      for (const LaunchShape shape : harness::launch_shapes) {
        EXPECT_EQ(the_caller().sum(v, placed.values(), shape), expected)
            << "n = " << n << ", offset " << offset << ", " << shape;
      }
    }
  }
}

TEST_P(EverySumOnTheGpu, GivesOneBitPatternInAHundredRuns) {
  SAMESUM_UNSANITIZED("it takes long");
  const Array x{*v.format, first_of_many(serial ? 1 << 14 : 1 << 24)};
  const OnGpu placed{x.values()};
  std::set<std::uint64_t> seen;
  for (int run = 0; run < 100; ++run) seen.insert(the_caller().sum(v, placed.values()).bits);
  EXPECT_EQ(seen.size(), 1u);
}

TEST_P(EverySumOnTheGpu, CanBeCapturedInAGraphAndReplayed) {
  const std::vector<double> first = uniform(100'001, 7), second = wide(100'001, 10, 8);
  const OnGpu placed{Array{*v.format, first}.values()};
  const Graph graph{the_caller().stream(), [&] { the_caller().start(v, placed.values()); }};
  for (const std::vector<double>& data : {first, second, first}) {
    const Array x{*v.format, data};
    placed.fill(x.values());
    graph.replay();
    EXPECT_EQ(the_caller().result(*v.format), reference(x.values()));
  }
}

TEST(Streams, ThatRunConcurrentlyDoNotAffectEachOther) {
  SAMESUM_NEEDS_GPU();
  const Array x{format_info<fp32>(), uniform(is_sanitized ? 50'000 : 3'000'001, 9)};
  const OnGpu placed{x.values()};
  std::vector<const Method*> chosen;
  for (const Method* v : sums_of("cuda", Promise::everywhere))
    if (v->order != "serial") chosen.push_back(v);
  std::vector<Number> expected;
  for (const Method* v : chosen) expected.push_back(find_on("cpu", *v)(x.values()));
  const auto work = [&](std::size_t first) {
    Caller caller;
    for (int round = 0; round < (is_sanitized ? 1 : 10); ++round)
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        const std::size_t i = (first + k) % chosen.size();
        EXPECT_EQ(caller.sum(*chosen[i], placed.values()), expected[i]) << chosen[i]->name;
      }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) threads.emplace_back(work, 7 * i);
  for (std::thread& thread : threads) thread.join();
}

/// Returns element i of a long array: 24 bits of a SplitMix64 step, cheap to compute and never the same twice
/// in a row.
float element_of_many(std::size_t i) {
  std::uint64_t z = i * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return static_cast<float>(static_cast<std::int64_t>(z) >> 40) * 0x1p-23f;
}

/// Runs fill(first, last) on every core, each for a part of [0, n).
template <class Fill> void in_parallel(std::size_t n, Fill fill) {
  std::vector<std::thread> threads;
  const std::size_t parts = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t p = 0; p < parts; ++p) threads.emplace_back(fill, n * p / parts, n * (p + 1) / parts);
  for (std::thread& thread : threads) thread.join();
}

const bool long_tests = std::getenv("SAMESUM_LONG_TESTS") != nullptr;

TEST(LongArrays, HaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  if (!long_tests) GTEST_SKIP() << "this takes a minute and 40 GB; set SAMESUM_LONG_TESTS=1";
  const std::size_t most = (std::size_t{1} << 32) + 7;
  std::vector<float> x(most);
  in_parallel(most, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) x[i] = element_of_many(i);
  });
  const OnGpu placed{Values{x}};
  for (const std::size_t n : {(std::size_t{1} << 27) - 3, std::size_t{1} << 30, (std::size_t{1} << 31) - 1,
                              (std::size_t{1} << 31) + 5, most})
    for (const char* recipe :
         {"exact/fp32", "exact/fp64", "tree/plain/fp32", "tree/kahan/fp32", "tree/plain/bf16",
          "pairwise/plain/fp32", "pairwise/kahan/fp32", "pairwise/plain/bf16"}) {
      const Method& v = gpu::find(recipe);
      EXPECT_EQ(the_caller().sum(v, {format_info<fp32>(), placed.values().data, n}),
                find_on("cpu", v)(Values{format_info<fp32>(), x.data(), n}))
          << v.name << ", n = " << n;
    }
}

TEST(LongArrays, HaveTheKnownExactSums) {
  SAMESUM_NEEDS_GPU();
  if (!long_tests) GTEST_SKIP() << "this takes a minute and 12 GB; set SAMESUM_LONG_TESTS=1";
  const std::size_t billion = std::size_t{1} << 30, ones = (std::size_t{1} << 31) - 1;
  const auto exact = [](const FormatInfo& format, const OnGpu& x, std::size_t n) {
    const Method& v = gpu::find("exact/" + std::string{format.name});
    return the_caller().sum(v, {*x.values().format, x.values().data, n});
  };
  std::vector<float> x(ones, 0.0f);
  const OnGpu placed{Values{x}};
  EXPECT_EQ(exact(format_info<fp32>(), placed, billion).bits, 0u);
  std::ranges::fill(x, -0.0f);
  placed.fill(x);
  EXPECT_EQ(exact(format_info<fp32>(), placed, billion).bits, Format<fp32>::sign_bit);
  std::ranges::fill(x, 1.0f);
  placed.fill(x);
  EXPECT_EQ(exact(format_info<fp64>(), placed, ones).to_double(), static_cast<double>(ones));
  x[billion / 3] = std::numeric_limits<float>::infinity();
  placed.fill(x);
  EXPECT_EQ(exact(format_info<fp32>(), placed, ones).bits, Format<fp32>::infinity);

  std::vector<fp16> half(billion);
  for (std::size_t i = 0; i < billion; ++i) half[i] = from_bits<fp16>(i % 8 < 4 ? 0x77d0 : 0xf7d0);
  const OnGpu halves{Values{half}};  // 32000 four times, -32000 four times
  EXPECT_EQ(exact(format_info<fp16>(), halves, billion).bits, 0u);
  EXPECT_EQ(exact(format_info<fp64>(), halves, billion - 4).to_double(), 128'000);
  std::ranges::fill(half, from_bits<fp16>(0x7bff));
  halves.fill(half);
  EXPECT_EQ(exact(format_info<fp64>(), halves, billion).to_double(), 65504 * 0x1p30);
}

using AtomicOnTheGpu = MethodTest;
std::vector<const Method*> atomic_sums() {
  std::vector<const Method*> chosen;
  for (const Method* v : sums_of("cuda"))
    if (v->promise == Promise::none) chosen.push_back(v);
  return chosen;
}
INSTANTIATE_TEST_SUITE_P(Cuda, AtomicOnTheGpu, ::testing::ValuesIn(or_absent(atomic_sums())), test_name);

TEST_P(AtomicOnTheGpu, MissesNoElement) {
  const Method& v = m;
  // Every partial sum is exact, so every order gives the same result.
  for (const std::size_t n : {0, 1, 100, 2047, 100'000}) {
    std::vector<double> data(n, 0.0);
    for (std::size_t i = 0; i < std::min<std::size_t>(n, 200); ++i) data[i * (n / 200)] += 1;
    double sum = 0;
    for (const double x : data) sum += x;
    for (const FormatInfo& input : formats)
      EXPECT_EQ(the_caller().sum(v, OnGpu{Array{input, data}.values()}.values()).to_double(), sum)
          << input.name << ", n = " << n;
  }
  const Array zeros{*v.format, std::vector<double>(5000, -0.0)};
  EXPECT_EQ(the_caller().sum(v, OnGpu{zeros.values()}.values()).bits, v.format->sign_bit);
}

TEST_P(AtomicOnTheGpu, GivesSeveralBitPatternsInAHundredRuns) {
  SAMESUM_UNSANITIZED("it takes long");
  const Method& v = m;
  const Array x{*v.format, first_of_many(1 << 24)};
  const OnGpu placed{x.values()};
  std::set<std::uint64_t> seen;
  for (int run = 0; run < 100 && seen.size() < 2; ++run)
    seen.insert(the_caller().sum(v, placed.values()).bits);
  EXPECT_GT(seen.size(), 1u);
}

TEST_P(AtomicOnTheGpu, StaysWithinItsBoundWhereAtomicsFlushSubnormals) {
  const Method& v = m;
  for (const double scale : {1.0, v.format->smallest_subnormal * 64}) {
    std::vector<double> data = uniform(100'000, 11);
    for (double& e : data) e *= scale;
    const Array x{*v.format, data};
    const Number got = the_caller().sum(v, OnGpu{x.values()}.values());
    const double truth = find("exact/fp64")(x.values()).to_double();
    double magnitudes = 0;
    for (const double e : data) magnitudes += std::abs(e) + v.format->smallest_subnormal;
    EXPECT_LE(std::abs(got.to_double() - truth), v.bound(*v.format, data.size(), got, magnitudes)) << scale;
  }
}

}  // namespace
}  // namespace samesum
