/// Tests the ladder on a CPU, kernel by kernel and as a program, and the parsing of the profiler's output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include "harness/schema.hpp"
#include "harness/timed_row.hpp"
#include "ladder/profile.hpp"
#include "ladder_support.hpp"
#include "shell.hpp"

namespace samesum {
namespace {

using harness::Json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Ne;
using ::testing::SizeIs;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::read;
using testing_support::write;

// --- kernels ----------------------------------------------------------------------------------------

TEST(TheLadderOnACpu, IsCorrect) { ladder::expect_right(*harness::cpu_place(), ladder::cpu_kernels()); }

TEST(TheLadderOnACpu, KeepsItsBoundsOnElementsThatCancel) {
  ladder::expect_right_of_cancelling(*harness::cpu_place(), ladder::cpu_kernels());
}

TEST(TheLadderOnACpu, ScalesItsSumsOfExponentials) {
  ladder::expect_right_softmax(*harness::cpu_place(), ladder::cpu_kernels());
}

TEST(TheLadder, ListsEachKernelOnce) {
  std::set<std::pair<std::string, int>> seen;
  for (const ladder::Kernel& k : ladder::cpu_kernels()) {
    EXPECT_TRUE(seen.insert({k.demonstration + k.method, k.setting}).second) << k.method;
    EXPECT_GT(k.lesson.size(), 20u);
    EXPECT_EQ(k.length % k.multiple, 0u) << k.method;
    EXPECT_EQ(k.length == 0, k.demonstration.empty());
  }
}

/// Judges answers that are wrong, or that vary from run to run.
class AWrongKernel : public ::testing::Test {
 protected:
  ladder::Judgement judged(const std::vector<float>& answers, const std::string& method) const {
    for (const ladder::Kernel& k : ladder::cpu_kernels())
      if (k.method == method) return ladder::judge(k, answers, x_, truth_);
    throw std::logic_error{method};
  }
  static float next(float v) { return std::nextafter(v, 1e9f); }

  std::vector<float> x_ = ladder::elements(1000, 7);
  harness::Truth truth_{Values{x_}};
  float right_ = truth_.rounded(format_info<fp32>()).as<fp32>();
};

TEST_F(AWrongKernel, IsDetectedIfAnElementIsMissing) {
  EXPECT_TRUE(judged({right_}, "threads/fp32@cpu").holds());
  EXPECT_FALSE(judged({right_ - 0.25f}, "threads/fp32@cpu").within_bound);
  EXPECT_FALSE(judged({right_, right_ - 0.25f}, "threads/fp32@cpu").within_bound);
  EXPECT_FALSE(judged({std::nanf("")}, "threads/fp32@cpu").holds());
}

TEST_F(AWrongKernel, IsDetectedIfBitsChange) {
  EXPECT_TRUE(judged({right_, next(right_)}, "threads/fp32@cpu").holds()) << "this kernel promises nothing";
  const ladder::Judgement j = judged({right_, next(right_)}, "blocks/fp32@cpu");
  EXPECT_TRUE(j.broken);
  EXPECT_FALSE(j.holds());
  EXPECT_EQ(j.distinct_bits, 2u);
}

TEST_F(AWrongKernel, IsDetectedIfItsOrderDiffers) {
  const float in_turn = ladder::read_in_turn(x_, truth_);
  EXPECT_TRUE(judged({in_turn}, "loop/fp32@cpu").holds());
  const ladder::Judgement j = judged({next(in_turn)}, "loop/fp32@cpu");
  EXPECT_TRUE(j.within_bound);
  EXPECT_EQ(j.as_read, false);
}

TEST_F(AWrongKernel, IsDetectedIfItRoundsTwice) {
  EXPECT_TRUE(judged({right_}, "sum/exact/fp32@cpu").holds());
  EXPECT_FALSE(judged({next(right_)}, "sum/exact/fp32@cpu").within_bound);
}

TEST_F(AWrongKernel, IsDetectedInEveryElementOfAnArray) {
  const auto place = harness::cpu_place();
  for (ladder::Kernel k : ladder::cpu_kernels()) {
    if (k.expected == nullptr) continue;
    const std::size_t n = ladder::length_of(k, 100);
    const ladder::Workbench bench{*place, ladder::elements(n, 3), n, n};
    EXPECT_EQ(bench.problem(k, n), "");
    const auto run = k.run;
    k.run = [&](const ladder::Task& t) {
      run(t);
      t.out[n - 1] *= 1.25f;
    };
    EXPECT_THAT(bench.problem(k, n), HasSubstr("element " + std::to_string(n - 1)));
    k.run = [](const ladder::Task&) {};
    EXPECT_THAT(bench.problem(k, n), HasSubstr("element 0 is nan"));
  }
}

// --- the profiler -----------------------------------------------------------------------------------

TEST(AProfile, IsParsedFromTheOutputOfTheProfiler) {
  const std::string head =
      "==PROF== Connected to process 7\n"
      R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",)"
      R"("Device","CC","Section Name","Metric Name","Metric Unit","Metric Value")"
      "\n";
  const auto line = [](int id, const std::string& kernel, const std::string& metric,
                       const std::string& value) {
    std::string text;
    for (const std::string& field :
         {std::to_string(id), std::string{"7"}, std::string{"ladder"}, std::string{"127.0.0.1"}, kernel,
          std::string{"1"}, std::string{"7"}, std::string{"(1, 1, 1)"}, std::string{"(1, 1, 1)"},
          std::string{"0"}, std::string{"9.0"}, std::string{"Command line profiler metrics"}, metric,
          std::string{"%"}, value})
      text += (text.empty() ? "\"" : ",\"") + field + '"';
    return text + '\n';
  };
  const std::string branch = "smsp__sass_average_branch_targets_threads_uniform.pct",
                    cache = "l1tex__t_sector_hit_rate.pct", mark = "samesum::ladder::begin_of_kernel()";
  const auto found = ladder::profiles_in(
      head + line(0, mark, cache, "0") + line(0, mark, branch, "100") +
      line(1, "interleaved", cache, "12.5") + line(1, "interleaved", branch, "75") +
      line(2, "second launch", branch, "50") + line(3, mark, cache, "0") + line(3, mark, branch, "0") +
      line(4, "sequential", branch, "nan") + line(4, "sequential", cache, "n/a") +
      line(5, mark, branch, "0") + line(6, "shared", branch, "0") + line(6, "shared", cache, "0"));
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].branch_efficiency, 0.75);
  EXPECT_EQ(found[0].l1_hit_rate, 0.125);
  EXPECT_EQ(found[1].branch_efficiency, std::nullopt);
  EXPECT_EQ(found[1].l1_hit_rate, std::nullopt);
  EXPECT_EQ(found[2].branch_efficiency, std::nullopt) << "the kernel has no branches";
  EXPECT_EQ(found[2].l1_hit_rate, 0);
  EXPECT_THAT(ladder::profiles_in(""), IsEmpty());
  EXPECT_THAT(ladder::profiles_in("==ERROR== no permission\n"), IsEmpty());
}

// --- the program ------------------------------------------------------------------------------------

class TheLadderProgram : public ::testing::Test {
 protected:
  Outcome run(const std::string& arguments) const {
    return shell_.run(SAMESUM_PROGRAMS "/ladder " + arguments);
  }
  std::filesystem::path file() const { return shell_.work() / "out/ladder.jsonl"; }

  /// Changes the results file and runs the program again, which must report the change.
  Outcome changed(const std::string& from, const std::string& to) const {
    std::string text = read(file());
    write(file(), text.replace(text.rfind(from), from.size(), to));
    return run(some_);
  }

  testing_support::Shell shell_;
  const std::string some_ = "--filter 'loop,exact,window_in_register/fp32@cpu,add/fp32@cpu' --out out";
};

TEST_F(TheLadderProgram, GivesRowsThatFitTheSchemaAndContinues) {
  const Outcome first = run(some_ + " --json --seed 5");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, read(file()));
  const std::vector<std::string> all = lines(first.out);
  ASSERT_THAT(all, SizeIs(absent().empty() ? 1 + 8 : 1 + 6));
  EXPECT_EQ(harness::schema().problem(Json::parse(all[0]), "study"), "");
  std::set<std::string> kinds;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Json row = Json::parse(all[i]);
    const std::string kind = *kinds.insert(row["kind"]).first;
    EXPECT_EQ(harness::schema().problem(row, kind), "");
    EXPECT_EQ(row["seed"], 5);
    EXPECT_GT(row["seconds"], 0);
    EXPECT_GT(row["bytes"], 0);
    EXPECT_TRUE(row["branch_efficiency"].is_null());
    if (kind == "demonstration") {
      EXPECT_EQ(row["verified"], true);
    } else {
      EXPECT_EQ(
          row["read_share"],
          harness::ratio_of_rounds(harness::rounds_of(row, "read_rounds"), harness::rounds_of(row)).median);
    }
  }
  EXPECT_THAT(kinds, SizeIs(2));
  std::vector<std::string> again = lines(run(some_ + " --json --seed 5").out);
  ASSERT_EQ(again.size(), all.size());
  again[0] = all[0];  // the header has the date
  EXPECT_EQ(again, all) << "rows are read back: measured times would differ";
}

TEST_F(TheLadderProgram, ShowsTablesOf80Columns) {
  const Outcome o = run("--filter 'accumulators,exact,add'");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, IsEmpty());
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(o.out, AllOf(HasSubstr("accumulators 16"), HasSubstr("CPU, ceilings")));
  EXPECT_TRUE(std::filesystem::is_empty(shell_.work()));
}

TEST_F(TheLadderProgram, FailsIfACheckFails) {
  ASSERT_EQ(run(some_).code, 0);
  const std::string whole = read(file());
  for (const auto& [from, to, complaint] :
       {std::tuple{R"("within_bound":true)", R"("within_bound":false)", "the error exceeds its bound"},
        std::tuple{R"("as_read":true)", R"("as_read":false)", "bits differ from those of its declared order"},
        std::tuple{R"("broken":false)", R"("broken":true)", "promises order_free but gave several results"},
        std::tuple{R"("verified":true)", R"("verified":false)", "wrong result"}}) {
    write(file(), whole);
    const Outcome o = changed(from, to);
    EXPECT_EQ(o.code, 1);
    EXPECT_THAT(lines(o.err), AllOf(SizeIs(1), Each(HasSubstr(complaint))));
  }
}

TEST_F(TheLadderProgram, RefusesWrongArgumentsInOneLine) {
  for (const char* wrong :
       {"--filter nothing", "--filter 'loop,nothing'", "--filter loop --quick --full", "--seed x"}) {
    const Outcome o = run(wrong);
    EXPECT_EQ(o.code, 2) << wrong;
    EXPECT_THAT(lines(o.err), SizeIs(1));
  }
  EXPECT_THAT(run("--filter 'loop,nothing'").err, HasSubstr("'nothing' matches no kernel"));
}

TEST_F(TheLadderProgram, StatesWhyNothingWasProfiled) {
  const Outcome o = run("--filter loop --profile --out out");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("without branch efficiency and cache hit rates: no kernel of a GPU"));
  EXPECT_THAT(Json::parse(lines(read(file()))[0])["left_out"], SizeIs(1));
}

TEST_F(TheLadderProgram, HasAHelpTextThatExplainsItsColumns) {
  const Outcome o = run("--help");
  EXPECT_EQ(o.code, 0);
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(o.out, AllOf(HasSubstr("Rows of kind \"ladder\""), HasSubstr("Rows of kind \"demonstration\""),
                           HasSubstr("read_share"), HasSubstr("Williams, Waterman")));
  EXPECT_EQ(o.out.find("--launches"), std::string::npos) << "an internal option";
}

}  // namespace
}  // namespace samesum
