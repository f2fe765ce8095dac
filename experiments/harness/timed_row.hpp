/// Rows with times. Their rounds are measured, by one process after another; everything else about the times
/// is derived from the rounds of all processes.
#pragma once

#include <optional>

#include "harness/median.hpp"
#include "harness/place.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// The row of a key, with the fields of times but without rounds. `turns` is a number that only rows share
/// that are measured in turns.
Json row_without_rounds(Json key, int turns);

/// The largest number of turns in the lines of a results file; 0 if there is none.
int largest_turns(const std::string& lines);

/// Number of processes that measured the row.
std::size_t processes_of(const Json& row);

/// The rounds in a field of a row.
Processes rounds_of(const Json& row, const char* field = "rounds");

/// Adds the rounds of a process to a field of a row, in seconds with 5 significant digits.
void add_rounds(Json& row, const std::vector<double>& seconds, const char* field = "rounds");

/// Adds the check of a process: `verified` is true if all checks are, and null without one.
void add_check(Json& row, std::optional<bool> verified);

/// Adds the rounds and the check of a process.
void add_process(Json& row, const Speed& speed);

/// Computes `seconds`, `low` and `high` from the rounds.
void derive_times(Json& row);

}  // namespace samesum::harness
