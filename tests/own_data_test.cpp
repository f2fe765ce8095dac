/// Runs own_data from a shell on several files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/schema.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::read;
using testing_support::Shell;
using testing_support::write;

/// Two valid files and an invalid one; $O runs own_data with a few methods.
class OwnData : public ::testing::Test {
 protected:
  OwnData() {
    setenv("O", SAMESUM_PROGRAMS "/own_data --filter */plain/fp64@cpu,exact@cpu", 1);
    write(shell_.work() / "tenths.txt", "0.1 0.2 0.3\n");
    write(shell_.work() / "cancel.csv", "1e16\n1\n-1e16\n");
    write(shell_.work() / "bad.txt", "1 two 3\n");
  }
  std::string results() const { return read(shell_.work() / "out/own_data.jsonl"); }

  Shell shell_;
};

TEST_F(OwnData, IsComparedFileByFile) {
  const Outcome o = shell_.run("$O tenths.txt cancel.csv --out out --json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, results());
  const std::vector<std::string> all = lines(o.out);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(schema().problem(Json::parse(all[0]), "study"), "");
  for (const std::size_t i : {1, 2}) EXPECT_EQ(schema().problem(Json::parse(all[i]), "comparison"), "");
  const Json cancel = Json::parse(all[2]);
  EXPECT_EQ(cancel["data"]["name"], "cancel.csv");
  EXPECT_EQ(cancel["data"]["n"], 3);
  EXPECT_EQ(cancel["recommendation"]["method"], "sum/exact/fp64@cpu");
  EXPECT_EQ(cancel["methods"][0]["value"], 1) << "methods are sorted by error";
  EXPECT_EQ(cancel["methods"].back()["value"], 0) << "a loop has the largest error";
}

TEST_F(OwnData, IsShownInATableOf80ColumnsWithAdvice) {
  const Outcome o = shell_.run("$O tenths.txt cancel.csv");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, IsEmpty()) << "progress is shown on terminals only";
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(
      o.out,
      AllOf(HasSubstr("tenths.txt: 3 elements of fp64\nexact sum 0.6"), HasSubstr(" condition number 1\n"),
            HasSubstr("rel.err, bound: error and its rigorous bound, relative to the exact sum\n"),
            HasSubstr("\nUse exact/fp64")));
}

TEST_F(OwnData, HasTheTableOfCompareEvenWhenItIsReadBack) {
  write(shell_.work() / "large.txt", "1e10 2e10 3.1e10\n");
  const auto untimed = [](const std::string& table) {
    std::vector<std::string> all = lines(table);
    for (std::string& line : all) line.resize(std::min<std::size_t>(line.size(), 66));
    return all;
  };
  const std::string methods = "'tree/plain/*@cpu,exact@cpu'";
  std::vector<std::string> expected =
      untimed(shell_.run(SAMESUM_TOOL " compare large.txt --all --methods " + methods).out);
  const std::string command = SAMESUM_PROGRAMS "/own_data large.txt --out out --filter " + methods;
  const std::string first = shell_.run(command).out;
  EXPECT_EQ(shell_.run(command).out, first) << "the second run prints the times of the first";
  std::vector<std::string> got = untimed(first);
  std::ranges::sort(got), std::ranges::sort(expected);  // equal errors are sorted by time
  got.erase(got.begin());                               // the line that separates files
  EXPECT_EQ(got, expected);
  EXPECT_THAT(first, HasSubstr("tree/plain/bf16"));
}

TEST_F(OwnData, ThatCannotBeReadIsNamedAndTheRestIsMeasured) {
  const Outcome o = shell_.run("$O bad.txt tenths.txt missing.npy cancel.csv --out out");
  EXPECT_EQ(o.code, 2);
  ASSERT_THAT(lines(o.err), SizeIs(2));
  EXPECT_THAT(lines(o.err)[0], AllOf(HasSubstr("own_data: bad.txt"), HasSubstr("two")));
  EXPECT_THAT(lines(o.err)[1], HasSubstr("own_data: missing.npy"));
  EXPECT_THAT(lines(results()), SizeIs(3));
}

TEST_F(OwnData, IsMeasuredAgainOnlyIfItChanged) {
  shell_.run("$O tenths.txt cancel.csv --out out");
  const std::string first = results();
  EXPECT_EQ(shell_.run("$O tenths.txt cancel.csv --out out").code, 0);
  EXPECT_EQ(results(), first);
  write(shell_.work() / "tenths.txt", "0.1 0.2 0.4\n");
  EXPECT_EQ(shell_.run("$O tenths.txt cancel.csv --out out").code, 0);
  EXPECT_THAT(results(), ::testing::StartsWith(first));
  EXPECT_THAT(lines(results()), SizeIs(4));
  std::size_t rows = 4;
  for (const char* same_magnitudes : {"0.4 0.2 0.1\n", "-0.1 -0.2 -0.4\n"}) {
    write(shell_.work() / "tenths.txt", same_magnitudes);
    EXPECT_EQ(shell_.run("$O tenths.txt cancel.csv --out out").code, 0);
    EXPECT_THAT(lines(results()), SizeIs(++rows)) << same_magnitudes;
  }
  const Json last = Json::parse(lines(results()).back());
  EXPECT_LT(last["methods"][0]["value"], 0);
}

TEST_F(OwnData, WithABrokenPromiseIsAFailure) {
  shell_.run("$O tenths.txt --out out");
  std::string text = results();
  const std::string none = R"("failures":[])";
  ASSERT_THAT(text, HasSubstr(none));
  write(shell_.work() / "out/own_data.jsonl",
        text.replace(text.find(none), none.size(), R"("failures":["it was"])"));
  const Outcome o = shell_.run("$O tenths.txt --out out");
  EXPECT_EQ(o.code, 1);
  EXPECT_EQ(o.err, "own_data: check failed: tenths.txt: it was\n");
}

TEST_F(OwnData, RefusesWrongUsageInOneLine) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "files is required"},
           {"tenths.txt --filter 'x*'", "--filter: 'x*' matches no method"},
           {"tenths.txt --format fp8", "'fp8'"},
           {"tenths.txt --threads -1", "--threads: -1 is negative"},
           {"tenths.txt --out /dev/null", "--out: /dev/null"},
           {"tenths.txt --format bf16 --filter 'loop/*@peer'", "takes bf16"}}) {
    const Outcome o = shell_.run(SAMESUM_PROGRAMS "/own_data " + arguments);
    EXPECT_EQ(o.code, 2) << arguments;
    EXPECT_THAT(o.err, HasSubstr(message));
    EXPECT_THAT(lines(o.err), SizeIs(1)) << o.err;
  }
}

}  // namespace
}  // namespace samesum::harness
