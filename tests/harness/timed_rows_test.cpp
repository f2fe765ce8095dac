/// Tests of rows that several processes time: their rounds, what is derived from them, and interrupted runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/schema.hpp"
#include "harness/study.hpp"
#include "harness/timed_row.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::Folder;
using testing_support::lines;
using testing_support::read;

const Schema& schema_of_laps() {
  static const Schema schema{Json::parse(R"({"$defs": {
    "lap": {"description": "The laps of a runner", "properties": {
      "kind": {"const": "lap"}, "runner": {"type": "integer"}, "seconds": {"type": "number"},
      "low": {"type": "number"}, "high": {"type": "number"}, "turns": {"type": "integer"},
      "rounds": {"type": "array"}, "verified": {"type": ["boolean", "null"]}, "name": {"type": "string"},
      "times_first": {"type": "number"}},
      "required": ["kind", "runner", "seconds", "low", "high", "turns", "rounds", "times_first"],
      "additionalProperties": false}}})")};
  return schema;
}

/// Runners 0 and 1 take turns, and then 2 and 3. A lap takes the number of the process in seconds, or the
/// square of it for odd runners.
class Laps : public ::testing::Test {
 protected:
  struct Run {
    int code, pairs;  ///< number of pairs that were timed
    std::string out, err;
  };

  /// Runs with these arguments. Stops with an exception in the given pair; fails the checks in a process.
  Run run(std::vector<const char*> arguments, int process = 1, int stop_in = -1, int wrong_in = -1) const {
    arguments.insert(arguments.begin(), "laps");
    arguments.insert(arguments.end(), {"--out", out_.c_str()});
    Study study{"laps", "How long do laps take?", "With a watch.", {"lap"}, "  laps", schema_of_laps()};
    study.add_processes();
    int pairs = 0;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = study.run(static_cast<int>(arguments.size()), arguments.data(), [&](Study& s) {
      for (const int pair : {0, 1}) {
        const std::vector<Json> keys{key_of(2 * pair), key_of(2 * pair + 1)};
        const auto measure = [&](std::vector<Json>& rows) {
          if (pair == stop_in) throw std::runtime_error{"it rains"};
          ++pairs;
          const double lap = process;
          for (std::size_t i = 0; i < rows.size(); ++i) {
            if (processes_of(rows[i]) == 0) rows[i]["name"] = "of process " + std::to_string(process);
            const double seconds = i == 0 ? lap : lap * lap;
            add_process(rows[i], {"", 0, process != wrong_in, {seconds, seconds, seconds + 1e-7}});
          }
        };
        const auto derive = [](std::vector<Json>& rows) {
          for (Json& row : rows)
            row["times_first"] = ratio_of_rounds(rounds_of(row), rounds_of(rows.front())).median;
        };
        for (const Json& row : s.rows_in_turns(keys, measure, derive)) {
          s.print(row["runner"].dump() + ": " + row["seconds"].dump());
          if (row["verified"] == Json(false)) s.fail("runner " + row["runner"].dump());
        }
      }
    });
    const std::string out = ::testing::internal::GetCapturedStdout();
    return {code, pairs, out, ::testing::internal::GetCapturedStderr()};
  }
  /// Runs as one of three processes.
  Run run_as(int process, int stop_in = -1, int wrong_in = -1) const {
    const std::string number = std::to_string(process);
    return run({"--processes", "3", "--process", number.c_str()}, process, stop_in, wrong_in);
  }
  static Json key_of(int runner) { return {{"kind", "lap"}, {"runner", runner}}; }

  std::vector<Json> rows() const {
    std::vector<Json> all;
    for (const std::string& line : lines(read(file_))) all.push_back(Json::parse(line));
    all.erase(all.begin());
    return all;
  }
  /// The fields of all rows.
  std::vector<Json> each(const char* field) const {
    std::vector<Json> all;
    for (const Json& row : rows()) all.push_back(row[field]);
    return all;
  }

  Folder folder_;
  std::string out_ = folder_ / "out", file_ = folder_ / "out/laps.jsonl";
};

TEST_F(Laps, OfOneProcessHaveTheIntervalOfTheirRounds) {
  EXPECT_EQ(run({}, 2).out, "0: 2.0\n1: 4.0\n2: 2.0\n3: 4.0\n");
  const Json row = rows().at(1);
  EXPECT_EQ(row["rounds"], Json::parse("[[4.0, 4.0, 4.0]]")) << "of 4.0000001, five digits are kept";
  EXPECT_EQ(row["low"], 4);
  EXPECT_EQ(row["times_first"], 2);
  EXPECT_THAT(each("turns"), ElementsAre(1, 1, 2, 2));
  const Json header = Json::parse(lines(read(file_)).at(0));
  EXPECT_FALSE(header.contains("options"));
}

TEST_F(Laps, OfSeveralProcessesAreAddedToTheRowsInTheirPlaces) {
  for (const int process : {1, 2, 3}) EXPECT_EQ(run_as(process).pairs, 2);
  EXPECT_EQ(Json::parse(lines(read(file_)).at(0))["options"], Json::parse(R"({"processes": 3})"));
  EXPECT_THAT(each("runner"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(each("turns"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(each("name"), ::testing::Each(Json("of process 1"))) << "this is measured once";
  for (const Json& row : rows()) {
    const Interval time = median_interval(rounds_of(row));
    EXPECT_EQ(processes_of(row), 3u);
    EXPECT_EQ(row["seconds"], time.median);
    EXPECT_EQ(row["low"], time.low);
    EXPECT_EQ(row["high"], time.high);
  }
  const Json row = rows().at(1);
  EXPECT_EQ(row["rounds"], Json::parse("[[1.0, 1.0, 1.0], [4.0, 4.0, 4.0], [9.0, 9.0, 9.0]]"));
  EXPECT_EQ(row["seconds"], 4);
  EXPECT_EQ(row["times_first"], 2) << "the median of 1, 2 and 3";
}

TEST_F(Laps, OfAnInterruptedRunAreContinuedInTheProcessThatWasStopped) {
  run_as(1);
  EXPECT_EQ(run_as(2, 1).code, 2);
  std::vector<std::size_t> processes;
  for (const Json& row : rows()) processes.push_back(processes_of(row));
  EXPECT_THAT(processes, ElementsAre(2, 2, 1, 1));
  EXPECT_EQ(run_as(1).pairs, 0);
  EXPECT_EQ(run_as(2).pairs, 1);
  EXPECT_EQ(run_as(3).pairs, 2);
  const std::string whole = read(file_);
  const Run again = run_as(3);
  EXPECT_EQ(again.pairs, 0);
  EXPECT_EQ(again.out, "0: 2.0\n1: 4.0\n2: 2.0\n3: 4.0\n");
  EXPECT_EQ(read(file_), whole);
}

TEST_F(Laps, ThatLackARowAreMeasuredAgainWithANewNumberOfTurns) {
  run_as(1), run_as(2);
  const std::string whole = read(file_);
  testing_support::write(file_, whole.substr(0, whole.find(R"({"kind":"lap","runner":1)")) +
                                    whole.substr(whole.find(R"({"kind":"lap","runner":2)")));
  EXPECT_EQ(run_as(1).pairs, 1);
  EXPECT_THAT(each("runner"), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(each("turns"), ElementsAre(2, 2, 3, 3));
}

TEST_F(Laps, AreVerifiedIfEveryProcessVerifiesThem) {
  EXPECT_EQ(run_as(1).code, 0);
  EXPECT_THAT(each("verified"), ::testing::Each(Json(true)));
  const Run second = run_as(2, -1, 2), third = run_as(3);
  EXPECT_THAT(each("verified"), ::testing::Each(Json(false)));
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, IsEmpty()) << "the last process says it";
  EXPECT_EQ(third.code, 1);
  EXPECT_THAT(third.err, HasSubstr("check failed: runner 0"));
}

TEST_F(Laps, OfAnotherNumberOfProcessesAreMovedAside) {
  run_as(1);
  const Run one = run({});
  EXPECT_EQ(one.pairs, 2);
  EXPECT_THAT(one.err, HasSubstr("has other settings"));
}

TEST(Processes, NeedAFolderAndANumber) {
  for (const auto& [arguments, message] :
       {std::pair{std::vector<const char*>{"laps", "--processes", "2"}, "--processes: needs --out DIR"},
        std::pair{std::vector<const char*>{"laps", "--processes", "0"}, "--processes"}}) {
    Study study{"laps", "How long do laps take?", "With a watch.", {"lap"}, "  laps", schema_of_laps()};
    study.add_processes();
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(study.run(3, arguments.data(), [](Study&) { FAIL(); }), 2);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace samesum::harness
