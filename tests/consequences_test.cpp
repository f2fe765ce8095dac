/// Runs the experiment on consequences from a shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "harness/downstream/downstream.hpp"
#include "harness/schema.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::read;
using testing_support::write;

/// A shell whose folder `data` has a short recording of a Moon on an orbit that is nearly a circle.
class Consequences : public ::testing::Test {
 protected:
  Consequences() {
    std::filesystem::create_directory(shell_.work() / "data");
    std::vector<double> c(400 * 39, 0);
    for (std::size_t i = 0; i < 400; ++i) c[i * 39] = 385e3 + 1e3 * static_cast<double>(i * i % 29);
    const std::string head = "{'descr': '<f8', 'fortran_order': False, 'shape': (400, 3, 13), }";
    std::string file =
        std::string{"\x93NUMPY\x01\x00\x76\x00", 10} + head + std::string(117 - head.size(), ' ') + '\n';
    file.append(reinterpret_cast<const char*>(c.data()), 8 * c.size());
    write(shell_.work() / "data/moon.npy", file);
  }

  Outcome run(const std::string& arguments) const {
    return shell_.run(SAMESUM_PROGRAMS "/consequences " + arguments + " --runs " + std::to_string(runs_));
  }
  std::vector<Json> rows(const std::string& arguments) const {
    const Outcome o = run("--data data --json " + arguments);
    EXPECT_EQ(o.code, 0) << o.err;
    std::vector<Json> all;
    for (const std::string& line : lines(o.out)) all.push_back(Json::parse(line));
    if (!all.empty()) all.erase(all.begin());
    return all;
  }

  testing_support::Shell shell_;
  int runs_ = 1;
};

TEST_F(Consequences, AreRowsThatFitTheSchemaAndContinue) {
  const std::string some = "--filter 'exact/fp32@cpu' --out out";
  const std::vector<Json> first = rows(some);
  ASSERT_THAT(first, SizeIs(has_linear_algebra() ? 2 + 1 + 3 : 3));
  for (const Json& row : first) {
    EXPECT_EQ(schema().problem(row, row["kind"]), "");
    EXPECT_EQ(row["distinct_bits"], 1);
    EXPECT_FALSE(row["broken"]);
  }
  EXPECT_EQ(rows(some), first) << "rows are read back: measured runs would differ";
}

TEST_F(Consequences, OfASumThatPromisesEverywhereAreTheSameOnEveryBackend) {
  const std::vector<Json> all = rows("--filter 'tree/plain/fp32@cpu,tree/plain/fp32@reference'");
  std::map<std::string, std::set<std::string>> bits;
  for (const Json& row : all)
    bits[row["kind"].get<std::string>() + row["data"].get<std::string>() + row.value("quantity", "")].insert(
        row["bits"]);
  EXPECT_THAT(bits, SizeIs(has_linear_algebra() ? 6 : 3));
  for (const auto& [what, answers] : bits) EXPECT_THAT(answers, SizeIs(1)) << what;
}

/// Arrival order varies between runs, so some run gives another answer.
TEST_F(Consequences, OfArrivalOrderVaryBetweenRuns) {
  if (!has_linear_algebra()) GTEST_SKIP() << "the solver needs Eigen";
  int most = 0;
  runs_ = 100;
  for (int seed = 1; seed <= 40 && most < 2; ++seed)
    for (const Json& row : rows("--filter atomic/plain/fp64 --seed " + std::to_string(seed)))
      most = std::max(most, row["distinct_bits"].get<int>());
  EXPECT_GT(most, 1);
}

TEST_F(Consequences, FailTheExperimentIfAPromiseIsBroken) {
  const std::string command = "--data data --filter exact/fp16 --out out";
  EXPECT_EQ(run(command).code, 0);
  const std::filesystem::path file = shell_.work() / "out/consequences.jsonl";
  std::string text = read(file);
  const std::string claim = R"("broken":false)";
  write(file, text.replace(text.rfind(claim), claim.size(), R"("broken":true)"));
  const Outcome o = run(command);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(lines(o.err),
              AllOf(SizeIs(1), Each(HasSubstr("exact/fp16@cpu: promises order_free but gave"))));
}

TEST_F(Consequences, FailTheExperimentIfBackendsDiffer) {
  const std::string command =
      "--data data --filter 'tree/plain/fp16@cpu,tree/plain/fp16@reference' --out out";
  EXPECT_EQ(run(command).code, 0);
  const std::filesystem::path file = shell_.work() / "out/consequences.jsonl";
  std::string text = read(file);
  const std::size_t at = text.rfind(R"("bits":"0x)") + 10;
  write(file, text.replace(at, 1, text[at] == '4' ? "3" : "4"));
  const Outcome o = run(command);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("tree/plain/fp16@reference: bits differ from those on another backend"));
}

TEST_F(Consequences, AreShownInATableOf80Columns) {
  const Outcome o = run("--data data --filter 'exact/fp??,serial/plain/fp32,tree/plain/bf16'");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(o.out, HasSubstr("two passes"));
}

TEST_F(Consequences, WithoutTheRecordingStateHowToMakeIt) {
  const Outcome o = run("--filter exact/fp32");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(lines(o.err)[0],
              AllOf(HasSubstr("build/study/data/moon.npy does not exist"), HasSubstr("datasets.py")));
  EXPECT_THAT(o.out, HasSubstr("without the network and the recording: "));
  const Outcome recorded = run("--filter exact/fp32 --json");
  EXPECT_THAT(Json::parse(lines(recorded.out)[0])["left_out"][0].get<std::string>(),
              StartsWith("without the network and the recording: build/study/data/moon.npy does not exist"));
  EXPECT_EQ(schema().problem(Json::parse(lines(recorded.out)[0]), "study"), "");
  const Outcome nothing = run("--filter exact/fp16");
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(lines(nothing.err),
              AllOf(SizeIs(1), Each(AllOf(HasSubstr("--filter: 'exact/fp16' leaves nothing to measure"),
                                          HasSubstr("moon.npy does not exist")))));
  const Outcome asked = run("--filter exact/fp16 --data nowhere");
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, StartsWith("consequences: --data: nowhere/moon.npy does not exist; "));
  EXPECT_THAT(lines(asked.err), SizeIs(1));
  write(shell_.work() / "data/moon.npy", "no array");
  EXPECT_EQ(run("--filter exact/fp16 --data data").code, 2);
}

TEST_F(Consequences, AreMeasuredForOurMethodsOnly) {
  EXPECT_EQ(run("--data data --filter 'x*'").code, 2);
  EXPECT_EQ(run("--data data --filter 'loop/fp32@peer'").code, 2);
  runs_ = 0;
  EXPECT_EQ(run("--data data --filter exact").code, 2);
}

}  // namespace
}  // namespace samesum::harness
