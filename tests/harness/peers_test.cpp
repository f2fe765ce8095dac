#include "harness/peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <thread>

#include "harness/dataset.hpp"
#include "harness/measure.hpp"
#include "harness/names.hpp"
#include "harness/verify.hpp"
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

/// A call of a peer on uniform data near 1, whose products neither overflow nor underflow in any order, and
/// whose variance is not small beside the squares. Results begin as NaN.
class CallOfPeer {
 public:
  CallOfPeer(const Method& m, Layout layout)
      : call_{.method = &m, .x = {*m.format, nullptr, 0}, .layout = layout, .out = {m.format, nullptr, 0}} {
    const std::size_t n = layout.results() * layout.n;
    x_ = near_one(m, n, 1);
    y_ = near_one(m, n, 2);
    call_.x = x_.values();
    if (m.inputs == 2) call_.y = y_.values();
    if (m.takes_keys) {
      for (std::size_t k = 0; k < layout.n; ++k) keys_.push_back(static_cast<std::uint32_t>(k * k % bins));
      call_.keys = keys_;
    }
    call_.out.size = m.takes_keys               ? bins * layout.inner
                     : m.has_result_per_element ? n
                                                : layout.results() * static_cast<std::size_t>(m.results);
    out_.resize(call_.out.size * m.format->bytes, std::byte{0xff});
    call_.out.data = out_.data();
  }

  Verification verified() const {
    run(call_);
    return verify(call_);
  }

 private:
  static constexpr std::size_t bins = 7;
  static Column near_one(const Method& m, std::size_t n, int seed) {
    const double width = m.operation == "prod" ? 1e-3 : 0.5;
    std::vector<double> x = testing_support::uniform(n, seed);
    for (double& e : x) e = 1 + width * e;
    return column_of(*m.format, x);
  }

  Call call_;
  Column x_, y_;
  std::vector<std::uint32_t> keys_;
  std::vector<std::byte> out_;
};

class EveryPeer : public ::testing::TestWithParam<const Method*> {};

TEST_P(EveryPeer, ComputesTheWholeLayoutOrRefusesItWithAReason) {
  const Method& m = *GetParam();
  int computed = 0;
  for (const std::size_t n : {0, 1, 2, 33, 1000})
    for (const Layout& l :
         {Layout::vector(n), Layout::rows(3, n), Layout::axis(1, n, 5), Layout::axis(2, n, 4)}) {
      if (m.takes_keys && l.outer > 1) continue;
      SCOPED_TRACE(m.name + ", " + std::to_string(l.outer) + " x " + std::to_string(n) + " x " +
                   std::to_string(l.inner));
      const CallOfPeer call{m, l};
      if (!refusal(m, l).empty()) {
        if (n > 0) {
          EXPECT_ANY_THROW(call.verified());
        }
        continue;
      }
      const Verification found = call.verified();
      EXPECT_EQ(found.wrong, "");
      // In bf16, a thousand terms have a tolerance beyond half of their sum.
      const bool is_telling = 8 * m.format->unit_roundoff * (1 + std::sqrt(static_cast<double>(n))) < 1;
      if (n > 1 && is_telling) {
        EXPECT_EQ(found.verified(), true) << "the tolerance is too wide";
      }
      ++computed;
    }
  EXPECT_GE(computed, 5) << "every peer computes vectors";
}

std::vector<const Method*> all_peers() {
  std::vector<const Method*> all;
  for (const Method& m : peers()) all.push_back(&m);
  for (const Method& m : peers_of_batches()) all.push_back(&m);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Peers, EveryPeer, ::testing::ValuesIn(all_peers()), testing_support::test_name);

TEST(Peers, OfRowsRefuseColumns) {
  const auto refuses = [](const std::string& name, Layout l) {
    return !refusal(*std::ranges::find(peers_of_batches(), name, &Method::name), l).empty();
  };
  EXPECT_FALSE(refuses("std/dot/fp32@peer", Layout::rows(3, 10)));
  EXPECT_FALSE(refuses("std/dot/fp32@peer", Layout::rows(3, 10, 12)));
  EXPECT_TRUE(refuses("std/dot/fp32@peer", Layout::axis(1, 10, 3)));
  EXPECT_TRUE(refuses("boost/moments/fp64@peer", Layout::axis(2, 10, 3)));
  EXPECT_FALSE(refuses("loop/by_key/fp32@peer", Layout::axis(1, 10, 3)));
  EXPECT_TRUE(refusal(peer("loop/fp32"), Layout::rows(3, 10)) != "");
  EXPECT_TRUE(refusal(peer("loop/fp32"), Layout::vector(10)) == "");
}

TEST(PeersOfBlas, ExistForTwoFormatsOrAreListedAsAbsent) {
  const bool absent = std::ranges::count(absent_peers(), "blas", &Absent::backend) > 0;
  for (const char* name : {"blas/dot", "blas/asum", "blas/norm", "blas/gemv"})
    for (const char* format : {"/fp32@peer", "/fp64@peer"})
      EXPECT_EQ(std::ranges::count(peers_of_batches(), std::string{name} + format, &Method::name),
                absent ? 0 : 1)
          << name;
  for (const Method& m : peers_of_batches())
    if (m.name.starts_with("blas/")) {
      EXPECT_EQ(refusal(m, Layout::rows(3, INT_MAX)), "");
      EXPECT_EQ(refusal(m, Layout::rows(3, std::size_t{1} << 31)), "its lengths have 32 bits");
    }
}

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
