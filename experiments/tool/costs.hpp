/// Costs of methods: results of `samesum calibrate` or of `speed_vs_length`.
#pragma once

#include <string>
#include <vector>

#include "samesum/catalogue/choose.hpp"

namespace samesum::harness {

struct CostTable {
  std::string file;     ///< empty for the shipped table
  std::string machine;  ///< names of its processors
  std::vector<Cost> costs;
  std::size_t corrupt = 0;  ///< number of skipped lines
  std::string passed_over;  ///< the calibration that was not used, and why; or empty
};

/// The file that `samesum calibrate` writes: $XDG_CACHE_HOME/samesum/speed_vs_length.jsonl, or the same below
/// ~/.cache. Empty if neither XDG_CACHE_HOME nor HOME is set.
std::string calibration_file();

/// Reads the costs of methods of this build, on one thread of the CPU and on the GPU, for normal data in hot
/// caches. Throws InputError if the file has no such costs.
CostTable read_costs(const std::string& path);

/// The lines of the file with costs of methods of other operations; empty if it was not measured on this
/// machine.
std::string costs_of_other_operations(const std::string& path, const std::string& operation);

/// The calibration of this machine if there is one, else the shipped table.
CostTable default_costs();

CostTable shipped_table();

}  // namespace samesum::harness
