/// What NVIDIA's profiler counts while kernels run.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace samesum::ladder {

/// Shares between 0 and 1; nothing where the profiler gave no number.
struct Profile {
  std::optional<double>
      branch_efficiency;              ///< branches in which the threads of a warp agree, where there are any
  std::optional<double> l1_hit_rate;  ///< sectors of 32 bytes that were found in the first cache
};

/// Whether `ncu` can be called.
bool has_profiler();

/// Runs a command under it and gives one profile for each time that the command says where a kernel begins
/// (gpu_mark): that of the first launch after it. Throws std::runtime_error where the profiler fails.
std::vector<Profile> profile(const std::string& command);

/// The same of what `ncu --csv` printed.
std::vector<Profile> profiles_in(const std::string& csv);

}  // namespace samesum::ladder
