/// Checks kernels before they are timed.
#pragma once

#include <optional>

#include "harness/truth.hpp"
#include "ladder/kernel.hpp"

namespace samesum::ladder {

/// Input and output of kernels in the memory of a place. Elements of the experiment are uniform in [0, 1).
class Workbench {
 public:
  /// Allocates `room` elements, which repeat the block, and `results` numbers of output.
  Workbench(const harness::Place& place, std::span<const float> block, std::size_t room, std::size_t results);

  std::size_t room() const { return room_; }
  Task task(std::size_t n) const { return {x_.get(), y_.get(), out_.get(), scratch_.get(), n}; }
  std::span<const float> x(std::size_t n) const { return {host_.data(), n}; }  ///< on the host

  /// Runs a sum and returns its result, or NaN if the kernel wrote none.
  float sum(const Kernel& kernel, std::size_t n) const;

  /// Runs a demonstration on n elements and compares its output. Returns a message that names the first wrong
  /// element, or "".
  std::string problem(const Kernel& kernel, std::size_t n) const;

 private:
  const harness::Place& place_;
  std::size_t room_;
  std::vector<float> host_, partitioned_;
  std::shared_ptr<float> x_, y_, out_, scratch_;
};

/// Verdict on the results of several runs of a sum.
struct Judgement {
  std::size_t runs, distinct_bits;
  float first;                  ///< result of the first run
  double error_ulps;            ///< of the run that is farthest from the exact sum
  double bound;                 ///< rigorous bound on the absolute error of that run
  bool within_bound;            ///< the errors of all runs are within their bounds
  bool broken;                  ///< more than one result, although the promise allows only one
  std::optional<bool> as_read;  ///< all have the bits of the declared order; empty if none is declared

  bool holds() const { return within_bound && !broken && as_read.value_or(true); }
};

/// Judges the results of several runs on x, whose exact sum is `truth`.
Judgement judge(const Kernel& kernel, const std::vector<float>& answers, std::span<const float> x,
                const harness::Truth& truth);

}  // namespace samesum::ladder
