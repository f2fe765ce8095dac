/// Includes point down: a file may include its own floor and those below.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

namespace {

namespace fs = std::filesystem;

/// The floors from bottom to top; the longest prefix that fits a path decides. Floors that are equal but
/// differ in name are mutually ignorant.
const std::vector<std::pair<std::string, int>> floors = {
    {"lib/samesum/config.hpp", 0},
    {"lib/samesum/format/", 1},
    {"lib/samesum/value.hpp", 1},
    {"lib/samesum/promise.hpp", 1},
    {"lib/samesum/environment", 1},
    {"lib/samesum/serial_form.hpp", 1},
    {"lib/samesum/text.hpp", 1},
    {"lib/samesum/order/", 2},
    {"lib/samesum/bound", 3},
    {"lib/samesum/accumulator/", 4},
    {"lib/samesum/reading.hpp", 5},
    {"lib/samesum/operation/", 6},   // what is reduced, over accumulators and orders
    {"lib/samesum/support.hpp", 7},  // which combinations there are
    {"lib/samesum/method.hpp", 7},
    {"lib/samesum/name.hpp", 8},
    {"lib/samesum/catalogue.hpp", 8},
    {"lib/samesum/state.hpp", 8},
    {"lib/samesum/choose.hpp", 9},
    {"lib/samesum/samesum.hpp", 10},
    {"lib/samesum/backend/", 9},  // what a backend is, over methods
    {"lib/samesum/describe.hpp", 10},
    {"lib/samesum/backend/reference/", 11},
    {"lib/samesum/backend/cpu/", 11},
    {"lib/samesum/gpu.hpp", 11},
    {"lib/samesum/reduce.hpp", 12},
    {"lib/samesum/method.cpp", 12},
    {"lib/samesum/catalogue.cpp", 12},
    {"lib/samesum/state.cpp", 12},
    {"lib/samesum/choose.cpp", 12},
    {"lib/samesum/shipped_costs.cpp", 12},
    {"lib/samesum/samesum.cpp", 12},
    {"lib/samesum/backend/cuda/", 13},  // above the public face, whose types and errors it gives
    {"lib/samesum/reduce.cuh", 14},
    {"experiments/samesum_build.hpp", 0},           // generated: version, compiler, commit
    {"experiments/samesum_results_schema.hpp", 0},  // generated: what results look like
    {"experiments/harness/", 14},
    {"experiments/", 15},
    {"tests/", 16},
};

const std::pair<std::string, int>* floor_of(const std::string& path) {
  const std::pair<std::string, int>* best = nullptr;
  for (const auto& floor : floors)
    if (path.starts_with(floor.first) && (!best || floor.first.size() > best->first.size())) best = &floor;
  return best;
}

TEST(Includes, PointDown) {
  const fs::path root = SAMESUM_SOURCE_DIR;
  const std::regex include{R"re(^\s*#include "([^"]+)")re"};
  int seen = 0;
  for (const char* top : {"lib", "experiments", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator{root / top}) {
      const std::string extension = entry.path().extension();
      if (extension != ".hpp" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
      const std::string path = fs::relative(entry.path(), root);
      if (path.starts_with("tests/consumer/")) continue;
      const auto* from = floor_of(path);
      ASSERT_NE(from, nullptr) << path << " is on no floor: give it one in this test";
      std::ifstream file{entry.path()};
      for (std::string line; std::getline(file, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, include)) continue;
        const std::string name = match[1];
        const std::string target = name.starts_with("samesum/")   ? "lib/" + name
                                   : name.starts_with("harness/") ? "experiments/" + name
                                                                  : path.substr(0, path.find('/') + 1) + name;
        const auto* to = floor_of(target);
        ASSERT_NE(to, nullptr) << path << " includes " << name << ", which is on no floor";
        EXPECT_TRUE(to->second < from->second || to->first == from->first || to->second == 1)
            << path << " includes " << target << ", which is not below it";
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 50);
}

}  // namespace
