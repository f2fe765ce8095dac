/// The ladder: kernels that sum, simplest first, and demonstrations of single techniques that make kernels
/// fast. The kernels of the GPU are short files in this folder.
///
/// A kernel is an entry of a list. The experiment and the tests iterate over the same lists and check the
/// kernels with the same code (judge.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/place.hpp"

namespace samesum::harness {
class Truth;
}

namespace samesum::ladder {

/// Input and output of a kernel, in the memory of the processor that runs it.
struct Task {
  const float *x, *y;    ///< aligned to 16 bytes; y is x partitioned: the elements below 1/2 come first
  float *out, *scratch;  ///< both have room for most_of_block elements or more; a sum writes out[0]
  std::size_t n;
};

inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t most_of_block = 2048;  ///< elements that one block can sum: two per thread

/// Reference implementation of the order that a kernel declares: returns the sum of x in that order.
using Reading = float (*)(std::span<const float> x, const harness::Truth& truth);

/// A kernel and its properties. Bytes and operations per element are counted in the source, not measured: the
/// bytes that the kernel moves between memory and registers, and its additions, multiplications and
/// exponentials.
struct Kernel {
  std::string method;                    ///< "interleaved/fp32@cuda"
  std::string lesson;                    ///< what it teaches, in one sentence
  std::function<void(const Task&)> run;  ///< on a GPU: launches the kernel, without waiting for its end
  int setting = 1;                       ///< elements per thread, stride, threads per block, …
  double bytes = 4, operations = 1;

  // For sums.
  Promise promise = Promise::none;
  std::size_t most = unlimited;  ///< largest number of elements
  /// Additions on the longest path from an element to the sum of n elements; null if the sum is exact.
  double (*additions)(std::size_t n) = nullptr;
  double (*atomics)(std::size_t n) = nullptr;  ///< additions to memory, which flush subnormal numbers to zero
  Reading reading = nullptr;                   ///< null if the kernel promises no order

  // For demonstrations.
  std::string demonstration = "";  ///< name of the technique; empty for a sum
  std::size_t length = 0;          ///< number of elements in timed runs, a multiple of `multiple`
  std::size_t multiple = 1;
  /// Computes the expected contents of `out` on a CPU; null if the kernel keeps no result.
  void (*expected)(const Task&, int setting) = nullptr;
  double tolerance = 0;  ///< relative; 0: every bit must match
  /// Resident threads of a multiprocessor over their largest number; 0 if the block size is not varied.
  double occupancy = 0;
  bool suggested = false;  ///< CUDA suggests this block size
};

/// The kernels of the CPU and of the GPU: the sums, simplest first, then the demonstrations. Without a GPU,
/// the functions with the prefix gpu_ throw std::runtime_error. `place` is that which times the kernels.
std::vector<Kernel> cpu_kernels();
std::vector<Kernel> gpu_kernels(const std::shared_ptr<const harness::Place>& place);

/// Reads all elements and keeps nothing: the ceiling that the speeds of sums are compared with.
Kernel cpu_read();
Kernel gpu_read(const std::shared_ptr<const harness::Place>& place);

/// Launches an empty kernel that marks the start of the next kernel in a profile (profile.hpp).
void gpu_mark();

// --- demonstrations that compute the same on a CPU and on a GPU -------------------------------------

inline constexpr int window_radius = 8;

/// Coefficients of a step x·a + b. A branch selects one of two.
struct Step {
  float a, b;
};
inline constexpr Step step_below{0.75f, 0.125f}, step_above{0.5f, 0.25f};

// Expected contents of `out`, element by element.
void expect_strided(const Task& t, int stride);
void expect_steps(const Task& t, int steps);
void expect_steps_of_partitioned(const Task& t, int steps);
void expect_sum_of_two(const Task& t, int);
void expect_window(const Task& t, int);
void expect_softmax(const Task& t, int columns);
void expect_count(const Task& t, int steps);

/// Independent chains of additions in the ceilings of arithmetic, so that consecutive additions overlap.
inline constexpr int chains = 8;

/// Relative tolerance for a softmax of fp32: twice its error bound to first order. The longest path has
/// `additions` additions, each with an exponential whose argument is rounded (elements are in [0, 1), so by u
/// at most), both within 2 ulps.
constexpr double softmax_tolerance(double additions) { return 2 * (8 * additions + 16) * 0x1p-24; }

}  // namespace samesum::ladder
