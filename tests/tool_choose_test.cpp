/// Runs `samesum choose` and `samesum calibrate` from a shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "harness/schema.hpp"
#include "harness/truth.hpp"
#include "samesum/catalogue/choose.hpp"
#include "support.hpp"
#include "tool_shell.hpp"

namespace samesum::choosing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::ToolShell;
using testing_support::write;

class ShellWithData : public ToolShell {
 public:
  ShellWithData() {
    write(work() / "numbers.txt", "1\n2.5\n-3\n");
    write(work() / "other.txt", "-2\n4\n1.5\n");
    write(work() / "cancel.txt", "1 -1\n");
    const testing_support::Array x{format_info<fp32>(), testing_support::uniform(5000, 1)};
    write(work() / "uniform.f32",
          {static_cast<const char*>(x.values().data), x.values().size * sizeof(float)});
  }
};

const ToolShell& shell() {
  static const ShellWithData only;
  return only;
}

json run_json(const std::string& command) { return shell().run_json(command); }

/// Returns a row as `samesum calibrate` writes it, with the columns that `choose` reads.
std::string speed(const std::string& method, double seconds, const std::string& data = "normal") {
  return json{{"kind", "speed"}, {"method", method}, {"input_format", "fp32"}, {"data", data},
              {"n", 1000},       {"threads", 1},     {"caches", "hot"},        {"seconds", seconds}}
             .dump() +
         '\n';
}

/// Returns the text of a costs file with the given provenance.
std::string costs(const json& provenance, const std::string& rows) {
  return json{{"kind", "study"}, {"schema", 2}, {"experiment", "speed_vs_length"}, {"provenance", provenance}}
             .dump() +
         '\n' + rows;
}

const std::string tool_choose = "$T choose --length 1000 --input fp32 --relative-error 1e-3 ";

TEST(TheToolsChoice, IsThatOfTheLibrary) {
  const json o = run_json(tool_choose + "--costs shipped --backend cpu --json");
  const Choice c = choose({.length = 1000, .input = "fp32", .relative_error = 1e-3, .backend = "cpu"});
  EXPECT_EQ(o["best"]["method"], c.best.method->name);
  EXPECT_EQ(o["best"]["bound"], c.best.bound);
  EXPECT_EQ(o["best"]["reason"], c.best.reason);
  ASSERT_EQ(o["others"].size(), c.others.size());
  for (std::size_t i = 0; i < c.others.size(); ++i) {
    EXPECT_EQ(o["others"][i]["method"], c.others[i].method->name);
    EXPECT_EQ(o["others"][i]["reason"], c.others[i].reason);
  }
}

TEST(TheToolsChoice, IsReadableAt80ColumnsAndEndsWithAdvice) {
  const Outcome o = shell().run(tool_choose + "--probability 0.99");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(o.out.substr(o.out.rfind("\n\n")), HasSubstr("\nUse "))
      << "advice is the last paragraph, apart from notes";
  const std::string premise =
      "if rounding errors have mean 0; not valid for equal, sorted or\n  patterned data\n";
  EXPECT_THAT(o.out, HasSubstr(premise));
  EXPECT_THAT(shell().run(tool_choose).out, Not(HasSubstr(premise))) << "the rigorous bound has no premise";
  for (const Method& v : methods("sum"))
    if (v.backend == "cpu" && v.accepts(format_info<fp32>())) {
      EXPECT_THAT(o.out, HasSubstr(v.name));
    }
}

TEST(TheToolsChoice, SaysThatItAssumesElementsOfOneSignUnlessItKnowsTheConditionNumber) {
  const std::string assumed = "assumed: all elements have one sign (condition number 1); otherwise give";
  EXPECT_THAT(shell().run(tool_choose).out, HasSubstr(assumed));
  EXPECT_THAT(shell().run(tool_choose + "--operation dot").out,
              HasSubstr("assumed: all products have one sign"));
  for (const char* command : {"--condition 1", "--condition 100", "--operation norm"})
    EXPECT_THAT(shell().run(tool_choose + command).out, Not(HasSubstr("assumed")));
  EXPECT_THAT(shell().run("$T choose uniform.f32 --relative-error 1e-3").out, Not(HasSubstr("assumed")));
}

TEST(TheToolsChoice, ExplainsABoundThatIsNotFinite) {
  const std::string note = "inf, no finite bound: an overflow cannot be excluded";
  EXPECT_THAT(shell().run(tool_choose + "--magnitudes 70000 --backend cpu").out, HasSubstr(note));
  EXPECT_THAT(shell().run("$T choose --length 4 --input fp16 --ulps 1 --backend cpu").out,
              Not(HasSubstr(note)));
}

TEST(TheToolsChoice, TakesLengthFormatAndConditionFromData) {
  const json o = run_json("$T choose uniform.f32 --relative-error 1e-3 --costs shipped --json");
  const json data = run_json("$T compare uniform.f32 --methods exact --json")["data"];
  EXPECT_EQ(o["length"], 5000);
  EXPECT_EQ(o["input_format"], "fp32");
  EXPECT_NEAR(o["condition"].get<double>() / data["condition"].get<double>(), 1, 1e-9);
  EXPECT_GE(o["condition"], data["condition"]);
  EXPECT_EQ(o["magnitudes"], data["magnitudes"]);
}

TEST(TheToolsChoice, FitsTheSchemaAndIsThatOfTheLibraryForEveryOperationWithOneResult) {
  std::string last;
  for (const Method& m : methods()) {
    if (m.operation == last) continue;
    last = m.operation;
    const std::string command =
        "$T choose --length 1000 --input fp32 --ulps 100 --costs shipped "
        "--backend cpu --operation " +
        last;
    if (m.results > 1 || m.has_result_per_element || m.takes_keys) {
      EXPECT_THAT(shell().run(command).err, HasSubstr("is not an operation with one result; choose one of"));
      continue;
    }
    const Requirements required{
        .operation = last, .length = 1000, .input = "fp32", .ulps = 100, .backend = "cpu"};
    const json o = run_json(command + " --json");
    EXPECT_EQ(harness::schema().problem(o, "choice"), "") << last;
    EXPECT_EQ(o["best"]["method"], choose(required).best.method->name);
    EXPECT_EQ(o["operation"], last);
    for (const std::string& line : lines(shell().run(command).out)) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(TheToolsChoice, OfADotProductTakesTwoFiles) {
  const json o = run_json("$T choose numbers.txt other.txt --operation dot --ulps 1e6 --json");
  EXPECT_EQ(o["length"], 3);
  EXPECT_EQ(o["magnitudes"], 2 + 10 + 4.5);
  EXPECT_NEAR(o["condition"].get<double>(), 16.5 / 3.5, 1e-9);
  EXPECT_THAT(shell().run("$T choose numbers.txt --operation dot --ulps 1").err,
              HasSubstr("dot takes exactly two files, and 1 was given"));
}

TEST(TheToolsChoice, RefusesDataWithoutARelativeError) {
  EXPECT_EQ(shell().run("$T choose cancel.txt --ulps 1").err,
            "samesum: cancel.txt: its sum is 0 or not finite, and errors are relative to it; use exact\n");
  EXPECT_EQ(shell().run("echo 0 0 >zeros.txt; $T choose zeros.txt --operation norm --ulps 1").err,
            "samesum: zeros.txt: its result is 0 or not finite, and errors are relative to it; samesum norm "
            "--bound prints an absolute bound\n");
}

TEST(TheToolsChoice, UsesTheGivenCostsAndSkipsCorruptLines) {
  write(shell().work() / "costs.jsonl",
        costs({{"cpu", "a"}, {"gpu", nullptr}}, speed("sum/exact/fp32@cpu", 1e-6) + "{\"kind\":\"speed\"}\n" +
                                                    speed("sum/tree/plain/fp32@cpu", 2e-6) +
                                                    speed("sum/pairwise/plain/fp32@cpu", 1e-7, "60 binades") +
                                                    speed("sum/exact/fp32@cpu", 1e-9).substr(0, 40)));
  const json o = run_json(tool_choose + "--costs costs.jsonl --json");
  EXPECT_EQ(o["best"]["method"], "sum/exact/fp32@cpu");
  EXPECT_EQ(o["best"]["seconds"], 1e-6);
  EXPECT_EQ(o["others"][0]["method"], "sum/tree/plain/fp32@cpu");
  EXPECT_TRUE(o["others"][1]["seconds"].is_null()) << "only costs for normal data count";
  EXPECT_EQ(o["costs"]["file"], "costs.jsonl");
  EXPECT_EQ(o["costs"]["corrupt_lines"], 2);
  EXPECT_THAT(shell().run(tool_choose + "--costs costs.jsonl").out, HasSubstr("2 corrupt lines skipped"));
}

TEST(TheToolsChoice, IgnoresTheCalibrationOfAnotherMachine) {
  fs::create_directories(shell().work() / "cache/samesum");
  const fs::path file = shell().work() / "cache/samesum/speed_vs_length.jsonl";
  const auto source = [] {
    return run_json("XDG_CACHE_HOME=cache " + tool_choose + "--json")["costs"]["file"];
  };
  write(file, costs({{"cpu", "an abacus"}, {"gpu", nullptr}}, speed("sum/exact/fp32@cpu", 1e-6)));
  EXPECT_TRUE(source().is_null());
  EXPECT_THAT(shell().run("XDG_CACHE_HOME=cache " + tool_choose).out, HasSubstr("abacus"));
  const json here = run_json("$T compare numbers.txt --methods exact --json")["provenance"];
  write(file, costs(here, speed("sum/exact/fp32@cpu", 1e-6)));
  EXPECT_EQ(source(), "cache/samesum/speed_vs_length.jsonl");
  EXPECT_TRUE(run_json("XDG_CACHE_HOME= HOME= " + tool_choose + "--json")["costs"]["file"].is_null());
}

TEST(TheToolsCalibration, IsFoundByTheChoiceAndHasEveryRequestedCost) {
  const Outcome o = shell().run("XDG_CACHE_HOME=made $T calibrate --quick --methods 'exact/*,tree/plain/*'");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, IsEmpty()) << "progress is shown on terminals only";
  const json choice = run_json("XDG_CACHE_HOME=made " + tool_choose + "--json");
  EXPECT_EQ(choice["costs"]["file"], "made/samesum/speed_vs_length.jsonl");
  EXPECT_EQ(choice["costs"]["corrupt_lines"], 0);
  EXPECT_FALSE(choice["best"]["seconds"].is_null());
  std::size_t known = !choice["best"]["seconds"].is_null();
  for (const json& other : choice["others"]) {
    const Method& m = find(other["method"].get<std::string>());
    const bool is_asked_for = m.accumulator == "exact" || (m.order == "tree" && m.accumulator == "plain");
    EXPECT_EQ(other["seconds"].is_null(), !is_asked_for) << other;
    known += is_asked_for;
  }
  EXPECT_GE(known, 8u) << "two kinds of sums in four formats";
  EXPECT_EQ(shell().run("$T calibrate --methods 'tree/plane/*'").code, 2);
}

TEST(TheToolsCalibration, KeepsTheCostsOfOtherOperations) {
  const std::string file = " --quick --out both.jsonl";
  EXPECT_EQ(shell().run("$T calibrate --methods tree/plain/fp32" + file).code, 0);
  EXPECT_EQ(shell().run("$T calibrate --operation mean --methods tree/plain/fp32" + file).code, 0);
  const auto is_known = [](const std::string& operation) {
    const json o = run_json(
        "$T choose --length 1000 --input fp32 --relative-error 1 --costs both.jsonl "
        "--json --operation " +
        operation);
    return o["best"]["method"] == operation + "/tree/plain/fp32@cpu" && !o["best"]["seconds"].is_null();
  };
  EXPECT_TRUE(is_known("sum"));
  EXPECT_TRUE(is_known("mean"));
  const std::string kept = testing_support::read(shell().work() / "both.jsonl");
  EXPECT_EQ(shell().run("$T calibrate --operation softmax" + file).code, 2);
  EXPECT_EQ(testing_support::read(shell().work() / "both.jsonl"), kept);
}

TEST(TheToolsCalibration, OfAllMethodsHasEveryCost) {
  if (std::getenv("SAMESUM_LONG_TESTS") == nullptr)
    GTEST_SKIP()
        << "this takes a minute or two; set SAMESUM_LONG_TESTS=1 (the test above calibrates some methods)";
  EXPECT_EQ(shell().run("$T calibrate --quick --out all.jsonl").code, 0);
  for (const json& other : run_json(tool_choose + "--costs all.jsonl --json")["others"])
    if (!find(other["method"].get<std::string>()).is_slow) {
      EXPECT_FALSE(other["seconds"].is_null()) << other;
    }
}

}  // namespace
}  // namespace samesum::choosing
