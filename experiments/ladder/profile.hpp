/// Runs NVIDIA's profiler (ncu) and reads its output.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace samesum::ladder {

/// Metrics of one kernel as shares between 0 and 1; empty if the profiler printed no number.
struct Profile {
  /// Branches in which all threads of a warp agree; empty if the kernel has no branch.
  std::optional<double> branch_efficiency;
  std::optional<double> l1_hit_rate;  ///< sectors of 32 bytes found in the L1 cache
};

/// Whether `ncu` is on the PATH.
bool has_profiler();

/// Runs a command under the profiler. Returns one profile per call of gpu_mark in the command: that of the
/// first launch after the mark. Throws std::runtime_error if the profiler fails.
std::vector<Profile> profile(const std::string& command);

/// Returns the profiles in the output of `ncu --csv`.
std::vector<Profile> profiles_in(const std::string& csv);

}  // namespace samesum::ladder
