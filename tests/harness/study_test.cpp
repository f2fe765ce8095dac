#include "harness/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "harness/names.hpp"
#include "harness/schema.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing_support::Folder;
using testing_support::lines;
using testing_support::read;

struct StudyOutcome {
  int code, measured;  ///< number of rows measured, rather than read
  std::string out, err;
};

Json key_of(int i) { return {{"kind", "square"}, {"i", i}}; }

const Schema& schema_of_squares() {
  static const Schema schema{Json::parse(R"({"$defs": {"square": {
    "description": "A number and its square",
    "properties": {"kind": {"const": "square"},
                   "i": {"description": "What is squared, in m", "type": "integer"},
                   "corner": {"description": "Optional", "type": "string"},
                   "square": {"description": "The square of it, in m^2", "type": "integer"}},
    "required": ["kind", "i", "square"], "additionalProperties": false}}})")};
  return schema;
}

Study study_of_squares() {
  return {"squares",  "How large are squares?", "By the rule of the rectangle (Euclid, book I).",
          {"square"}, "  squares --quick",      schema_of_squares()};
}

/// Runs an experiment, with command-line arguments, that squares the numbers below `rows`.
StudyOutcome squares(std::vector<const char*> arguments, int rows = 4) {
  arguments.insert(arguments.begin(), "squares");
  int measured = 0;
  Study study = study_of_squares();
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = study.run(static_cast<int>(arguments.size()), arguments.data(), [&](Study& s) {
    s.expect(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i) {
      const Json row = s.row(key_of(i), [&] { return Json{{"square", (++measured, i * i)}}; });
      s.print(std::to_string(i) + " squared is " + row["square"].dump());
    }
  });
  const std::string out = ::testing::internal::GetCapturedStdout();
  return {code, measured, out, ::testing::internal::GetCapturedStderr()};
}

int code_of(const std::function<void(Study&)>& experiment, std::string& err) {
  Study study = study_of_squares();
  const char* arguments[] = {"squares"};
  ::testing::internal::CaptureStderr();
  const int code = study.run(1, arguments, experiment);
  err = ::testing::internal::GetCapturedStderr();
  return code;
}

// --- output --------------------------------------------------------------------------------------

TEST(AStudy, PrintsATableAndWritesNothingByDefault) {
  const StudyOutcome o = squares({});
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.out, "0 squared is 0\n1 squared is 1\n2 squared is 4\n3 squared is 9\n");
  EXPECT_THAT(o.err, IsEmpty()) << "progress is shown on terminals only";
}

TEST(AStudy, PrintsTheLinesOfItsFileIfAskedForJson) {
  const Folder folder;
  const std::string path = folder / "new/folder";
  const StudyOutcome o = squares({"--json", "--out", path.c_str()});
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.out, read(folder / "new/folder/squares.jsonl"));
  ASSERT_EQ(lines(o.out).size(), 5u);
  EXPECT_EQ(lines(o.out)[4], R"({"kind":"square","i":3,"square":9})");
}

TEST(AStudy, BeginsItsFileWithAHeaderThatFitsTheSchema) {
  for (const char* name : {"error_vs_length", "spread_over_runs", "speed_vs_length"}) {
    Study study{name, "Why?", "", {"square"}, "", schema_of_squares()};
    ::testing::internal::CaptureStdout();
    const std::vector<const char*> arguments{name, "--full", "--seed", "7", "--filter", "exact", "--json"};
    EXPECT_EQ(study.run(static_cast<int>(arguments.size()), arguments.data(),
                        [](Study& s) { s.row(key_of(0), [] {
                                         return Json{{"square", 0}};
                                       }); }),
              0);
    const Json header = Json::parse(lines(::testing::internal::GetCapturedStdout())[0]);
    EXPECT_EQ(schema().problem(header, "study"), "");
    EXPECT_EQ(header["mode"], "full");
    EXPECT_EQ(header["seed"], 7);
    EXPECT_EQ(header["filter"], "exact");
    Json broken = header;
    broken.erase("mode");
    EXPECT_NE(schema().problem(broken, "study"), "");
  }
}

TEST(AStudy, HasAHelpTextOf80Columns) {
  const StudyOutcome o = squares({"--help"});
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.measured, 0);
  EXPECT_THAT(o.err, IsEmpty());
  EXPECT_THAT(o.out, HasSubstr("How large are squares?"));
  EXPECT_THAT(o.out, HasSubstr("How it is measured:\n  By the rule of the rectangle (Euclid, book I).\n"));
  EXPECT_THAT(o.out, HasSubstr("Rows of kind \"square\": A number and its square\n"));
  EXPECT_THAT(o.out, HasSubstr("\n  square            The square of it, in m^2\n"));
  EXPECT_THAT(o.out, HasSubstr("Examples:\n  squares --quick\n"));
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
}

TEST(AStudy, WithNothingToMeasureIsWrongUsage) {
  const Folder folder;
  const std::string out = folder / "out";
  const StudyOutcome o = squares({"--filter", "circles", "--out", out.c_str()}, 0);
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err, "squares: --filter: 'circles' leaves nothing to measure\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "out/squares.jsonl"));
}

// --- the results file ----------------------------------------------------------------------------

class AResultsFile : public ::testing::Test {
 protected:
  StudyOutcome run(std::vector<const char*> more = {}, int rows = 4) const {
    more.insert(more.end(), {"--out", out_.c_str()});
    return squares(more, rows);
  }
  std::string text() const { return read(file_); }
  void replace(const std::string& text) const { std::ofstream{file_, std::ios::binary} << text; }

  Folder folder_;
  std::string out_ = folder_ / "out", file_ = folder_ / "out/squares.jsonl";
};

TEST_F(AResultsFile, IsContinuedWithTheMissingRows) {
  EXPECT_EQ(run({}, 3).measured, 3);
  const std::string before = text();
  const StudyOutcome again = run({}, 5);
  EXPECT_EQ(again.measured, 2);
  EXPECT_THAT(again.out, HasSubstr("2 squared is 4\n")) << "rows that are read are printed too";
  EXPECT_THAT(again.err, IsEmpty());
  EXPECT_THAT(text(), StartsWith(before));
  EXPECT_EQ(lines(text()).size(), 6u);
  EXPECT_EQ(run({}, 5).measured, 0);
}

TEST_F(AResultsFile, KeepsRowsMeasuredInTurnsTogetherOrNotAtAll) {
  const auto measured = [&](const char* more = "--quick") {
    int pairs = 0;
    Study study = study_of_squares();
    const char* const arguments[] = {"squares", "--out", out_.c_str(), more};
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(study.run(4, arguments,
                        [&](Study& s) {
                          for (const int i : {0, 2}) {
                            const auto rows = s.rows({key_of(i), key_of(i + 1)}, [&] {
                              ++pairs;
                              return std::vector<Json>{{{"square", i * i}}, {{"square", (i + 1) * (i + 1)}}};
                            });
                            EXPECT_EQ(rows.at(1)["square"], (i + 1) * (i + 1));
                          }
                        }),
              0);
    return std::pair{pairs, ::testing::internal::GetCapturedStdout()};
  };
  EXPECT_EQ(measured().first, 2);
  const std::string whole = text();
  EXPECT_EQ(measured("--json"), (std::pair{0, whole}));
  // A blank distinguishes a row that is read from one that is measured.
  std::vector<std::string> all = lines(whole);
  ASSERT_EQ(all.size(), 5u);
  all[1].insert(all[1].size() - 1, " ");
  for (const int kept : {3, 4}) {
    std::string with_blank = all[static_cast<std::size_t>(kept)];
    with_blank.insert(with_blank.size() - 1, " ");
    replace(all[0] + '\n' + all[1] + '\n' + all[2] + '\n' + with_blank + '\n');
    EXPECT_EQ(measured().first, 1);
    EXPECT_EQ(lines(text()), all) << "one pair is read, the other measured";
  }
}

TEST_F(AResultsFile, HasItsRowsPrintedAsJsonWhenItIsReadAgain) {
  run({}, 4);
  EXPECT_EQ(lines(run({"--json"}, 4).out).size(), 5u);
}

TEST_F(AResultsFile, KeepsItsDateWhenItIsReadAgain) {
  run();
  std::string old = text();
  const std::size_t date = old.find("\"date\":\"20");
  ASSERT_NE(date, std::string::npos);
  replace(old.replace(date, 10, "\"date\":\"19"));
  EXPECT_EQ(run({"--json"}).out, old) << "the file keeps the date of its rows";
  EXPECT_EQ(text(), old);
}

/// A broken line is reported with its error, and removed from the file before anything is measured.
class ABrokenLine : public AResultsFile {
 protected:
  ABrokenLine() { run(), whole_ = text(); }

  /// Returns the file with line 4, the row with i = 2, replaced by `line`.
  std::string with(const std::string& line) const {
    const std::size_t at = whole_.find(R"({"kind":"square","i":2)");
    return std::string{whole_}.replace(at, whole_.find('\n', at) - at, line);
  }
  void expect_complaint(const std::string& broken, const std::string& complaint) const {
    replace(broken);
    const StudyOutcome o = run();
    EXPECT_EQ(o.code, 0) << broken;
    EXPECT_EQ(o.measured, 1) << broken;
    EXPECT_THAT(lines(o.err),
                ElementsAre("squares: " + file_ + complaint + ": skipped, will be measured again"));
    std::vector<std::string> found = lines(text()), expected = lines(whole_);
    EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected)) << broken;
    EXPECT_EQ(run().measured, 0);
    EXPECT_THAT(run().err, IsEmpty());
  }

  std::string whole_;
};

TEST_F(ABrokenLine, AtTheEndIsMeasuredAgain) {
  for (const std::size_t cut : {1u, 2u, 20u})
    expect_complaint(whole_.substr(0, whole_.size() - cut), ":5: incomplete line");
}

TEST_F(ABrokenLine, InTheMiddleIsMeasuredAgainAndNoOther) {
  const std::string zeros(20, '\0');
  for (const std::string& garbage : {std::string{}, zeros, std::string{"\xff\xfe"}, std::string{"[1]"},
                                     std::string{R"({"kind":"square","i":2,"squ)"}})
    expect_complaint(with(garbage), ":4: not a JSON object");
}

TEST_F(ABrokenLine, MayBeARowThatDoesNotFitTheSchema) {
  expect_complaint(with(R"({"kind":"square","i":2})"), ":4: square: lacks the field square");
  expect_complaint(with(R"({"kind":"square","i":2,"square":"4"})"),
                   ":4: square.square: is not of type integer");
  expect_complaint(with(R"({"kind":"square","i":2,"square":4,"cube":8})"),
                   ":4: square: has the unknown field cube");
  expect_complaint(with(R"({"kind":"cube","i":2,"square":4})"), ":4: not a row of this experiment");
  expect_complaint(with(R"({"kind":2,"i":2,"square":4})"), ":4: not a row of this experiment");
  expect_complaint(with(R"({"i":2,"square":4})"), ":4: not a row of this experiment");
}

TEST_F(ABrokenLine, IsRemovedBeforeAnythingIsMeasured) {
  replace(with("garbage"));
  EXPECT_EQ(run({}, 1).measured, 0) << "the only row needed is intact";
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("garbage")));
  EXPECT_EQ(lines(text()).size(), 4u);
}

TEST_F(ABrokenLine, ThatIsTheHeaderMovesTheFileAside) {
  replace("{" + whole_);
  const StudyOutcome o = run();
  EXPECT_EQ(o.measured, 4);
  EXPECT_THAT(lines(o.err),
              ElementsAre("squares: " + file_ + ":1: not a JSON object: moved to " + file_ + ".old"));
  EXPECT_EQ(read(file_ + ".old"), "{" + whole_);
}

/// Each signal arrives while the third row is measured.
TEST_F(AResultsFile, LosesOnlyTheRowInProgressIfTheProgramIsStopped) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    std::filesystem::remove_all(out_);
    int under_way[2];
    ASSERT_EQ(pipe(under_way), 0);
    const pid_t child = fork();
    if (child == 0) {
      std::signal(signal, SIG_DFL);  // a shell that starts tests in the background ignores SIGINT
      Study study = study_of_squares();
      const char* arguments[] = {"squares", "--out", out_.c_str(), "--json"};
      ASSERT_TRUE(std::freopen("/dev/null", "w", stdout));
      study.run(4, arguments, [&](Study& s) {
        for (int i = 0; i < 4; ++i)
          s.row(key_of(i), [&] {
            if (i == 2 && ::write(under_way[1], "", 1) == 1) pause();
            return Json{{"square", i * i}};
          });
      });
      _exit(0);
    }
    char third;
    ASSERT_EQ(::read(under_way[0], &third, 1), 1);
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    close(under_way[0]), close(under_way[1]);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    EXPECT_EQ(lines(text()).size(), 3u) << "the header and two rows";
    const StudyOutcome o = run();
    EXPECT_EQ(o.measured, 2);
    EXPECT_THAT(o.err, IsEmpty());
    EXPECT_EQ(lines(text()).size(), 5u);
  }
}

TEST_F(AResultsFile, WithAnotherHeaderIsMovedAsideWithAMessage) {
  for (const std::vector<const char*>& other :
       {std::vector<const char*>{"--full"}, {"--seed", "2"}, {"--filter", "exact"}}) {
    run();
    const StudyOutcome o = run(other, 2);
    EXPECT_EQ(o.code, 0);
    EXPECT_EQ(o.measured, 2);
    EXPECT_THAT(o.err,
                HasSubstr("squares.jsonl: has other settings, another machine or another build: moved to "));
    EXPECT_EQ(lines(o.err).size(), 1u);
    EXPECT_EQ(lines(text()).size(), 3u);
  }
}

TEST_F(AResultsFile, WithAnotherValueOfARelevantOptionIsMovedAside) {
  const auto moved = [&](int runs) {
    const std::string folder = std::filesystem::path{file_}.parent_path();
    const char* arguments[] = {"squares", "--out", folder.c_str()};
    Study study = study_of_squares();
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(study.run(3, arguments,
                        [&](Study& s) {
                          s.expect(1);
                          s.depend_on("runs", runs);
                          s.row(key_of(0), [] { return Json{{"square", 0}}; });
                        }),
              0);
    return ::testing::internal::GetCapturedStderr() != "";
  };
  EXPECT_FALSE(moved(10));
  EXPECT_FALSE(moved(10));
  EXPECT_TRUE(moved(20));
}

TEST_F(AResultsFile, ThatWasMovedAsideIsNeverOverwritten) {
  run({"--seed", "1"});
  const std::string first = text();
  run({"--seed", "2"});
  const std::string second = text();
  EXPECT_THAT(run({"--seed", "3"}).err, HasSubstr("moved to " + file_ + ".old.2\n"));
  EXPECT_THAT(run({"--seed", "4"}).err, HasSubstr("moved to " + file_ + ".old.3\n"));
  EXPECT_EQ(read(file_ + ".old"), first);
  EXPECT_EQ(read(file_ + ".old.2"), second);
}

TEST_F(AResultsFile, OfAnotherCommitOrProcessorIsMovedAsideAndOfAnotherDayOrOtherClocksContinued) {
  run();
  Json header = Json::parse(lines(text())[0]);
  const auto with = [&](const char* key, const Json& value) {
    Json changed = header;
    changed["provenance"][key] = value;
    replace(json_line(changed) + text().substr(text().find('\n') + 1));
    return run().measured;
  };
  EXPECT_EQ(with("date", "2020-01-01T00:00:00Z"), 0);
  EXPECT_EQ(Json::parse(lines(text())[0])["provenance"]["date"], "2020-01-01T00:00:00Z");
  EXPECT_EQ(with("clocks", {{"cpu_mhz", 1}}), 0);
  EXPECT_EQ(Json::parse(lines(text())[0])["provenance"]["clocks"]["cpu_mhz"], 1);
  EXPECT_EQ(with("commit", "unknown to anyone"), 4);
  EXPECT_EQ(with("processor", {{"stepping", -1}}), 4);
}

TEST_F(AResultsFile, ThatHasOtherContentIsMovedAside) {
  run();
  for (const char* other :
       {"", "\n", "[1]\n", "no JSON", "{\"provenance\":1}\n", "{\"kind\":\"comparison\"}\n"}) {
    replace(other);
    const StudyOutcome o = run();
    EXPECT_EQ(o.measured, 4) << other;
    EXPECT_THAT(o.err, HasSubstr(": moved to " + file_ + ".old")) << other;
  }
}

TEST_F(AResultsFile, DistinguishesKeysWithACommonPrefix) {
  EXPECT_EQ(run({}, 2).measured, 2);
  const StudyOutcome o = run({}, 12);
  EXPECT_EQ(o.measured, 10);
  EXPECT_THAT(o.out, HasSubstr("1 squared is 1\n"));
  EXPECT_THAT(o.out, HasSubstr("10 squared is 100\n"));
}

TEST_F(AResultsFile, DistinguishesAKeyFromOneWithAnotherField) {
  const char* const arguments[] = {"squares", "--out", out_.c_str()};
  Json longer = key_of(2);
  longer["corner"] = "round";
  for (int run = 0; run < 2; ++run) {
    Study study = study_of_squares();
    EXPECT_EQ(study.run(3, arguments,
                        [&](Study& s) {
                          EXPECT_EQ(s.row(longer, [] { return Json{{"square", 5}}; })["square"], 5);
                          EXPECT_EQ(s.row(key_of(2), [] { return Json{{"square", 4}}; })["square"], 4);
                        }),
              0);
    EXPECT_EQ(lines(text()).size(), 3u);
  }
}

TEST(ARow, MustHaveItsKey) {
  std::string err;
  EXPECT_EQ(code_of([](Study& s) { s.row(key_of(1), [] { return key_of(2); }); }, err), 2);
  EXPECT_THAT(err, HasSubstr("another key"));
}

TEST(ARow, MustFitTheSchemaOfItsKind) {
  std::string err;
  EXPECT_EQ(code_of([](Study& s) { s.row(key_of(1), [] { return Json{{"cube", 1}}; }); }, err), 2);
  EXPECT_THAT(err, HasSubstr("does not fit the schema: square: lacks the field square"));
}

TEST(ARow, HasAFieldOfAllRowsAfterItsKey) {
  std::string err;
  EXPECT_EQ(
      code_of([](Study& s) { s.row(key_of(1), [] {
                               return Json{{"corner", "round"}, {"square", 1}};
                             }); },
              err),
      2);
  EXPECT_THAT(err, HasSubstr("has an optional field after its key"));
}

// --- errors --------------------------------------------------------------------------------------

TEST(AStudy, RefusesWrongUsageInOneLine) {
  const Folder folder;
  write_file(folder / "file", "");
  std::filesystem::create_directories(folder / "taken/squares.jsonl");
  const std::string file = folder / "file", below = folder / "file/below", taken = folder / "taken";
  const std::vector<std::pair<std::vector<const char*>, std::string>> bad{
      {{"--frobnicate"}, "--frobnicate"},
      {{"--quick", "--full"}, "--quick excludes --full"},
      {{"--out", ""}, "--out: '' is not a folder"},
      {{"--seed", "-1"}, "--seed"},
      {{"--seed", "one"}, "'one' is not a whole number"},
      {{"--seed", "9999999999999999999"}, "at most 18 digits"},
      {{"--seed"}, "--seed"},
      {{"surplus"}, "surplus"},
      {{"--out", file.c_str()}, "--out: " + file + ": cannot be written"},
      {{"--out", below.c_str()}, "--out: " + below + ": cannot be written: Not a directory; name a folder"},
      {{"--out", taken.c_str()}, "squares.jsonl: cannot be written: Is a directory"}};
  for (const auto& [arguments, message] : bad) {
    const StudyOutcome o = squares(arguments);
    EXPECT_EQ(o.code, 2) << message;
    EXPECT_EQ(o.measured, 0) << message;
    EXPECT_THAT(o.out, IsEmpty());
    EXPECT_THAT(o.err, StartsWith("squares: "));
    EXPECT_THAT(o.err, HasSubstr(message));
    EXPECT_EQ(lines(o.err).size(), 1u) << o.err;
  }
}

TEST(AStudy, ExitsWith1AndAMessageForEachFailedCheck) {
  std::string err;
  EXPECT_EQ(code_of([](Study& s) { s.expect(1), s.fail("2 * 2 = 5"), s.fail("3 * 3 = 8"); }, err), 1);
  EXPECT_THAT(lines(err),
              ElementsAre("squares: check failed: 2 * 2 = 5", "squares: check failed: 3 * 3 = 8"));
  const auto both = [](Study& s) { s.expect(1), s.pass_over("no such file"), s.fail("2 * 2 = 5"); };
  EXPECT_EQ(code_of(both, err), 1) << "a failed check takes precedence over missing data";
}

TEST(AStudy, ExitsWith2AndAMessageIfTheExperimentThrows) {
  std::string err;
  EXPECT_EQ(code_of([](Study&) { throw UsageError{"--data: of two\nlines"}; }, err), 2);
  EXPECT_EQ(err, "squares: --data: of two lines\n");
  EXPECT_EQ(code_of([](Study&) { throw std::bad_alloc{}; }, err), 2);
  EXPECT_THAT(err, HasSubstr("memory"));
}

TEST(ATable, OmitsItsFormatInNamesAndPrintsLengthsAsPowers) {
  EXPECT_EQ(name_without_format(find("tree/kahan/fp32@cpu")), "tree/kahan");
  EXPECT_EQ(name_without_format(find("exact/fp16@cpu")), "exact");
  EXPECT_EQ(name_without_format(find("tree/plain/bf16@reference")), "tree/plain@reference");
  EXPECT_EQ(power_or_number(1024), "2^10");
  EXPECT_EQ(power_or_number(1000), "1000");
  EXPECT_EQ(power_or_number(0), "0");
}

// --- methods -------------------------------------------------------------------------------------

std::vector<std::string> names(const std::string& globs) {
  std::vector<std::string> all;
  for (const Method* v : methods_in_own_format(globs)) all.push_back(v->name);
  return all;
}

TEST(AFilter, SelectsMethodsOfEveryFormat) {
  EXPECT_THAT(
      names("exact@cpu,tree/kahan/fp??@cpu"),
      ElementsAre("sum/exact/fp16@cpu", "sum/exact/bf16@cpu", "sum/exact/fp32@cpu", "sum/exact/fp64@cpu",
                  "sum/tree/kahan/fp16@cpu", "sum/tree/kahan/fp32@cpu", "sum/tree/kahan/fp64@cpu"));
  EXPECT_THAT(names("tree/kahan/fp32@cpu,tree/*/fp32@cpu").size(), names("tree/*/fp32@cpu").size());
  EXPECT_EQ(names("sum/tree/kahan"), names("tree/kahan/*@cpu"))
      << "without a format, a name selects all four";
  EXPECT_THROW(names("hopper/fp32"), UsageError);
}

TEST(AFilter, ThatIsEmptySelectsAllMethodsThatAreNotSlow) {
  const std::vector<std::string> all = names("");
  for (const Method& v : methods("sum"))
    EXPECT_EQ(std::count(all.begin(), all.end(), v.name), !v.is_slow && v.backend != "reference") << v.name;
}

TEST(AFilter, ThatMatchesNothingIsRefusedByName) {
  for (const char* globs : {"x*", "exact,x*", "*@nowhere"}) EXPECT_THROW(names(globs), UsageError) << globs;
  try {
    names("tree/plain/fp32,x*");
    ADD_FAILURE();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), StartsWith("--filter: 'x*' matches no method; try"));
  }
  EXPECT_THROW(names("tree/khan/fp32"), UsageError);
}

}  // namespace
}  // namespace samesum::harness
