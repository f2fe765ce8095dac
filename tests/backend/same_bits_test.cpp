/// The promise `everywhere`: only the elements and their number determine the bits.
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <cstdlib>
#include <thread>

#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

/// A floating-point environment that a caller may have set.
struct Environment {
  const char* name;
  int rounding;
  unsigned flags;  // of MXCSR
};
constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x40;
constexpr Environment environments[] = {{"the default", FE_TONEAREST, 0},
                                        {"flush to zero", FE_TONEAREST, flush_to_zero},
                                        {"denormals are zero", FE_TONEAREST, denormals_are_zero},
                                        {"upward", FE_UPWARD, 0},
                                        {"downward", FE_DOWNWARD, 0},
                                        {"toward zero", FE_TOWARDZERO, 0},
                                        {"all at once", FE_UPWARD, flush_to_zero | denormals_are_zero}};

class InEnvironment {
 public:
  explicit InEnvironment(const Environment& e) {
    std::fegetenv(&saved_);
    std::fesetround(e.rounding);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | e.flags);
    set_ = _mm_getcsr();
#endif
  }
  ~InEnvironment() {
#if defined(__x86_64__)
    EXPECT_EQ(_mm_getcsr(), set_) << "the caller's environment was not restored";
#endif
    std::fesetenv(&saved_);
  }

 private:
  std::fenv_t saved_;
  [[maybe_unused]] unsigned set_ = 0;
};

/// Five leaves of a tree, four of which are summed side by side, and a partial leaf.
constexpr std::size_t leaves_and_more = 5 * 4096 + 37;

/// Returns a length at which threads share the work. Leaves are distributed in groups of 16, and exact sums
/// in pieces of 2^16 elements; the length has three of them, the last one incomplete. The other orders have a
/// single piece of any length, and are slow.
std::size_t length_for_threads(const Method& m) {
  const bool one_piece = !takes_no_order(m.accumulator) && shape_of(m).leaf == unbounded;
  return one_piece ? 10'003 : 2 * 65'536 + 4096 + 5;
}

std::vector<std::size_t> lengths(const Method& m) {
  std::vector<std::size_t> all{0, 1, 2, 3, 7, 8, 31, 32, 33, 127, 128, 129, 130, length_for_threads(m)};
  if (const Shape shape = shape_of(m); shape.leaf != unbounded)
    all.insert(all.end(), {shape.lanes - 1, shape.lanes, shape.lanes + 1, shape.leaf - 1, shape.leaf,
                           shape.leaf + 1, 2 * shape.leaf + 1, 3 * shape.leaf + 5});
  return all;
}

class EverySum : public ::testing::TestWithParam<const Method*> {
 protected:
  const Method& m = *GetParam();
};
INSTANTIATE_TEST_SUITE_P(Cpu, EverySum,
                         ::testing::ValuesIn(without_fp16_if_sanitized(sums_of("cpu", Promise::everywhere))),
                         test_name);

TEST_P(EverySum, HasTheBitsOfItsReferenceAtEveryLength) {
  for (const std::size_t n : lengths(m)) {
    const Array x{input_of(m), wide(n, 12, n)};
    EXPECT_EQ(m(x.values()), reference_of(m)(x.values())) << "n = " << n;
  }
}

TEST_P(EverySum, HasTheBitsOfItsReferenceOnEveryKindOfData) {
  for (const std::size_t n : {std::size_t{100}, leaves_and_more})
    for (const Dataset& d : datasets(n)) {
      if (n > 100 && (d.name == "harmonic" || d.name == "0.1" || d.name == "+0"))
        continue;  // more of the same
      const Array x{input_of(m), d.x};
      EXPECT_EQ(m(x.values()), reference_of(m)(x.values())) << d.name << ", n = " << n;
    }
}

TEST_P(EverySum, HasTheBitsOfItsReferenceForEveryInputFormat) {
  for (const FormatInfo& input : formats)
    for (const std::size_t n : {std::size_t{130}, leaves_and_more}) {
      if (!m.accepts(input)) continue;
      const Array x{input, wide(n, 40, n)};
      EXPECT_EQ(m(x.values()), reference_of(m)(x.values())) << input.name << ", n = " << n;
    }
}

TEST_P(EverySum, HasTheSameBitsForAnyNumberOfThreads) {
  SAMESUM_SANITIZED_IN_FP32(m);
  const std::size_t n = length_for_threads(m);
  const Array x{input_of(m),
                wide(n, 12, n)};  // the data that the test of lengths compares with the reference
  const Number expected = m(x.values(), {.threads = 1});
  for (const int threads : {0, 2, 3, 4, 8})
    EXPECT_EQ(m(x.values(), {.threads = threads}), expected) << threads << " threads";
}

TEST_P(EverySum, HasTheSameBitsAtEveryElementAlignedAddress) {
  const Array x{input_of(m), uniform(leaves_and_more, 4)};
  const Number expected = m(x.values());
  for (std::size_t offset = 1; offset * input_of(m).bytes < 64; offset += offset < 8 ? 1 : 3)
    EXPECT_EQ(m(x.at_offset(offset).values()), expected) << "offset " << offset;
}

TEST_P(EverySum, HasTheSameBitsInEveryEnvironmentOfTheCaller) {
  SAMESUM_SANITIZED_IN_FP32(m);
  const auto some = [](const FormatInfo& input, std::size_t n) {
    std::vector<double> data = wide(n, 30, 5);
    for (std::size_t i = 0; i < data.size(); i += 3) data[i] *= 4 * input.smallest_subnormal;
    return Array{input, data};
  };
  for (const FormatInfo& input : formats) {
    if (!m.accepts(input)) continue;
    const Array x = some(input, 4096 + 37), few = some(input, 300);
    const Number expected = reference_of(m)(x.values()), of_few = reference_of(m)(few.values());
    for (const Environment& e : environments) {
      const InEnvironment scope{e};
      EXPECT_EQ(m(x.values()), expected) << e.name << ", " << input.name;
      EXPECT_EQ(reference_of(m)(few.values()), of_few) << e.name << ", " << input.name << ", reference";
    }
  }
  const Array many = some(input_of(m), length_for_threads(m));
  const Number expected = m(many.values(), {.threads = 1});
  for (const Environment& e : environments) {
    const InEnvironment scope{e};
    EXPECT_EQ(m(many.values(), {.threads = 2}), expected) << e.name << ", two threads";
  }
}

TEST(TheCallersEnvironment, ChangesNoPartialNoEstimateAndNoBound) {
  SAMESUM_UNSANITIZED("it tests bits");
  std::vector<double> data = wide(300'001, 30, 5);
  for (std::size_t i = 0; i < data.size(); i += 3) data[i] *= Format<fp32>::smallest_subnormal;
  const Array x{format_info<fp32>(), data};
  const Array some{format_info<fp32>(), {data.begin(), data.begin() + 1000}};
  const auto everything = [&] {
    std::vector<std::byte> bytes = accumulate(x.values(), {.threads = 2}).serialise();
    const auto append = [&](const auto& more) {
      const auto* first = reinterpret_cast<const std::byte*>(&more);
      bytes.insert(bytes.end(), first, first + sizeof more);
    };
    for (const char* name : {"plain/fp32", "kahan/fp32", "neumaier/fp16", "double_word/bf16"}) {
      Partial partial{"tree/" + std::string{name}};
      for (int i = 0; i < 5; ++i) partial.add(some.values());
      const auto written = partial.serialise();
      bytes.insert(bytes.end(), written.begin(), written.end());
      append(partial.finish().bits);
      const Estimate e = estimate("tree/" + std::string{name}, some.values());
      append(e.value.bits);
      append(e.bound);
      append(e.magnitudes);
    }
    return bytes;
  };
  const auto expected = everything();
  for (const Environment& e : environments) {
    const InEnvironment scope{e};
    EXPECT_EQ(everything(), expected) << e.name;
  }
}

TEST(RandomCombinations, HaveTheBitsOfTheirReference) {
  std::mt19937_64 random{20'26};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<const Method*> promised = sums_of("cpu", Promise::everywhere);
  for (int round = 0; round < random_cases(1500); ++round) {
    const Method& m = *promised[below(promised.size())];
    const FormatInfo& input = formats[below(formats.size())];
    if (!m.accepts(input)) continue;
    const std::size_t n = below(std::size_t{1} << below(17));
    const int threads = static_cast<int>(1 + below(8));
    const Environment& environment = environments[below(std::size(environments))];
    const Array x{input, wide(n, static_cast<int>(1 + below(60)), random()), below(64 / input.bytes)};
    const Number expected = reference_of(m)(x.values());
    const InEnvironment scope{environment};
    ASSERT_EQ(m(x.values(), {.threads = threads}), expected)
        << m.name << " of " << input.name << ", n = " << n << ", " << threads << " threads, "
        << environment.name;
  }
}

TEST(Threads, ThatCallConcurrentlyDoNotAffectEachOther) {
  const Array x{format_info<fp32>(), uniform(2 * 65'536 + 4096 + 5, 9)};
  std::vector<std::thread> callers;
  for (const Method* m : sums_of("cpu", Promise::everywhere)) {
    if (m->order == "serial" || !m->accepts(format_info<fp32>())) continue;
    const Number expected = (*m)(x.values(), {.threads = 1});
    callers.emplace_back(
        [&x, m, expected] { EXPECT_EQ((*m)(x.values(), {.threads = 3}), expected) << m->name; });
    if (callers.size() == 4) {
      for (std::thread& caller : callers) caller.join();
      callers.clear();
    }
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Threads, ThatOutnumberTheProcessorsGiveTheSameBits) {
  const Array x{format_info<fp32>(), uniform(3'000'000, 10)};
  for (const char* name : {"tree/kahan/fp32", "exact/fp32"}) {
    const Method& m = find(name);
    const Number expected = m(x.values(), {.threads = 1});
    for (const int threads : {2, 40, 3, 100, 1})
      EXPECT_EQ(m(x.values(), {.threads = threads}), expected) << name;
  }
}

TEST(AProcessMadeByFork, SumsWithItsOwnThreadsAndExits) {
  SAMESUM_WITHOUT_THREAD_SANITIZER("it cannot follow threads into a process made by fork");
  const Array x{format_info<fp32>(), uniform(1'000'000, 11)};
  const Method& m = find("tree/plain/fp32");
  const Number expected = m(x.values(), {.threads = 1});
  for (int i = 0; i < (is_sanitized ? 10 : 40); ++i) {
    m(x.values(), {.threads = 8});  // its threads may still be starting
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a signal ends the child if it hangs
      std::_Exit(m(x.values(), {.threads = 8}) == expected ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child " << i;
  }
}

TEST(Threads, OfAnAtomicSumAddEveryElement) {
  // Every partial sum of ones is exact here, so every order gives the same result.
  const Array x{format_info<fp32>(), std::vector<double>(1'000'003, 1.0)};
  for (const Method* m : sums_of("cpu")) {
    if (m->order != "atomic" || m->format->precision < 20) continue;
    for (int threads = 1; threads <= 8; ++threads)
      EXPECT_EQ((*m)(x.values(), {.threads = threads}).to_double(), 1'000'003) << m->name;
  }
}

}  // namespace
}  // namespace samesum
