/// How long sums take, a run of each method in turn, on a CPU and on a GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/dataset.hpp"
#include "samesum/variant.hpp"

namespace samesum::harness {

struct SpeedOptions {
  int repeats = 11;
  int threads = 1;  ///< of the CPU
  bool cold =
      false;  ///< on a GPU: each run reads data that are in no cache; else the same data again and again
};

/// What repeated runs took.
struct Speed {
  std::string method;
  double seconds, low, high;     ///< median, and the 10th and 90th percentile
  std::optional<bool> verified;  ///< the bits are those that they should be; where that was looked at
  std::vector<double> rounds;    ///< seconds, in the order of the rounds
};

Speed summary(const std::string& method, std::optional<bool> verified, std::vector<double> seconds);

/// So many elements, made once and repeated: what a longer array consists of.
inline constexpr std::size_t log2_speed_block = 20;
std::vector<std::byte> speed_block(const FormatInfo& format, const Dataset& data, std::uint64_t seed);

/// An array of one format, filled once, of which any length can be measured.
class Bench {
 public:
  virtual ~Bench() = default;
  /// One result a method that takes this format, and then "read": reading all elements and doing nothing.
  virtual std::vector<Speed> measure(const std::vector<const Variant*>& methods, std::size_t n,
                                     SpeedOptions options) = 0;
};

/// Verifies bits against the reference up to 2^20 elements.
std::unique_ptr<Bench> cpu_bench(const FormatInfo& format, const Dataset& data, std::uint64_t seed,
                                 std::size_t most);

/// By the GPU's own clock; verifies bits against the CPU's up to 2^24 elements. Besides "read" there is
/// "copy" (the time is for reading and writing). Throws std::runtime_error where there is no GPU or not
/// enough memory.
std::unique_ptr<Bench> gpu_bench(const FormatInfo& format, const Dataset& data, std::uint64_t seed,
                                 std::size_t most);

/// The current GPU: "NVIDIA H200, driver 13.0, CUDA 13.0, CCCL 3.1.0"; empty where there is none.
std::string gpu_description();

}  // namespace samesum::harness
