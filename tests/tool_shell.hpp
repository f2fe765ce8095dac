/// A shell in which $T runs the tool.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shell.hpp"

namespace samesum::testing_support {

class ToolShell : public Shell {
 public:
  ToolShell() { setenv("T", SAMESUM_TOOL, 1); }

  /// Runs a command that prints one JSON object.
  nlohmann::json run_json(const std::string& command) const {
    const Outcome o = run(command);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(lines(o.out).size(), 1u);
    return nlohmann::json::parse(o.out);
  }
};

}  // namespace samesum::testing_support
