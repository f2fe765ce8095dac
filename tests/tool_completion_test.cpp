/// Completes commands in bash and zsh with the scripts that the tool prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samesum/samesum.hpp"
#include "tool_shell.hpp"

namespace samesum::completion {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::ToolShell;

/// Returns what a shell offers for the last word of a command line.
using Complete = std::vector<std::string> (*)(const std::string& words);

std::vector<std::string> run(const std::string& script) {
  static const ToolShell shell;
  const Outcome o = shell.run("touch data.npy; cat >script <<'END'\n" + script + "END\n$SHELL_NAME script");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "");
  return lines(o.out);
}

std::vector<std::string> bash(const std::string& words) {
  setenv("SHELL_NAME", "bash", 1);
  return run("source <($T completion bash)\nCOMP_WORDS=(samesum " + words +
             ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_samesum\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
}

/// zsh itself compares the words that are offered with the last word; here the test does.
std::vector<std::string> zsh(const std::string& words) {
  setenv("SHELL_NAME", "zsh", 1);
  return run(
      "compdef() { }\n_files() { print -l -- *(N) }\n"
      "compadd() { shift; print -l -- ${(M)@:#$words[CURRENT]*} }\nsource <($T completion zsh)\n"
      "words=(samesum " +
      words + ")\nCURRENT=$#words\n_samesum\n");
}

class Completion : public ::testing::TestWithParam<std::pair<const char*, Complete>> {
 protected:
  void SetUp() override {
    const std::string found = std::string{"command -v "} + GetParam().first + " >/dev/null";
    if (std::system(found.c_str()) != 0) GTEST_SKIP() << "there is no " << GetParam().first;
  }
  std::vector<std::string> operator()(const std::string& words) const { return GetParam().second(words); }
};

TEST_P(Completion, OffersEveryOperationAsACommand) {
  const std::vector<std::string> commands = (*this)("''");
  for (const Method& m : methods()) EXPECT_THAT(commands, Contains(m.operation));
  EXPECT_THAT((*this)("cho"), ElementsAre("choose"));
}

TEST_P(Completion, OffersTheOptionsOfTheCommand) {
  EXPECT_THAT((*this)("sum --re"), ElementsAre("--resume"));
  EXPECT_THAT((*this)("moments data.npy --d"), ElementsAre("--ddof"));
  EXPECT_THAT((*this)("--v"), ElementsAre("--version"));
  EXPECT_THAT((*this)("scatter_add --b"), ElementsAre("--by", "--bound"));
  EXPECT_THAT((*this)("mean --"), AllOf(Contains("--axis"), Not(Contains("--ddof"))));
}

TEST_P(Completion, OffersTheMethodsOfTheOperation) {
  EXPECT_THAT((*this)("norm --method pairwise/"),
              ElementsAre("pairwise/fp16", "pairwise/bf16", "pairwise/fp32", "pairwise/fp64"));
  EXPECT_THAT((*this)("scatter_add --method serial/plain/fp6"), ElementsAre("serial/plain/fp64"));
  EXPECT_THAT((*this)("sum --method exact/fp3"), ElementsAre("exact/fp32"));
  EXPECT_THAT((*this)("compare x --methods exact/fp3"), ElementsAre("exact/fp32"));
  EXPECT_THAT((*this)("compare --operation norm x --methods tree/"),
              ElementsAre("tree/fp16", "tree/bf16", "tree/fp32", "tree/fp64"));
}

TEST_P(Completion, OffersTheValuesOfTheCatalogue) {
  EXPECT_THAT((*this)("choose --promise e"), ElementsAre("everywhere"));
  EXPECT_THAT((*this)("choose --operation arg"), ElementsAre("argmin", "argmax"));
  EXPECT_THAT((*this)("compare --operation ''"), AllOf(Contains("moments"), Not(Contains("argmax"))));
  EXPECT_THAT((*this)("sum --format b"), ElementsAre("bf16"));
  EXPECT_THAT((*this)("completion z"), ElementsAre("zsh"));
  EXPECT_THAT((*this)("list sca"), AllOf(Contains("scatter_add"), Contains("scatter_count")));
  EXPECT_THAT((*this)("list --a"), ElementsAre("--all"));
}

TEST_P(Completion, OffersFilesOtherwise) {
  EXPECT_THAT((*this)("sum data"), Contains("data.npy"));
  EXPECT_THAT((*this)("sum x --output data"), Contains("data.npy"));
}

INSTANTIATE_TEST_SUITE_P(InAShell, Completion,
                         ::testing::Values(std::pair{"bash", Complete{bash}},
                                           std::pair{"zsh", Complete{zsh}}),
                         [](const auto& info) { return std::string{info.param.first}; });

}  // namespace
}  // namespace samesum::completion
