/// Tests of the order in which things are timed.
#include "harness/place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace samesum::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

/// The turns of each round, in the order in which they were run on a CPU.
std::vector<std::string> orders(int rounds, std::uint64_t seed) {
  std::string ran;
  std::vector<Turn> turns;
  for (const char* name : {"a", "b", "c", "d"})
    turns.push_back({name, std::nullopt, [&ran, name](std::size_t) {
                       ran += name;
                       // Longer than what is timed at once, so that a round has one run of each turn.
                       const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds{250};
                       while (std::chrono::steady_clock::now() < end) continue;
                     }});
  // Arrays that no cache holds are not read before each turn.
  const auto speeds =
      cpu_place()->in_turns(turns, {.repeats = {rounds, seed}, .bytes = std::size_t{1} << 25});
  for (const Speed& s : speeds) EXPECT_THAT(s.rounds, SizeIs(rounds)) << s.method;
  EXPECT_EQ(speeds.at(2).method, "c");
  ran.erase(0, ran.size() - speeds.size() * static_cast<std::size_t>(rounds));  // the runs before the rounds
  std::vector<std::string> all;
  for (std::size_t i = 0; i < ran.size(); i += turns.size()) all.push_back(ran.substr(i, turns.size()));
  return all;
}

TEST(Rounds, HaveEachTurnOnceInRandomOrdersThatTheSeedDecides) {
  const std::vector<std::string> seed_1 = orders(8, 1);
  EXPECT_THAT(seed_1, SizeIs(8));
  for (std::string round : seed_1) {
    std::ranges::sort(round);
    EXPECT_EQ(round, "abcd");
  }
  EXPECT_GT((std::set<std::string>{seed_1.begin(), seed_1.end()}.size()), 3u);
  EXPECT_EQ(orders(8, 1), seed_1);
  EXPECT_NE(orders(8, 2), seed_1);
}

}  // namespace
}  // namespace samesum::harness
