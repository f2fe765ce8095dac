/// Runs the experiments from a shell and checks what they print, what they write, and their exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "harness/dataset.hpp"
#include "harness/peers.hpp"
#include "harness/schema.hpp"
#include "harness/truth.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::read;
using testing_support::Shell;
using testing_support::write;

using ::testing::SizeIs;
using ::testing::StartsWith;

/// Arguments that select a few rows of an experiment, and a change to one of these rows that the experiment
/// must report when it reads the row back.
struct Experiment {
  std::string name;
  std::string some;  ///< arguments that select the rows
  std::size_t rows;  ///< number of rows selected
  std::string claim, broken, complaint;
  bool takes_data = true;    ///< accepts --data
  std::size_t together = 1;  ///< rows measured in turns, hence together
};
std::ostream& operator<<(std::ostream& out, const Experiment& e) { return out << e.name; }

/// Returns the kinds of rows that a --help text explains.
std::vector<std::string> kinds_in(const std::string& help) {
  const std::string before = "Rows of kind \"";
  std::vector<std::string> all;
  for (const std::string& line : lines(help))
    if (line.starts_with(before))
      all.push_back(line.substr(before.size(), line.find('"', before.size()) - before.size()));
  return all;
}

/// A shell in which $E runs the experiment.
class EveryExperiment : public ::testing::TestWithParam<Experiment> {
 protected:
  EveryExperiment() { setenv("E", (std::string{SAMESUM_PROGRAMS "/"} + GetParam().name).c_str(), 1); }

  Outcome some(const std::string& more = "") const {
    return shell_.run("$E " + GetParam().some + " " + more);
  }
  std::filesystem::path file() const { return shell_.work() / "out" / (GetParam().name + ".jsonl"); }

  Shell shell_;
};

/// All experiments except those with a test file of their own.
const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all{
      Experiment{"error_vs_length", "--filter 'tree/plain/*@cpu,exact@cpu' --data 'sine,kappa 1e8,uniform'",
                 8 * (8 + 6 + 8) + 4 * 2 * 2, R"("within_bound":true)", R"("within_bound":false)",
                 "exceeds its bound"},
      Experiment{"error_vs_condition", "--filter 'tree/plain/fp16@cpu,exact/fp16@cpu'", 2 * 15,
                 R"("within_bound":true)", R"("within_bound":false)", "exceeds its bound", false},
      Experiment{"accumulator_formats", "--filter 'serial/*@cpu' --data 'accuracy,ones'", 4 * 16,
                 R"("reproduces":true)", R"("reproduces":false)", "was published"},
      Experiment{"spread_over_runs", "--filter 'pairwise/plain/fp32@cpu,exact/fp32@cpu' --data uniform",
                 2 * 4 + 6 * 3, R"("broken":false)", R"("broken":true)", "promises everywhere"},
      Experiment{"reveal_order", "--filter 'pairwise/plain/fp32@cpu,serial/kahan/fp16@cpu,exact/fp64@cpu'",
                 2 * 3 + 2, R"("matches":true)", R"("matches":false)", "not the declared tree", false},
      Experiment{"price_of_promise", "--filter 'tree/plain/fp32@cpu,loop/fp32@peer' --longest 16", 2 * 2,
                 R"("verified":true)", R"("verified":false)", "wrong bits", false, 2},
      Experiment{"speed_vs_length",
                 "--filter 'exact/fp32@cpu,tree/plain/fp32@cpu' --data normal --longest 12", 4 * 3 * 3,
                 R"("verified":true)", R"("verified":false)", "wrong bits", true, 3},
      Experiment{"prefix_sums", "--filter 'prefix/plain/fp32@cpu,exact/fp32@cpu' --longest 12 --data uniform",
                 2 * 3 + 2 * 3 + 5, R"("within_bound":true)", R"("within_bound":false)", "exceeds its bound",
                 true, 5},
      Experiment{"sums_by_key", "--filter scatter_add/exact/fp32@cpu --longest 14", 3 * 4 + 4 + 3,
                 R"("within_bound":true)", R"("within_bound":false)", "exceeds its bound", false, 3}};
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, EveryExperiment, ::testing::ValuesIn(experiments()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryExperiment, PrintsATableAndWritesNothing) {
  const Outcome o = some();
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, IsEmpty()) << "progress is shown on terminals only";
  EXPECT_GT(lines(o.out).size(), 4u);
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_TRUE(std::filesystem::is_empty(shell_.work()));
}

TEST_P(EveryExperiment, GivesRowsThatFitTheSchema) {
  const Outcome o = some("--json --out out --seed 5");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, read(file()));
  const std::vector<std::string> all = lines(o.out);
  ASSERT_EQ(all.size(), 1 + GetParam().rows);
  const Json header = Json::parse(all[0]);
  EXPECT_EQ(schema().problem(header, "study"), "");
  EXPECT_EQ(header["experiment"], GetParam().name);
  std::set<std::string> distinct, kinds;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Json row = Json::parse(all[i]);
    const std::string kind = *kinds.insert(row["kind"]).first;
    ASSERT_EQ(schema().problem(row, kind), "") << row;
    EXPECT_TRUE(row["seed"] == 5 || (kind == "growth" && row["seed"] > 5))
        << "only growth has several seeds: " << row;
    for (const Schema::Column& column : schema().columns(kind)) {
      Json broken = row;
      broken.erase(column.name);
      ASSERT_EQ(schema().problem(broken, kind).empty(), !column.required) << column.name;
    }
    distinct.insert(all[i]);
  }
  EXPECT_EQ(distinct.size(), GetParam().rows);
  auto described = kinds_in(shell_.run("$E --help").out);
  std::erase(described, "declined");  // there are such rows only on a GPU, or with several threads
  kinds.erase("declined");
  EXPECT_THAT(described, ::testing::UnorderedElementsAreArray(kinds));
}

TEST_P(EveryExperiment, ContinuesAnInterruptedRun) {
  const std::string table = some("--out out").out, whole = read(file());
  // Existing rows are not measured again, so a blank in the last of them stays.
  const std::size_t last = whole.rfind(R"({"kind")");
  std::string changed = whole;
  changed.insert(changed.rfind('}'), " ");
  write(file(), changed);
  EXPECT_EQ(some("--out out").out, table);
  EXPECT_EQ(read(file()), changed);
  // A truncated row is measured again, together with the rows that it is compared with.
  std::size_t kept = last;
  for (std::size_t row = 1; row < GetParam().together; ++row) kept = whole.rfind(R"({"kind")", kept - 1);
  write(file(), whole.substr(0, last + 20));
  const Outcome again = some("--out out");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(lines(again.err), AllOf(SizeIs(1), Each(HasSubstr("incomplete line: skipped"))));
  EXPECT_THAT(lines(read(file())), SizeIs(1 + GetParam().rows));
  EXPECT_THAT(read(file()), StartsWith(whole.substr(0, kept)));
}

TEST_P(EveryExperiment, ExitsWith1IfARowReportsAFailedCheck) {
  const Experiment& e = GetParam();
  some("--out out");
  std::string text = read(file());
  const std::size_t at = text.find(e.claim);
  ASSERT_NE(at, text.npos);
  write(file(), text.replace(at, e.claim.size(), e.broken));
  const Outcome o = some("--out out");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(lines(o.err), AllOf(SizeIs(1), Each(HasSubstr(e.complaint))));
  EXPECT_THAT(o.err, StartsWith(e.name + ": check failed: "));
}

TEST_P(EveryExperiment, RefusesWrongUsageInOneLine) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"--frobnicate", "--frobnicate"},
           {"--full --quick", "excludes"},
           {"--filter 'x*'", "--filter: 'x*' matches no method"},
           {"--filter tree/khan/fp32", "'khan' is unknown or out of place"},
           {"--data sinus", "--data: 'sinus' matches no data"},
           {"--seed soon", "--seed"},
           {"--filter exact --out /dev/null", "--out: /dev/null"},
           {"--filter exact@cpu >/dev/full", "standard output: cannot be written: No space left"}}) {
    if (arguments.starts_with("--data") && !GetParam().takes_data) continue;
    const Outcome o = shell_.run("$E " + arguments);
    EXPECT_EQ(o.code, 2) << arguments;
    EXPECT_THAT(o.err, AllOf(StartsWith(GetParam().name + ": "), HasSubstr(message)));
    EXPECT_THAT(lines(o.err), SizeIs(1)) << o.err;
  }
  EXPECT_TRUE(std::filesystem::is_empty(shell_.work()));
}

TEST_P(EveryExperiment, HasAHelpTextWithExamplesAndItsDataSets) {
  const Outcome o = shell_.run("$E --help");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, IsEmpty());
  EXPECT_THAT(o.out, HasSubstr("Examples:\n  " + GetParam().name));
  const bool has_all = GetParam().name == "error_vs_length" || GetParam().name == "spread_over_runs";
  for (const Dataset& data : datasets()) {
    if (!has_all) break;  // the others use some of the data sets, or their own
    EXPECT_THAT(o.out, HasSubstr("\n  " + data.name + " "));
  }
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
}

/// Covers every program in experiments/. Its help text is generated from the schema that its rows must fit.
TEST(HelpTexts, ExplainTheQuestionTheMethodAndEachColumn) {
  std::set<std::string> explained;
  for (const auto& source : std::filesystem::directory_iterator{SAMESUM_SOURCE_DIR "/experiments"}) {
    const std::string name = source.path().stem();
    if (source.path().extension() != ".cpp" || name == "samesum") continue;
    explained.insert(name);
    const Outcome o = Shell{}.run(SAMESUM_PROGRAMS "/" + name + " --help");
    EXPECT_EQ(o.code, 0) << name;
    EXPECT_THAT(lines(o.out)[0], EndsWith("?")) << name;
    EXPECT_THAT(o.out, ContainsRegex("How it is measured:\n  [^\n]+\n  [^\n]+\n")) << name;
    EXPECT_THAT(o.out, ContainsRegex("(19|20)[0-9][0-9]")) << name << " cites no source with a year";
    for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
    const std::vector<std::string> kinds = kinds_in(o.out);
    EXPECT_THAT(kinds, Not(IsEmpty())) << name;
    for (const std::string& kind : kinds)
      for (const Schema::Column& column : schema().columns(kind)) {
        EXPECT_THAT(column.meaning, Not(IsEmpty()))
            << "results.schema.json has no description of " << kind << '.' << column.name;
        EXPECT_THAT(o.out, HasSubstr("\n  " + column.name + ' ')) << name;
      }
  }
  std::set<std::string> tested;
  for (const Experiment& e : experiments()) tested.insert(e.name);
  for (const std::string& name : explained)
    if (std::filesystem::exists(SAMESUM_SOURCE_DIR "/tests/" + name + "_test.cpp")) tested.insert(name);
  EXPECT_EQ(explained, tested);
}

// --- prefix sums and sums by key -----------------------------------------------------------------

/// The rows of a kind that an experiment writes.
std::vector<Json> rows_of_kind(const std::string& command, const std::string& kind) {
  const Outcome o = Shell{}.run(std::string{SAMESUM_PROGRAMS "/"} + command + " --json");
  EXPECT_EQ(o.code, 0) << o.err;
  std::vector<Json> all;
  for (const std::string& line : lines(o.out))
    if (const Json row = Json::parse(line); row["kind"] == kind) all.push_back(row);
  EXPECT_THAT(all, Not(IsEmpty()));
  return all;
}

TEST(PrefixSums, HaveTheBitsOfSumsAndAreCorrectlyRoundedIfExact) {
  for (const Json& row : rows_of_kind("prefix_sums --filter '*/fp32@cpu' --longest 13", "errors")) {
    EXPECT_EQ(row["within_bound"], true) << row;
    EXPECT_EQ(row["same_as_sums"], row["sums"]) << row;
    EXPECT_GT(row["sums"], 0) << row;
    if (row["method"] == "cumsum/exact/fp32@cpu") {
      EXPECT_EQ(row["correct"], row["results"]);
      EXPECT_LE(row["largest_ulps"], 0.5);
    }
  }
}

TEST(PrefixSums, OfALoopAreThoseOfTheStandardLibrary) {
  std::map<std::string, Json> errors;
  for (Json& row : rows_of_kind("prefix_sums --filter 'serial/plain/fp64@cpu,std/*/fp64@peer' --longest 8 "
                                "--data uniform",
                                "errors"))
    if (row["n"] == 256) errors[row["method"]] = row["largest_ulps"];
  EXPECT_THAT(errors, SizeIs(3));
  for (const auto& [method, ulps] : errors) EXPECT_EQ(ulps, errors.begin()->second) << method;
}

TEST(SumsByKey, RepeatAsFarAsTheyPromise) {
  std::set<std::string> varied;
  for (const Json& row :
       rows_of_kind("sums_by_key --filter 'scatter_add/*/fp32@cpu' --longest 14", "repeats")) {
    EXPECT_EQ(row["broken"], false) << row;
    if (row["distinct_bits"] > 1)
      varied.insert(row["method"].get<std::string>() + row["axis"].get<std::string>());
  }
  EXPECT_THAT(varied, ::testing::ElementsAre("scatter_add/serial/plain/fp32@cpupermutation"));
}

TEST(SumsByKey, LoseSmallTermsOnlyOnAGrid) {
  std::map<std::string, double> largest;
  for (const Json& row :
       rows_of_kind("sums_by_key --filter 'scatter_add/exact/fp32@cpu,scatter_add/fixed_point/"
                    "fp32@cpu' --longest 14",
                    "errors")) {
    EXPECT_EQ(row["within_bound"], true) << row;
    if (row["data"] == "60 binades")
      largest[row["method"]] = std::max<double>(largest[row["method"]], row["largest_ulps"]);
  }
  EXPECT_LE(largest.at("scatter_add/exact/fp32@cpu"), 0.5);
  EXPECT_GT(largest.at("scatter_add/fixed_point/fp32@cpu"), 0.5);
}

TEST(SumsByKey, AreTimedWithAGridThatIsFoundAndOneThatIsGiven) {
  std::vector<Json> grids;
  for (const Json& row :
       rows_of_kind("sums_by_key --filter scatter_add/fixed_point/fp32@cpu --longest 14", "reduction")) {
    EXPECT_EQ(row["bins"], 256);
    EXPECT_EQ(row["peer"], "loop/by_key/fp32@peer");
    EXPECT_GE(row["times_ceiling"], row["method"] == "read" ? 1 : 0);
    const double moved = row["n"].get<double>() * (4 + 4);
    EXPECT_NEAR(row["gb_per_s"].get<double>() * 1e9 * row["seconds"].get<double>() / moved, 1, 1e-9);
    if (row["method"] != "scatter_add/fixed_point/fp32@cpu") continue;
    EXPECT_EQ(row["verified"], true);
    grids.push_back(row["grid"]);
  }
  EXPECT_THAT(grids, ::testing::ElementsAre(Json(nullptr), Json(-30)));
}

// --- results -------------------------------------------------------------------------------------

/// Runs an experiment, which must succeed, and returns its rows.
std::vector<Json> rows(const std::string& command) {
  const Outcome o = Shell{}.run(std::string{SAMESUM_PROGRAMS "/"} + command + " --json");
  EXPECT_EQ(o.code, 0) << o.err;
  std::vector<Json> all;
  for (const std::string& line : lines(o.out)) all.push_back(Json::parse(line));
  if (!all.empty()) all.erase(all.begin());
  return all;
}

TEST(AnExperiment, WithNothingToMeasureIsWrongUsage) {
  for (const char* e : {"error_vs_length --filter exact/fp16@cpu --data 'kappa 1e16'",
                        "spread_over_runs --filter exact/fp16@cpu --data 'kappa 1e16'",
                        "speed_vs_length --filter exact@cpu --data sine",
                        "accumulator_formats --data ones --filter exact/fp64@peer",
                        "accumulator_formats --data ones --filter loop/fp64@peer"}) {
    const Outcome o = Shell{}.run(std::string{SAMESUM_PROGRAMS "/"} + e);
    EXPECT_EQ(o.code, 2) << e;
    EXPECT_THAT(lines(o.err), SizeIs(1)) << e;
  }
}

TEST(ErrorsVersusLength, AreAtMostHalfAnUlpForExactSumsOfAllData) {
  const std::vector<Json> all = rows("error_vs_length --filter 'exact@cpu'");
  std::map<std::string, int> seen;
  for (const Json& row : all) {
    EXPECT_EQ(row["bits"], row["truth_bits"]);
    // If the sum overflows, the correctly rounded result is infinity.
    EXPECT_LE(row["error_ulps"], 0.5) << row;
    ++seen[row["data"]];
  }
  for (const Dataset& data : datasets())
    EXPECT_EQ(seen[data.name],
              8 * std::ranges::count_if(formats, [&](const FormatInfo& f) { return data.fits(f); }));
}

TEST(ErrorsVersusLength, FailIfAnExactSumIsNotCorrectlyRounded) {
  const Shell shell;
  const std::string command = SAMESUM_PROGRAMS "/error_vs_length --filter exact/fp32 --data ones --out .";
  EXPECT_EQ(shell.run(command).code, 0);
  const std::filesystem::path file = shell.work() / "error_vs_length.jsonl";
  const std::string sixteen = R"("bits":"0x41800000")";
  std::string text = read(file);
  ASSERT_THAT(text, HasSubstr(sixteen));
  write(file, text.replace(text.find(sixteen), sixteen.size(), R"("bits":"0x41800001")"));
  const Outcome o = shell.run(command);
  EXPECT_EQ(o.code, 1);
  EXPECT_EQ(o.err,
            "error_vs_length: check failed: sum/exact/fp32@cpu on ones, n = 2^4: is not correctly rounded\n");
}

TEST(ErrorsVersusLength, GrowIfTheSumStagnates) {
  double last = -1;
  for (const Json& row : rows("error_vs_length --filter serial/plain/bf16 --data ones")) {
    const double n = row["n"], value = std::min(n, 256.0);
    EXPECT_EQ(row["value"], value) << "where 256 + 1 rounds to 256";
    EXPECT_EQ(row["relative_error"], 1 - value / n);
    EXPECT_EQ(row["condition"], 1);
    EXPECT_GE(row["relative_error"], last);
    last = row["relative_error"];
  }
  EXPECT_EQ(last, 1 - 0x1p-10) << "for 2^18 ones";
}

TEST(ErrorsVersusLength, HaveAProbableBoundOfAtMostTheRigorousOne) {
  const std::string plain = "tree/plain/fp32@cpu", exact = "exact/fp32@cpu";
  for (const Json& row : rows("error_vs_length --filter '" + plain + "," + exact + "' --data '1/i'")) {
    const FormatInfo& format = format_info<fp32>();
    const Column column = datasets_matching("1/i")[0]->make(format, row["n"], 1);
    const Method& v = find(row["method"].get<std::string>());
    const double magnitudes = Truth{column.values()}.magnitudes_rounded_up();
    const double bound = v.bound(format, row["n"], v(column.values()), magnitudes, {.probability = 0.99});
    EXPECT_EQ(row["probable_bound"], bound) << row;
    EXPECT_LE(row["probable_bound"], row["bound"]);
    EXPECT_EQ(row["probable_bound"] < row["bound"], row["method"] == "sum/" + plain && row["n"] > 1000)
        << row;
  }
}

TEST(ErrorsVersusLength, EndAtTheLongestLengthGiven) {
  const auto longest = [](const std::string& e) {
    return rows("error_vs_length --filter exact/fp16@cpu --data ones --longest " + e).back()["n"];
  };
  EXPECT_EQ(longest("6"), 64);
  EXPECT_EQ(longest("21"), 1 << 20);
  EXPECT_EQ(Shell{}.run(SAMESUM_PROGRAMS "/error_vs_length --longest 31").code, 2);
}

TEST(ErrorsVersusLength, AreMarkedIfRoundingsMayNotHaveMeanZero) {
  std::set<std::string> beyond;
  for (const Json& row :
       rows("error_vs_length --filter serial/plain/fp32@cpu --data 'ones,sine,1/i,kappa*,one "
            "big,*cending,normal,uniform,60*'")) {
    if (row["kind"] != "error") continue;
    const Dataset& data = *datasets_matching(row["data"])[0];
    EXPECT_EQ(row["marked"] == "structure", data.elements == Elements::structured) << row;
    EXPECT_NE(row["marked"], "stagnation") << "2^18 additions in fp32 do not stagnate";
    if (row["absolute_error"] > row["probable_bound"]) beyond.insert(row["data"]);
  }
  for (const char* random : {"normal", "uniform", "60 binades"})
    EXPECT_FALSE(beyond.contains(random)) << random;
  EXPECT_THAT(beyond, Not(IsEmpty())) << "no marked data set exceeds a probable bound";
}

TEST(TheCoverageOfTheProbableBound, IsAtLeastItsProbabilityUnlessTheSumStagnates) {
  int stagnating = 0, missed = 0, ordinary = 0;
  for (const Json& row : rows("error_vs_length --longest 14 --filter 'serial/*/fp16,tree/*/fp16' --data "
                              "'uniform,normal,ones'")) {
    if (row["kind"] != "coverage") continue;
    EXPECT_EQ(schema().problem(row, "coverage"), "");
    EXPECT_NE(row["data"], "ones") << "whose elements are the same for every seed";
    EXPECT_EQ(row["seeds"], 100);
    EXPECT_EQ(row["beyond_bound"], 0);
    // In fp16, a loop over 16384 positive elements stagnates after a few thousand.
    const bool long_loop = row["method"].get<std::string>().starts_with("sum/serial/") && row["n"] == 16384;
    EXPECT_EQ(row["marked"] == "stagnation", long_loop && row["data"] == "uniform") << row;
    if (!row["marked"].is_null()) {
      ++stagnating;
      missed += row["covered"] < row["probability"];
    } else {
      ++ordinary;
      EXPECT_GE(row["covered"], row["probability"]) << row;
    }
  }
  EXPECT_EQ(ordinary + stagnating, 2 * 2 * (4 + 3)) << "2 probabilities, 2 data sets, 4 methods for 16384 "
                                                       "elements and 3 for 1024, where the rigorous bound of "
                                                       "tree/neumaier is better";
  EXPECT_EQ(stagnating, 4);
  EXPECT_GE(missed, 2) << "too few marked rows miss their probability";
}

TEST(TheCoverageOfTheProbableBound, FailsTheExperimentIfItIsTooLow) {
  const Shell shell;
  const std::string command =
      SAMESUM_PROGRAMS "/error_vs_length --filter tree/plain/fp32@cpu --data normal --longest 10 --out .";
  EXPECT_EQ(shell.run(command).code, 0);
  const std::filesystem::path file = shell.work() / "error_vs_length.jsonl";
  const std::string whole = read(file);
  const auto altered = [&](const std::string& a, const std::string& b) {
    std::string text = whole;
    EXPECT_THAT(text, HasSubstr(a));
    return text.replace(text.find(a), a.size(), b);
  };
  write(file, altered(R"("covered":1.0)", R"("covered":0.89)"));
  Outcome o = shell.run(command);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(
      o.err,
      HasSubstr("tree/plain/fp32@cpu on normal, n = 2^10: the probable bound at 0.9 covers only 0.89"));
  write(file, altered(R"("covered":1.0,"beyond_bound":0)", R"("covered":1.0,"beyond_bound":3)"));
  o = shell.run(command);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("3 errors exceed their bound"));
}

TEST(ErrorsVersusCondition, EndAtTheLargestConditionOfTheFormat) {
  std::map<std::string, double> greatest, last_right;
  for (const Json& row : rows("error_vs_condition --filter 'pairwise/plain/*@cpu,exact@cpu'")) {
    const std::string method = row["method"];
    const double target = row["target_condition"], condition = row["condition"];
    EXPECT_TRUE(target / 3 <= condition && condition <= target * 3) << row;
    EXPECT_TRUE(row["within_bound"]) << row;
    greatest[row["input_format"]] = target;
    if (row["digits"] >= 1) last_right[method] = std::max(last_right[method], target);
    EXPECT_TRUE(!method.starts_with("sum/exact") || row["bits"] == row["truth_bits"]) << row;
  }
  for (const char* wide : {"bf16", "fp32", "fp64"}) EXPECT_EQ(greatest[wide], 1e40) << wide;
  EXPECT_GE(greatest["fp16"], 1e12);
  for (const FormatInfo& format : formats) {
    const std::string name{format.name};
    EXPECT_GE(last_right["sum/exact/" + name + "@cpu"], greatest[name] / 10)
        << "exact loses digits only if the sum underflows";
    // A plain sum has no correct digit left beyond a condition near 1/u.
    const double plain = last_right["sum/pairwise/plain/" + name + "@cpu"] * format.unit_roundoff;
    EXPECT_TRUE(1e-3 < plain && plain < 1e3) << name << ": " << plain;
  }
}

TEST(AccumulatorFormats, ReproducePublishedValuesAndStagnateWherePredicted) {
  std::map<std::string, Json> ones;
  int published = 0;
  for (const Json& row : rows("accumulator_formats --filter 'serial/*@cpu,exact/fp32@cpu' --data "
                              "'ones,nondeterminism*,accuracy'")) {
    if (row["case"] == "ones")
      ones[row["input_format"].get<std::string>() + " " + row["method"].get<std::string>()] = row["value"];
    if (row["published"].is_null()) continue;
    ++published;
    EXPECT_EQ(row["value"], row["published"]) << row;
    EXPECT_EQ(row["reproduces"], true);
  }
  EXPECT_EQ(published, 4);
  EXPECT_EQ(ones["bf16 sum/serial/plain/bf16@cpu"], 256.0) << "2^8, and 2^8 + 1 is a tie";
  EXPECT_EQ(ones["bf16 sum/serial/neumaier/bf16@cpu"], 512.0) << "the correction stagnates at 256 too";
  EXPECT_EQ(ones["bf16 sum/serial/kahan/bf16@cpu"], 65536.0);
  EXPECT_EQ(ones["fp16 sum/serial/plain/fp16@cpu"], 2048.0);
  EXPECT_EQ(ones["fp16 sum/serial/plain/fp32@cpu"], 100000.0) << "an fp32 accumulator does not stagnate";
  EXPECT_EQ(ones["bf16 sum/exact/fp32@cpu"], 100000.0);
}

TEST(ErrorsVersusLength, DependOnTheSeed) {
  const auto of = [](const std::string& seed) {
    return rows("error_vs_length --filter exact/fp64 --data normal --seed " + seed).back()["value"];
  };
  EXPECT_EQ(of("1"), of("1"));
  EXPECT_NE(of("1"), of("2"));
  const Column column = datasets_matching("normal")[0]->make(format_info<fp64>(), std::size_t{1} << 18, 2);
  EXPECT_EQ(of("2"), find("exact/fp64")(column.values()).to_double());
}

TEST(TheSpreadOverRuns, IsZeroWherePromisedAndPositiveInArrivalOrder) {
  const std::vector<Json> all = rows(
      "spread_over_runs --full --data '60 binades' --filter 'atomic/plain/fp32,tree/plain/fp32,exact/fp32'");
  ASSERT_THAT(all, SizeIs(12));
  for (const Json& row : all) {
    EXPECT_FALSE(row["broken"]);
    const bool one = row["axis"] == "permutation" ? row["promise"] == "order_free" : row["promise"] != "none";
    if (one) {
      EXPECT_EQ(row["distinct_bits"], 1) << row;
      EXPECT_EQ(row["spread_ulps"], 0);
      EXPECT_EQ(row["lowest"], row["highest"]);
      EXPECT_EQ(row["vs_max"], 0);
    } else if (row["axis"] == "runs" || row["axis"] == "permutation") {
      EXPECT_GT(row["distinct_bits"], 1) << row;
      EXPECT_GT(row["spread_ulps"], 0);
      EXPECT_LT(row["lowest"], row["highest"]);
      EXPECT_GT(row["vs_max"], 0);
    }
  }
}

TEST(TheSpreadOverRuns, HasEveryAxis) {
  std::map<std::string, std::size_t> runs;
  for (const Json& row : rows("spread_over_runs --data 'uniform +-1' --filter tree/plain/fp16"))
    runs[row["axis"]] = row["runs"];
  EXPECT_GE(runs["runs"], 3u);
  EXPECT_GE(runs["threads"], 7u);
  EXPECT_EQ(runs["alignment"], 32u) << "offsets below 64 bytes, in steps of 2";
  EXPECT_EQ(runs["permutation"], 8u);
  EXPECT_EQ(runs.size(), 4u) << "launch shapes vary on a GPU only";
}

TEST(TheSpreadOverRuns, GrowsWithTheLengthUnderPermutations) {
  std::map<std::size_t, double> largest;
  for (const Json& row : rows("spread_over_runs --data uniform --filter serial/plain/fp64")) {
    if (row["kind"] != "growth") continue;
    EXPECT_EQ(row["axis"], "permutation");
    largest[row["n"]] = std::max<double>(largest[row["n"]], row["vs_max"]);
  }
  ASSERT_THAT(largest, SizeIs(6));
  const double grown = largest.rbegin()->second / largest.begin()->second;
  EXPECT_GT(grown, 5) << "the square root of 2^10, 32, is expected";
  EXPECT_LT(grown, 200);
}

TEST(TheRevealedOrder, IsDrawnForPeersAndComparedForOurs) {
  int drawn = 0;
  for (const Json& row : rows("reveal_order --filter 'loop/fp64@peer,serial/plain/fp64@cpu'")) {
    const bool peer = row["method"] == "loop/fp64@peer";
    EXPECT_EQ(row["matches"], peer ? Json(nullptr) : Json(true));
    if (row["n"] != 32) continue;
    EXPECT_THAT(row["tree"].get<std::string>(), AllOf(StartsWith("((((("), HasSubstr("0+1)+2)")));
    ++drawn;
  }
  EXPECT_EQ(drawn, 2);
}

TEST(TheRevealedOrder, StatesWhyAMaskIsBlind) {
  for (const Json& row : rows("reveal_order --filter 'exact/fp32,tree/neumaier/fp32'")) {
    EXPECT_THAT(row["blind"].get<std::string>(), HasSubstr("keep the ones that M absorbs"));
    EXPECT_EQ(row["masks"].is_null(), row["method"] == "sum/exact/fp32@cpu");
    EXPECT_EQ(row["matches"].is_null(), row["method"] == "sum/exact/fp32@cpu");
  }
}

TEST(ThePriceOfAPromise, ShowsLargeErrorsOnHardDataExceptForExact) {
  for (const Json& row :
       rows("price_of_promise --filter 'exact/fp32@cpu,serial/plain/fp32@cpu' --longest 12")) {
    EXPECT_GT(row["seconds"], 0);
    EXPECT_NEAR(std::log10(row["hard_condition"].get<double>()), 8, std::log10(3));
    if (row["method"] == "sum/exact/fp32@cpu")
      EXPECT_LE(row["hard_error_ulps"], 0.5);
    else
      EXPECT_GT(row["hard_relative"], 0.1) << "fp32 has seven digits, and eight are cancelled";
  }
}

/// A loop gives one answer unless the elements are permuted, for which it makes no promise.
TEST(ThePeersSpread, OfALoopIsZeroUnlessElementsArePermuted) {
  const Dataset& uniform = *datasets_matching("uniform +-1").front();
  std::set<std::string> axes;
  std::size_t n = 0;
  float sum = 0;
  for (const Json& row : rows("spread_over_runs --data 'uniform +-1' --filter 'loop/fp32@peer'")) {
    if (row["kind"] != "spread") continue;
    const std::string axis = row["axis"];
    axes.insert(axis);
    EXPECT_EQ(row["broken"], false) << row;
    if (axis == "permutation") {
      EXPECT_GT(row["distinct_bits"], 1) << row;
      continue;
    }
    if (n != row["n"]) {
      n = row["n"];
      const Column column = uniform.make(format_info<fp32>(), n, 1);
      sum = 0;
      for (const float x : column.values().as<fp32>()) sum += x;
    }
    EXPECT_EQ(row["distinct_bits"], 1) << row;
    EXPECT_EQ(row["lowest"], sum) << row;
    EXPECT_EQ(row["highest"], sum) << row;
  }
  EXPECT_THAT(axes, SizeIs(4));
}

/// Eigen's packets begin at aligned addresses, so its sum may depend on the address, as run_to_run allows.
TEST(ThePeersSpread, OfEigenDependsOnTheAddressAndBreaksNoPromise) {
  if (std::ranges::count(absent_peers(), "eigen", &Absent::backend) > 0) GTEST_SKIP() << "no Eigen";
  for (const Json& row : rows("spread_over_runs --data 'uniform +-1' --filter 'eigen/fp32@peer'"))
    if (row["kind"] == "spread") {
      EXPECT_EQ(row["promise"], "run_to_run");
      EXPECT_EQ(row["distinct_bits"] > 1, row["axis"] == "alignment" || row["axis"] == "permutation") << row;
      EXPECT_EQ(row["broken"], false) << row;
    }
}

/// A bound or promise that a peer breaks is a finding, not a failure of the experiment.
TEST(APeer, FailsNoExperiment) {
  ASSERT_FALSE(peers().empty()) << "the loop needs no library";
  const Shell shell;
  const std::string peer = peers()[0].name;
  for (const auto& [name, claim, broken] :
       {std::tuple{"error_vs_length", R"("within_bound":true)", R"("within_bound":false)"},
        std::tuple{"spread_over_runs", R"("broken":false)", R"("broken":true)"}}) {
    const std::string command =
        std::string{SAMESUM_PROGRAMS "/"} + name + " --data 'uniform +-1' --out out --filter '" + peer + "'";
    const std::filesystem::path file = shell.work() / "out" / (std::string{name} + ".jsonl");
    EXPECT_EQ(shell.run(command).code, 0);
    std::string text = read(file);
    ASSERT_THAT(text, HasSubstr(claim));
    write(file, text.replace(text.find(claim), std::string{claim}.size(), broken));
    const Outcome o = shell.run(command);
    EXPECT_EQ(o.code, 0);
    EXPECT_THAT(o.err, IsEmpty());
    EXPECT_THAT(read(file), HasSubstr(broken));
  }
}

}  // namespace
}  // namespace samesum::harness
