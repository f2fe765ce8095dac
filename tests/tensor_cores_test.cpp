/// Tests the program tensor_cores: its rows on a CPU, where only the models are measured, and what it
/// refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/schema.hpp"
#include "shell.hpp"
#include "tensor_cores/tiles.hpp"

namespace samesum::tensor_cores {
namespace {

using harness::Json;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::read;
using testing_support::Shell;

TEST(TensorCoresProgram, GivesTheModelAndTheHashesOfEachInstruction) {
  Shell shell;
  const Outcome o = shell.run(SAMESUM_PROGRAMS "/tensor_cores --json --seed 5 --out out");
  EXPECT_EQ(o.code, 0) << o.err;
  std::set<std::string> modelled, hashed;
  bool has_hardware = false;
  for (const std::string& line : lines(o.out)) {
    const Json row = Json::parse(line);
    const std::string kind = row["kind"];
    EXPECT_EQ(harness::schema().problem(row, kind), "") << line;
    has_hardware = has_hardware || kind == "fused";
    if (kind == "instruction") modelled.insert(row["instruction"]);
    if (kind != "dots") continue;
    hashed.insert(row["instruction"]);
    EXPECT_EQ(row["n"], 10 * per_hash);
    EXPECT_EQ(row["equal"], row["hashes"].size());
  }
  EXPECT_EQ(modelled.size(), Instructions::size);
  EXPECT_EQ(hashed, modelled);
  EXPECT_EQ(has_hardware, o.err.find("without the hardware: ") == std::string::npos) << o.err;
  // Existing rows are not measured again.
  const std::string before = read(shell.work() / "out" / "tensor_cores.jsonl");
  EXPECT_EQ(shell.run(SAMESUM_PROGRAMS "/tensor_cores --json --seed 5 --out out").out, o.out);
  EXPECT_EQ(read(shell.work() / "out" / "tensor_cores.jsonl"), before);
}

TEST(TensorCoresProgram, MeasuresTheInstructionsThatAFilterChooses) {
  const Outcome o = Shell{}.run(SAMESUM_PROGRAMS "/tensor_cores --filter 'mma*e4m3*f16,*s8*'");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16"));
  EXPECT_THAT(o.out, ::testing::Not(HasSubstr("f64")));
  const Outcome refused = Shell{}.run(SAMESUM_PROGRAMS "/tensor_cores --filter 'mma*fp4*'");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--filter: 'mma*fp4*' matches no instruction; see --help"));
}

}  // namespace
}  // namespace samesum::tensor_cores
