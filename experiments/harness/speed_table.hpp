/// Tables of the speeds of reductions, scans and reductions by key, in which the methods of a cell take
/// turns.
#pragma once

#include <vector>

#include "harness/speed_row.hpp"
#include "harness/study.hpp"

namespace samesum::harness {

struct SpeedTask {
  Cell cell;
  std::vector<const Method*> methods;  ///< of samesum, then peers
  std::vector<PeersOfCell::Declined> declined = {};
};

/// Appends the peers of the cell, and those that decline it.
void append_peers(SpeedTask& task);

/// Number of rows of a task: one per method, one more per method that is given a grid, the ceiling, and one
/// per peer that declines the cell.
std::size_t rows_of(const SpeedTask& task);

/// The fields that identify a row of kind "reduction".
Json reduction_key(const Cell& cell, const std::string& method, std::optional<int> grid, std::uint64_t seed);

/// "2^28", "65536 x 1024", "1 x 4096 x 131072"; by key "2^26, 2^12 skewed keys".
std::string shape_in_words(const Cell& cell);

/// Fails the experiment if a row has wrong bits. A peer with wrong results fails nothing: it is named, and
/// nothing is compared with it.
void check_results(Study& study, const Cell& cell, const Json& row);

/// Writes a row of kind "declined" for each peer that declines a cell, and prints it.
void decline(Study& study, const Cell& cell, const std::vector<PeersOfCell::Declined>& declined);

/// Measures all tasks as rows of kind "reduction", and prints them with the targets that they reach or miss.
/// Reports wrong bits, and wrong results of peers: such rows are marked, and nothing is compared with their
/// times.
void measure_speeds(Study& study, const std::vector<SpeedTask>& tasks);

}  // namespace samesum::harness
