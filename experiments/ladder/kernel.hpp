/// The ladder: ways to sum, simplest first, and what else makes a kernel fast, each a short file beside this
/// one.
///
/// A kernel is data in one list. The lists are walked by the experiment and by the tests; what is in them is
/// checked in the same way for both (judge.hpp).
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

/// What a kernel works on: n elements, all in the memory of where it runs.
struct Task {
  const float *x, *y;    ///< aligned to 16 bytes; y has those of x below 1/2 first, then the others
  float *out, *scratch;  ///< a sum is one number; scratch has room for what a block can sum, and so has out
  std::size_t n;
};

inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t most_of_block = 2048;  ///< elements: two a thread

/// The sum in the order that a kernel declares, written down as simply as can be.
using Reading = float (*)(std::span<const float> x, const harness::Truth& truth);

/// A kernel, and what is to be known of it. Bytes and operations are counted in its text, not measured: what
/// it moves between memory and registers an element, and its additions, multiplications and exponentials.
struct Kernel {
  std::string method;                    ///< "interleaved/fp32@cuda"
  std::string lesson;                    ///< what it teaches, in a sentence
  std::function<void(const Task&)> run;  ///< on a GPU it is only launched
  int setting = 1;                       ///< of several: elements a thread, stride, threads a block
  double bytes = 4, operations = 1;

  // Of sums.
  Promise promise = Promise::none;
  std::size_t most = unlimited;  ///< elements that it can sum
  /// On the longest path from an element to the sum of n; null where it is exact.
  double (*additions)(std::size_t n) = nullptr;
  double (*atomics)(std::size_t n) = nullptr;  ///< additions to memory that flush what is subnormal
  Reading reading = nullptr;                   ///< where it promises one order

  // Of the others.
  std::string demonstration = "";  ///< what of; empty for a sum
  std::size_t length = 0;          ///< elements that it is timed on: a multiple of the next
  std::size_t multiple = 1;
  /// What `out` must hold, on a CPU; null where nothing is kept.
  void (*expected)(const Task&, int setting) = nullptr;
  double tolerance = 0;  ///< relative; 0: every bit
  /// Threads of a multiprocessor at once over those it has room for; 0 where blocks are not varied.
  double occupancy = 0;
  bool suggested = false;  ///< the block size that CUDA suggests
};

/// The kernels of a CPU and of a GPU, simplest first: the sums, then the demonstrations. Where there is no
/// GPU, what is the GPU's throws std::runtime_error.
std::vector<Kernel> cpu_kernels();
std::vector<Kernel> gpu_kernels();

/// All elements read, nothing kept: what the speeds of sums are a share of.
Kernel cpu_read();
Kernel gpu_read();

/// Launches a kernel that does nothing, for a profile to tell where another begins (profile.hpp).
void gpu_mark();

// --- demonstrations that are the same computation on a CPU and on a GPU -----------------------------

inline constexpr int window_radius = 8;

/// What a branch chooses from: steps of x·a + b.
struct Step {
  float a, b;
};
inline constexpr Step step_below{0.75f, 0.125f}, step_above{0.5f, 0.25f};

// What `out` must hold, element by element.
void expect_strided(const Task& t, int stride);
void expect_steps(const Task& t, int steps);
void expect_steps_of_partitioned(const Task& t, int steps);
void expect_sum_of_two(const Task& t, int);
void expect_window(const Task& t, int);
void expect_softmax(const Task& t, int columns);
void expect_count(const Task& t, int steps);

inline constexpr int chains = 8;  ///< of what counts in registers: no addition waits for one of another chain

/// How far a softmax of fp32 may be off, relatively and to first order, doubled: `additions` on the longest
/// path, each with an exponential whose argument is rounded (elements are in [0, 1), so by u at most), both
/// within 2 ulps.
constexpr double softmax_tolerance(double additions) { return 2 * (8 * additions + 16) * 0x1p-24; }

}  // namespace samesum::ladder
