#include "samesum/format/elementary.hpp"

#include <atomic>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <numbers>
#include <thread>

#include "format/elementary_digest.hpp"
#include "format/elementary_loop.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using cpu::InstructionSet;

constexpr float infinity = std::numeric_limits<float>::infinity();

float exp_of(float x) { return exp_of_nonpositive(Scalar<fp32>{x}).v; }
float log_of(float x) { return log(Scalar<fp32>{x}).v; }

TEST(Exp, HandlesSpecialArguments) {
  EXPECT_EQ(to_bits(exp_of(0.0f)), to_bits(1.0f));
  EXPECT_EQ(to_bits(exp_of(-0.0f)), to_bits(1.0f));
  EXPECT_EQ(to_bits(exp_of(-infinity)), to_bits(0.0f));
  EXPECT_EQ(to_bits(exp_of(-104.0f)), to_bits(0.0f));
  EXPECT_EQ(to_bits(exp_of(-103.9f)), 1u) << "the smallest subnormal number";
  EXPECT_EQ(to_bits(exp_of(-1e30f)), to_bits(0.0f));
  EXPECT_EQ(to_bits(exp_of(-0x1p-149f)), to_bits(1.0f));
  EXPECT_TRUE(std::isnan(exp_of(std::nanf(""))));
  EXPECT_TRUE(std::isnan(exp_of(-std::nanf(""))));
}

TEST(Log, HandlesSpecialArguments) {
  EXPECT_EQ(to_bits(log_of(1.0f)), to_bits(0.0f));
  EXPECT_EQ(log_of(0.0f), -infinity);
  EXPECT_EQ(log_of(-0.0f), -infinity);
  EXPECT_EQ(log_of(infinity), infinity);
  EXPECT_TRUE(std::isnan(log_of(-0x1p-149f)));
  EXPECT_TRUE(std::isnan(log_of(-infinity)));
  EXPECT_TRUE(std::isnan(log_of(std::nanf(""))));
  EXPECT_EQ(log_of(0x1p-149f), static_cast<float>(-149 * std::numbers::ln2));
}

TEST(Fma, RoundsOnceInPacksOfAnyWidth) {
  std::mt19937_64 random{1};
  const auto number = [&]<class F>(F) {
    const double x = static_cast<double>(static_cast<std::int64_t>(random()) >> 11);
    return static_cast<F>(x * power_of_two(static_cast<int>(random() % 60) - 80));
  };
  const auto expect_all = [&]<class F, int W>() {
    for (int k = 0; k < 2000; ++k) {
      Register<F, W> a{}, b{}, c{};
      F x[W], y[W], z[W];
      for (int l = 0; l < W; ++l) {
        x[l] = number(F{}), y[l] = number(F{}), z[l] = k % 2 ? -x[l] * y[l] : number(F{});
      }
      std::memcpy(&a, x, sizeof x), std::memcpy(&b, y, sizeof y), std::memcpy(&c, z, sizeof z);
      const auto sum = fma(Pack<F, W>{a}, Pack<F, W>{b}, Pack<F, W>{c}).v;
      F got[W];
      std::memcpy(got, &sum, sizeof got);
      for (int l = 0; l < W; ++l) ASSERT_EQ(to_bits(got[l]), to_bits(std::fma(x[l], y[l], z[l])));
    }
  };
  const auto of_format = [&]<class F>() {
    expect_all.template operator()<F, 1>();
    expect_all.template operator()<F, 2>();
    expect_all.template operator()<F, 4>();
    expect_all.template operator()<F, 8>();
    expect_all.template operator()<F, 16>();
  };
  of_format.template operator()<fp32>();
  of_format.template operator()<fp64>();
}

// --- over many arguments -----------------------------------------------------------------------------------

constexpr std::size_t chunk = 1 << 14;

ElementaryLoops loops_of(InstructionSet set) {
  ElementaryLoops loops{};
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    static_cast<void>(
        ((set == cpu::instruction_sets[i] && (loops = elementary_loops<cpu::instruction_sets[i]>(), true)) ||
         ...));
  }
  (std::make_index_sequence<cpu::instruction_sets.size()>{});
  return loops;
}

/// All arguments take 16 seconds. By default the tests use every 31st chunk; 31 is odd, so that significands
/// differ between binades.
const std::uint64_t step = std::getenv("SAMESUM_LONG_TESTS") ? 1 : 31;

/// Largest error and digest over every step-th chunk of neighbouring arguments.
struct Seen {
  double error = 0;
  std::uint64_t digest = 0;
};
template <class References> Seen look_at_all(Function function, References references) {
  const ElementaryLoops loops = loops_of(cpu::instruction_set());
  const std::uint64_t first = first_argument(function), chunks = ((std::uint64_t{1} << 32) - first) / chunk;
  std::atomic<std::uint64_t> next{0};
  Seen seen[2];
  const auto work = [&](Seen& mine) {
    std::vector<float> x(chunk), y(chunk);
    std::vector<double> reference(chunk);
    for (std::uint64_t k; (k = next.fetch_add(step)) < chunks;) {
      const auto begin = static_cast<std::uint32_t>(first + k * chunk);
      for (std::uint32_t i = 0; i < chunk; ++i) x[i] = from_bits<float>(begin + i);
      (function == Function::exp ? loops.in_fp32.exp : loops.in_fp32.log)(x.data(), y.data(), chunk);
      mine.digest += loops.digest(begin, y.data(), chunk);
      if (references(x, reference))
        mine.error = std::max(mine.error, loops.largest_error(y.data(), reference.data(), chunk));
    }
  };
  std::thread other{[&] { work(seen[1]); }};
  work(seen[0]);
  other.join();
  return {std::max(seen[0].error, seen[1].error), seen[0].digest + seen[1].digest};
}

/// Computes references in double, whose error is 2^-29 ulps of fp32. Returns false if the chunk has nothing
/// to compare.
bool exp_references(const std::vector<float>& x, std::vector<double>& reference) {
  if (!(x.back() > -110)) return false;
  for (std::size_t i = 0; i < chunk; ++i) {
    const double at = x[i];
    reference[i] = at > -0x1p-12 ? 1 + at + at * at / 2 : std::exp(at);
  }
  return true;
}

bool log_references(const std::vector<float>& x, std::vector<double>& reference) {
  if (!(x[0] > 0 && x[0] < infinity)) return false;
  static const std::vector<double> of_significands = [] {
    std::vector<double> table(1 << 23);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::log1p(static_cast<double>(i) * 0x1p-23);
    return table;
  }();
  const int exponent = std::ilogb(x[0]);
  const bool cancels = exponent >= -2 && exponent <= 0, subnormal = exponent < -126;
  const std::size_t first = to_bits(x[0]) % of_significands.size();
  for (std::size_t i = 0; i < chunk; ++i)
    reference[i] = cancels || subnormal ? std::log(static_cast<double>(x[i]))
                                        : of_significands[first + i] + exponent * std::numbers::ln2;
  return true;
}

TEST(ExpAndLog, HaveTheDocumentedErrors) {
  const auto expect = [](const GoldenDigest& golden, Seen seen, double least, double most) {
    EXPECT_LE(seen.error, most);
    if (step > 1) return;
    EXPECT_GE(seen.error, least) << "the docstring states a larger error";
    EXPECT_EQ(seen.digest, golden.of_all) << std::hex << "0x" << seen.digest;
  };
  expect(golden_digests[0], look_at_all(Function::exp, exp_references), 0.89, 0.892);
  expect(golden_digests[1], look_at_all(Function::log, log_references), 0.93, 0.934);
}

/// Calls visit(loop, description) for every loop of a function on this machine.
template <class F, class Visit> void for_each_loop(Function function, Visit visit) {
  for (const InstructionSet set : cpu::instruction_sets) {
    if (!cpu::is_supported(set)) continue;
    const ElementaryLoops all = loops_of(set);
    const auto& loops = std::get<const LoopsInFormat<F>&>(std::tie(all.in_fp32, all.in_fp64));
    const bool is_exp = function == Function::exp;
    const std::string name{name_of(set)};
    visit(is_exp ? loops.exp : loops.log, name);
    visit(is_exp ? loops.exp_of_scalars : loops.log_of_scalars, name + ", scalars");
    visit(is_exp ? loops.exp_of_wide_packs : loops.log_of_wide_packs, name + ", wide packs");
  }
}

TEST(ExpAndLog, HaveTheSameBitsInEveryInstructionSetAndPack) {
  for (const GoldenDigest& golden : golden_digests) {
    const std::uint64_t first = first_argument(golden.function), all = std::uint64_t{1} << 32;
    std::vector<float> x(chunk), y(chunk);
    for_each_loop<float>(golden.function, [&](auto loop, const std::string& name) {
      std::uint64_t digest = 0;
      for (std::uint64_t begin = first; begin < all; begin += chunk * odd_stride) {
        for (std::size_t i = 0; i < chunk; ++i)
          x[i] = from_bits<float>(static_cast<std::uint32_t>(std::min(begin + i * odd_stride, all - 1)));
        loop(x.data(), y.data(), chunk);
        for (std::size_t i = 0; i < chunk && begin + i * odd_stride < all; ++i)
          digest += share(to_bits(x[i]), y[i]);
      }
      EXPECT_EQ(digest, golden.of_some) << name;
    });
  }
}

// --- in fp64 -----------------------------------------------------------------------------------------------

using Quad = boost::multiprecision::cpp_bin_float_quad;

/// Returns |y - f(x)| in ulps of f(x).
double error_in_ulps(Function function, double x, double y) {
  const Quad truth = function == Function::exp ? Quad{exp(Quad{x})} : Quad{log(Quad{x})};
  const int exponent = std::max(static_cast<int>(ilogb(truth)), -1022);
  return static_cast<double>(ldexp(abs(Quad{y} - truth), 52 - exponent));
}

TEST(ExpAndLogInFp64, HandleSpecialArguments) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto exp_of = [](double x) { return exp_of_nonpositive(Scalar<fp64>{x}).v; };
  const auto log_of = [](double x) { return log(Scalar<fp64>{x}).v; };
  for (const double x : {0.0, -0.0, -0x1p-1074}) EXPECT_EQ(to_bits(exp_of(x)), to_bits(1.0)) << x;
  for (const double x : {-inf, -746.0, -1e300}) EXPECT_EQ(to_bits(exp_of(x)), to_bits(0.0)) << x;
  EXPECT_EQ(exp_of(-745.13), 0x1p-1074) << "the smallest subnormal number";
  EXPECT_EQ(exp_of(-745.14), 0);
  EXPECT_TRUE(std::isnan(exp_of(std::nan(""))));
  EXPECT_TRUE(std::isnan(exp_of(-std::nan(""))));
  EXPECT_EQ(to_bits(log_of(1)), to_bits(0.0));
  EXPECT_EQ(log_of(0.0), -inf);
  EXPECT_EQ(log_of(-0.0), -inf);
  EXPECT_EQ(log_of(inf), inf);
  for (const double x : {-0x1p-1074, -1.0, -inf, std::nan("")}) EXPECT_TRUE(std::isnan(log_of(x))) << x;
  EXPECT_EQ(log_of(0x1p-1074), -1074 * std::numbers::ln2);
}

/// Results that lie closest to a midpoint of two numbers of fp64, or to one of them (Lefèvre and Muller 2001,
/// Worst cases for correct rounding of the elementary functions in double precision).
constexpr double hard_for_exp[] = {-0x1.cfe1414305ccfp+8,  -0x1.d9086e5a6bf62p+8,  -0x1.f1403e6266858p+8,
                                   -0x1.f3a5968504637p+3,  -0x1.ce78c7e9f0456p-22, -0x1.d3af2f1ccb12ap-1,
                                   -0x1.fb97d4fcdc24fp-12, -0x1.ff43ee151a114p+4,  -0x1.dbafa69df3ddfp+8,
                                   -0x1.f9a7b9bbeb691p+6,  -0x1.e0754b2e01d77p+7,  -0x1.d1c3843f75e33p+0};
constexpr double hard_for_log[] = {0x1.a6ae5142326b5p+0,  0x1.1e852e6951306p+1,  0x1.c877cba59d0acp+0,
                                   0x1.ffcd1f1e0c16fp+1,  0x1.2d26e1ebebee6p+2,  0x1.ef1bd0261ae97p+22,
                                   0x1.70945ecdc0194p+28, 0x1.f9bd207cafe2fp+38, 0x1.863e449c53727p+40,
                                   0x1.0000000007b27p+0,  0x1.fffffffffff7fp-1,  0x1.ffffffffffd27p-1};

TEST(ExpAndLogInFp64, AreWithinTheirBounds) {
  double of_exp = 0, of_log = 0;
  const auto look_at_exp = [&](double x) {
    of_exp = std::max(of_exp, error_in_ulps(Function::exp, x, exp_of_nonpositive(Scalar<fp64>{x}).v));
  };
  const auto look_at_log = [&](double x) {
    of_log = std::max(of_log, error_in_ulps(Function::log, x, log(Scalar<fp64>{x}).v));
  };
  for (const double x : hard_for_exp) look_at_exp(x);
  for (const double x : hard_for_log) look_at_log(x);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    look_at_exp(argument_in_fp64(Function::exp, i));
    const double x = argument_in_fp64(Function::log, i);
    if (x < infinity) look_at_log(x);
    // Reduced arguments at the ends of their range, where errors are largest.
    look_at_exp(-std::numbers::ln2 * (static_cast<double>(i % 1000) + 0.5) -
                0x1p-20 * static_cast<double>(i));
    look_at_log(2.0 / 3 * (1 + 0x1p-16 * static_cast<double>(i)));
  }
  EXPECT_LE(of_exp, exp_ulps<fp64>);
  EXPECT_LE(of_log, log_ulps<fp64>);
  EXPECT_GT(of_exp, 0.8) << "the bound is far above the errors";
  EXPECT_GT(of_log, 0.7);
}

TEST(ExpAndLogInFp64, HaveTheSameBitsInEveryInstructionSetAndPack) {
  const bool all = std::getenv("SAMESUM_LONG_TESTS");
  const std::size_t size = 64'000;
  std::vector<double> x(size), y(size);
  for (const GoldenDigest& golden : golden_digests_in_fp64)
    for_each_loop<double>(golden.function, [&](auto loop, const std::string& name) {
      std::uint64_t digest = 0;
      const std::uint64_t count = all ? all_in_fp64 : some_in_fp64;
      for (std::uint64_t begin = 0; begin < count; begin += size) {
        for (std::size_t i = 0; i < size; ++i) x[i] = argument_in_fp64(golden.function, begin + i);
        loop(x.data(), y.data(), size);
        for (std::size_t i = 0; i < size && begin + i < count; ++i) digest += share(x[i], y[i]);
      }
      EXPECT_EQ(digest, all ? golden.of_all : golden.of_some) << name << ": 0x" << std::hex << digest;
    });
}

}  // namespace
}  // namespace samesum
