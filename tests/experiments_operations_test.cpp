/// Runs the experiments on operations other than sum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "harness/schema.hpp"
#include "samesum/samesum.hpp"
#include "shell.hpp"

namespace samesum::experiments_on_operations {
namespace {

using harness::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
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
  std::vector<Json> rows(const std::string& operations) const {
    const Outcome o = shell_.run("$E --json --filter '*/fp32@cpu' " + std::string{GetParam().second} +
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

  Shell shell_;
};

std::string operation_of(const Json& row) { return row.value("operation", "sum"); }

TEST_P(EveryExperimentOnOperations, MeasuresEachThatItOffers) {
  const std::vector<std::string> all = offered();
  for (const char* one : {"sum", "mean", "dot"}) EXPECT_THAT(all, Contains(one));
  for (const std::string& operation : all) {
    const std::vector<Json> found = rows(operation);
    EXPECT_FALSE(found.empty()) << operation;
    for (const Json& row : found) {
      EXPECT_EQ(harness::schema().problem(row, row["kind"]), "") << row;
      EXPECT_EQ(operation_of(row), operation) << row;
      EXPECT_EQ(find(row["method"].get<std::string>()).operation, operation) << row;
    }
  }
}

TEST_P(EveryExperimentOnOperations, KeepsBoundsAndRoundsExactResultsCorrectly) {
  for (const std::string& operation : offered())
    for (const Json& row : rows(operation)) {
      if (!row.contains("within_bound")) continue;
      EXPECT_EQ(row["within_bound"], true) << row;
      const Method& m = find(row["method"].get<std::string>());
      // The denominator alone of an exact softmax is exact.
      if (m.accumulator == "exact" && !m.has_result_per_element) {
        EXPECT_EQ(row["bits"], row["truth_bits"]) << row;
      }
    }
}

TEST_P(EveryExperimentOnOperations, TakesAListOfThem) {
  std::map<std::string, std::size_t> count;
  for (const Json& row : rows("mean,dot")) ++count[operation_of(row)];
  EXPECT_EQ(count.size(), 2u);
  EXPECT_EQ(count["mean"], rows("mean").size());
  EXPECT_EQ(count["dot"], rows("dot").size());
}

INSTANTIATE_TEST_SUITE_P(Of, EveryExperimentOnOperations,
                         ::testing::Values(Experiment{"error_vs_length", "--longest 6"},
                                           Experiment{"error_vs_condition", ""},
                                           Experiment{"spread_over_runs", "--data normal"},
                                           Experiment{"reveal_order", ""},
                                           Experiment{"price_of_promise", "--longest 12"}),
                         [](const auto& info) { return std::string{info.param.first}; });

}  // namespace
}  // namespace samesum::experiments_on_operations
