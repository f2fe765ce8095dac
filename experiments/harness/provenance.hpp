/// The machine on which results are measured, the build and the date.
#pragma once

#include <istream>
#include <nlohmann/json.hpp>
#include <string>

namespace samesum::harness {

using Json = nlohmann::ordered_json;  ///< keeps the order in which keys are set

/// The machine without what takes time to find out: names, number of threads, and system.
Json machine();

/// The machine, the build and the date.
Json provenance();

/// The header without what differs from run to run on one machine: the date and the clocks.
Json without_what_varies(Json header);

/// The identity of the CPU in the text of /proc/cpuinfo, whose names may be as short as "AMD EPYC". What the
/// text does not tell is null.
Json processor(std::istream& cpuinfo);

/// Adds the driver and the clocks of a GPU to a provenance, from the line that nvidia-smi prints for
/// `gpu_query`; without a line, or for fields that are no numbers, they are null.
void add_gpu(Json& provenance, const std::string& line);
inline constexpr char gpu_query[] =
    "driver_version,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.limit";

/// {"Boost": "1.83.0", …} of "Boost 1.83.0, …".
Json libraries(const std::string& versions);

}  // namespace samesum::harness
