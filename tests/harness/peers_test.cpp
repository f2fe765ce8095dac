#include "harness/peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "harness/commands.hpp"
#include "harness/dataset.hpp"
#include "harness/measure.hpp"
#include "harness/sample.hpp"
#include "known_sums.hpp"
#include "samesum/samesum.hpp"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace samesum::harness {
namespace {

using samesum::testing_support::Array;
using samesum::testing_support::known_sums;
using samesum::testing_support::KnownSum;
using ::testing::Contains;
using ::testing::Not;

std::vector<std::string> names_matching(const std::string& globs, const FormatInfo& input) {
  std::vector<std::string> names;
  for (const Method* v : methods_matching(globs, input)) names.push_back(v->name);
  return names;
}

const Method& peer(const std::string& name) {
  return *std::ranges::find(peers(), name + "@peer", &Method::name);
}

std::vector<const Method*> cpu_peers() {
  std::vector<const Method*> all;
  for (const Method& v : peers())
    if (!runs_on_gpu(v)) all.push_back(&v);
  return all;
}

TEST(Peers, OfTheCpuExistInFp32AndFp64OrAreListedAsAbsent) {
  for (const char* family :
       {"loop", "fast_math", "boost_kahan", "std_reduce", "eigen", "tbb", "std_par", "openmp"}) {
    const bool absent = std::ranges::count(absent_peers(), std::string{family}, &Absent::backend) > 0;
    for (const char* format : {"fp32", "fp64"}) {
      const std::string name = std::string{family} + "/" + format + "@peer";
      EXPECT_EQ(std::ranges::count(peers(), name, &Method::name), absent ? 0 : 1) << name;
    }
  }
}

std::vector<KnownSum> of_datasets(const FormatInfo& format, std::size_t n) {
  std::vector<KnownSum> all;
  for (const auto& data : testing_support::datasets(n))
    all.push_back({data.name, {format, data.x, 3}});  // aligned to a single element only
  return all;
}

class EveryCpuPeer : public ::testing::TestWithParam<const Method*> {};

TEST_P(EveryCpuPeer, IsWithinTheBoundOfASumInAnyOrder) {
  const Method& v = *GetParam();
  for (const std::size_t n : {0, 1, 2, 3, 17, 1000, 100003})
    for (const auto& [name, x, truth] : known_sums<of_datasets>(*v.format, n))
      for (const int threads : {0, 1, 3}) {
        const Measurement m = measure(v, x.values(), truth, {.repeats = 2, .threads = threads});
        EXPECT_TRUE(m.within_bound) << v.name << " on " << n << " of " << name << ": " << m.value.to_double()
                                    << " instead of " << m.truth.to_double();
      }
}

INSTANTIATE_TEST_SUITE_P(Peers, EveryCpuPeer, ::testing::ValuesIn(cpu_peers()), testing_support::test_name);

/// Compares the sums of two equal rows with the exact one.
void expect_sums_of_rows(const Method& m, const std::vector<double>& row) {
  std::vector<double> rows = row;
  rows.insert(rows.end(), row.begin(), row.end());
  const Column x = column_of(*m.format, rows), one = column_of(*m.format, row);
  std::vector<double> sums(2);
  with_format(*m.format, [&]<class F>() {
    std::vector<F> out(2);
    reduce(m, x.values(), Layout::rows(2, row.size()), std::span<F>{out});
    std::ranges::transform(out, sums.begin(), [](F sum) { return convert<double>(sum); });
  });
  const double exact = Truth{one.values()}.rounded(format_info<fp64>()).to_double();
  for (const double sum : sums)
    EXPECT_NEAR(sum / exact, 1, 4 * static_cast<double>(row.size()) * m.format->unit_roundoff) << m.name;
}

class EveryPeerOfAnOperation : public ::testing::TestWithParam<const Method*> {};

TEST_P(EveryPeerOfAnOperation, ComputesTheOperation) {
  const Method& m = *GetParam();
  for (const std::size_t n : {1, 2, 17, 1000, 20'003}) {
    // Near 1, so that products neither overflow nor underflow; farther apart if there is a variance, so that
    // its condition number is about 2.
    const double width = m.results == 1 ? 1e-3 : 1;
    std::vector<double> x = testing_support::uniform(n, 1), y = testing_support::uniform(n, 2);
    for (double& e : x) e = 1 + width * e;
    for (double& e : y) e = 1 + width * e;
    if (m.operation == "sum") {
      expect_sums_of_rows(m, x);
      continue;
    }
    Sample sample{column_of(*m.format, x), m.operation,
                  m.inputs == 2 ? std::optional{column_of(*m.format, y)} : std::nullopt};
    const Measurement found = sample.judged(m);
    // A first-order bound on a result in any order; that of a variance has its condition number as a factor.
    double bound = 4 * static_cast<double>(n) * m.format->unit_roundoff;
    if (m.results > 1 && found.truth.to_double() > 0) bound *= sample.truth().condition();
    EXPECT_LT(bound, 0.1);
    EXPECT_LE(found.error.relative, bound) << m.name << " of " << n << ": " << found.value.to_double();
  }
}

std::vector<const Method*> peers_of_operations() {
  std::vector<const Method*> all;
  for (const Method& m : peers_of_batches())
    if (!m.takes_keys && !m.is_scan()) all.push_back(&m);  // bench_test.cpp compares those
  return all;
}
INSTANTIATE_TEST_SUITE_P(Peers, EveryPeerOfAnOperation, ::testing::ValuesIn(peers_of_operations()),
                         testing_support::test_name);

TEST(APlainLoop, HasTheBitsOfSerial) {
  for (const FormatInfo* format : {&format_info<fp32>(), &format_info<fp64>()}) {
    const Array array{*format, testing_support::wide(10007, 40, 3)};
    const std::string in{format->name};
    EXPECT_EQ(peer("loop/" + in)(array.values()), find("serial/plain/" + in)(array.values()));
  }
}

TEST(FastMath, ChangesNeitherTheProcessNorTheLibrary) {
  const Array subnormal{format_info<fp32>(), std::vector<double>(100, 0x1p-149)};
  const Array wide{format_info<fp32>(), testing_support::wide(10007, 40, 3)};
  const Number before = find("tree/kahan/fp32")(wide.values());
  peer("fast_math/fp32")(subnormal.values());
  peer("fast_math/fp64")(Array{format_info<fp64>(), std::vector<double>(100, 0x1p-1074)}.values());
  const auto check = [&] {
    const volatile float least = 0x1p-149f;
    EXPECT_EQ(least + least, 0x1p-148f);
#if defined(__x86_64__)
    EXPECT_EQ(_mm_getcsr() & 0x8040u, 0u) << "flush-to-zero or denormals-are-zero is set";
#endif
  };
  check();
  std::thread{check}.join();
  EXPECT_EQ(find("exact/fp32")(subnormal.values()).to_double(), 100 * 0x1p-149);
  EXPECT_EQ(find("serial/plain/fp32")(subnormal.values()).to_double(), 100 * 0x1p-149);
  EXPECT_EQ(find("tree/kahan/fp32")(wide.values()), before);
}

TEST(AGlob, OfPeersSelectsThoseThatTakeTheInput) {
  EXPECT_THAT(names_matching("*,*@peer", format_info<fp32>()), Contains("std_reduce/fp32@peer"));
  EXPECT_THAT(names_matching("*,*@peer", format_info<fp32>()), Not(Contains("std_reduce/fp64@peer")));
  EXPECT_THAT(names_matching("*,*@peer", format_info<bf16>()), Not(Contains("std_reduce/fp32@peer")));
  EXPECT_THAT(names_matching("*,*@peer", format_info<bf16>()), Contains("sum/exact/bf16@cpu"));
  EXPECT_THAT(names_matching("loop/fp32@peer", format_info<fp64>()), ::testing::IsEmpty());
  EXPECT_THROW(names_matching("lop/fp32@peer", format_info<fp32>()), UsageError);
}

}  // namespace
}  // namespace samesum::harness
