/// Runs the experiments on operations other than sum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <map>

#include "harness/schema.hpp"
#include "samesum/samesum.hpp"
#include "shell.hpp"

namespace samesum::experiments_on_operations {
namespace {

using harness::Json;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::Shell;

/// The name of an experiment, and arguments that keep it short.
using Experiment = std::pair<const char*, const char*>;

class EveryExperimentOnOperations : public ::testing::TestWithParam<Experiment> {
 protected:
  EveryExperimentOnOperations() {
    setenv("E", (std::string{SAMESUM_PROGRAMS "/"} + GetParam().first).c_str(), 1);
  }

  /// The rows for a list of operations.
  std::vector<Json> rows(const std::string& operations, const std::string& methods) const {
    const Outcome o = shell_.run("$E --json --filter '" + methods + "' " + GetParam().second +
                                 " --operation " + operations);
    EXPECT_EQ(o.code, 0) << operations << ": " << o.err;
    std::vector<Json> all;
    for (const std::string& line : lines(o.out)) all.push_back(Json::parse(line));
    EXPECT_FALSE(all.empty());
    if (!all.empty()) all.erase(all.begin());  // the header
    return all;
  }

  /// The operations that the experiment offers, in the words of its refusal of another one.
  std::vector<std::string> offered() const {
    const std::string before = "'nothing' is not one of ", err = shell_.run("$E --operation nothing").err;
    EXPECT_THAT(err, HasSubstr(before));
    std::vector<std::string> all;
    std::istringstream list{err.substr(err.find(before) + before.size())};
    for (std::string name; list >> name; all.push_back(name))
      if (name.ends_with(',')) name.pop_back();
    return all;
  }

  static constexpr const char* few = "*tree/*/fp32@cpu,exact/fp32@cpu";
  Shell shell_;
};

std::string operation_of(const Json& row) { return row.value("operation", "sum"); }

TEST_P(EveryExperimentOnOperations, MeasuresEachThatItOffersWithinItsBounds) {
  const std::vector<std::string> all = offered();
  for (const char* one : {"sum", "mean", "dot"}) EXPECT_THAT(all, Contains(one));
  for (const std::string& operation : all) {
    // Other tests measure all sums.
    const std::vector<Json> found = rows(operation, operation == "sum" ? few : "*/fp32@cpu");
    EXPECT_FALSE(found.empty()) << operation;
    for (const Json& row : found) {
      EXPECT_EQ(harness::schema().problem(row, row["kind"]), "") << row;
      EXPECT_EQ(operation_of(row), operation) << row;
      const Method& m = find(row["method"].get<std::string>());
      EXPECT_EQ(m.operation, operation) << row;
      if (!row.contains("within_bound")) continue;
      EXPECT_EQ(row["within_bound"], true) << row;
      // The denominator alone of an exact softmax is exact.
      if (m.accumulator == "exact" && !m.has_result_per_element) {
        EXPECT_EQ(row["bits"], row["truth_bits"]) << row;
      }
    }
  }
}

TEST_P(EveryExperimentOnOperations, TakesAListOfThem) {
  std::map<std::string, std::size_t> count;
  for (const Json& row : rows("mean,dot", few)) ++count[operation_of(row)];
  EXPECT_EQ(count.size(), 2u);
  EXPECT_EQ(count["mean"], rows("mean", few).size());
  EXPECT_GT(count["dot"], 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryExperimentOnOperations,
                         ::testing::Values(Experiment{"error_vs_length", "--longest 6"},
                                           Experiment{"error_vs_condition", ""},
                                           Experiment{"spread_over_runs", "--data uniform"},
                                           Experiment{"reveal_order", ""},
                                           Experiment{"price_of_promise", "--longest 12"}),
                         [](const auto& info) { return std::string{info.param.first}; });

/// The lines that an experiment prints.
std::vector<std::string> printed(const std::string& command) {
  const Outcome o = Shell{}.run(SAMESUM_PROGRAMS "/" + command);
  EXPECT_EQ(o.code, 0) << o.err;
  return lines(o.out);
}

TEST(Experiments, NameWhatTheyCompareInTheTitlesOfTheirTables) {
  for (const char* e : {"error_vs_length --longest 4", "error_vs_condition", "spread_over_runs",
                        "price_of_promise --longest 12"})
    EXPECT_THAT(printed(std::string{e} + " --operation moments --filter exact/fp32@cpu"),
                Contains(StartsWith("variance, ")))
        << e;
}

TEST(ResultsOfAnyOperation, AreNotExplainedAsSums) {
  for (const harness::Schema::Column& column : harness::schema().columns("error"))
    if (column.name == "truth" || column.name.ends_with("_ulps") || column.name.ends_with("_error")) {
      EXPECT_THAT(column.meaning, Not(HasSubstr("sum")));
    }
}

TEST(Experiments, OfferTheSameOperations) {
  const auto refusal = [](const char* name) {
    const std::string err = Shell{}.run(std::string{SAMESUM_PROGRAMS "/"} + name + " --operation none").err;
    return err.substr(err.find("'none'"));
  };
  EXPECT_THAT(refusal("error_vs_length"), HasSubstr("squared_norm"));
  EXPECT_EQ(refusal("spread_over_runs"), refusal("error_vs_length"));
  EXPECT_EQ(refusal("price_of_promise"), refusal("error_vs_length"));
}

TEST(ErrorsVersusLength, AreCountedAgainstTheirRigorousBoundsForEachOperation) {
  const std::vector<std::string> dot =
      printed("error_vs_length --operation dot,mean --filter tree/plain/fp32@cpu --longest 6 --data normal");
  EXPECT_THAT(dot, Contains(ContainsRegex("^dot +2 of 2 +0\\.[0-9]+$")));
  EXPECT_THAT(dot, Contains(ContainsRegex("^mean +2 of 2 +0\\.[0-9]+$")));
  EXPECT_THAT(dot, Not(Contains(HasSubstr("probable"))));
  EXPECT_THAT(printed("error_vs_length --filter tree/plain/fp32@cpu --longest 6 --data normal"),
              Contains(HasSubstr("within their probable bounds, for probability 0.99")));
}

TEST(PricesOfPromises, HaveColumnsThatDoNotTouch) {
  std::size_t hard = 0, others = 0;
  for (const std::string& line : printed("price_of_promise --longest 12 --operation sum,sum_of_magnitudes "
                                         "--filter '*/double_word/fp32@cpu'")) {
    EXPECT_LE(line.size(), 80u) << line;
    if (line.find("double_word") == line.npos) continue;
    std::istringstream words{line};
    const auto count = std::distance(std::istream_iterator<std::string>{words}, {});
    EXPECT_TRUE(count == 5 || count == 6) << line;
    ++(count == 6 ? hard : others);
  }
  EXPECT_EQ(hard, 6u);
  EXPECT_GT(others, 0u);
}

TEST(ErrorsVersusCondition, SayWhySoftmaxIsLeftOut) {
  EXPECT_THAT(Shell{}.run(SAMESUM_PROGRAMS "/error_vs_condition --help").out,
              ContainsRegex("That of softmax"));
}

}  // namespace
}  // namespace samesum::experiments_on_operations
