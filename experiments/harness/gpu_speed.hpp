/// How long sums take on a GPU, by its own clock, and what it could do at best.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samesum/variant.hpp"

namespace samesum::harness {

/// The current GPU: "NVIDIA H200, driver 13.0, CUDA 13.0, CCCL 3.1.0"; empty where there is none.
std::string gpu_description();

/// Elements that a speed is measured on.
enum class GpuData {
  normal,    ///< a normal distribution
  binades,   ///< magnitudes over 60 binades, fewer where the format has fewer
  arbitrary  ///< all finite bit patterns
};
inline std::string name_of(GpuData data) {
  return data == GpuData::normal ? "normal" : data == GpuData::binades ? "60 binades" : "arbitrary bits";
}

struct GpuSpeedOptions {
  int repeats = 11;
  bool cold = false;  ///< each run reads data that are in no cache; else the same data again and again
};

/// What repeated runs took, a run of each method in turn.
struct GpuSpeed {
  std::string method;
  double seconds, low, high;     ///< median, and the 10th and 90th percentile
  std::optional<bool> verified;  ///< the bits are those of the variant on the CPU; where that was looked at
};

/// Memory of one format on a GPU, filled once, of which any length can be measured.
class GpuBench {
 public:
  /// Throws std::runtime_error where there is no GPU or not enough memory.
  GpuBench(const FormatInfo& format, GpuData data, std::size_t most);
  ~GpuBench();
  GpuBench(const GpuBench&) = delete;
  GpuBench& operator=(const GpuBench&) = delete;

  /// One result a variant that takes this format, and then "read" and "copy": reading all elements and doing
  /// nothing, and copying them (the time is for reading and writing).
  std::vector<GpuSpeed> measure(const std::vector<const Variant*>& variants, std::size_t n,
                                GpuSpeedOptions options);

 private:
  struct Memory;
  const FormatInfo& format_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace samesum::harness
