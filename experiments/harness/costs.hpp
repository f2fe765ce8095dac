/// What sums cost on the machine at hand: results of `samesum calibrate`, or of `speed_vs_length`.
#pragma once

#include <string>
#include <vector>

#include "samesum/catalogue/choose.hpp"

namespace samesum::harness {

struct CostTable {
  std::string file;     ///< empty for the shipped one
  std::string machine;  ///< its processors
  std::vector<Cost> costs;
  std::size_t corrupt = 0;  ///< lines that were skipped
  std::string passed_over;  ///< the calibration that was not taken, and why; or empty
};

/// Where `samesum calibrate` writes: $XDG_CACHE_HOME/samesum/speed_vs_length.jsonl, or in ~/.cache. Empty
/// where there is neither.
std::string calibration_file();

/// Of methods that are here: one thread of the CPU, and the GPU, on normal data that are there already.
/// Throws InputError where the file is no such file.
CostTable read_costs(const std::string& path);

/// The calibration if there is one of this machine, else what is shipped.
CostTable default_costs();

CostTable shipped_table();

}  // namespace samesum::harness
