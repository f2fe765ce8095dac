/// Whether a kernel is right, which is asked before it is timed.
#pragma once

#include <optional>

#include "harness/truth.hpp"
#include "ladder/kernel.hpp"

namespace samesum::ladder {

/// Elements in the memory of a place, as kernels want them: uniform in [0, 1), or others for tests.
class Workbench {
 public:
  /// Room for so many elements, which repeat the block; and for `results` numbers.
  Workbench(const harness::Place& place, std::span<const float> block, std::size_t room, std::size_t results);

  std::size_t room() const { return room_; }
  Task task(std::size_t n) const { return {x_.get(), y_.get(), out_.get(), scratch_.get(), n}; }
  std::span<const float> x(std::size_t n) const { return {host_.data(), n}; }  ///< on the host

  /// Runs a sum; what was not written is NaN.
  float sum(const Kernel& kernel, std::size_t n) const;

  /// What is wrong with what a demonstration gives for n elements, or "".
  std::string problem(const Kernel& kernel, std::size_t n) const;

 private:
  const harness::Place& place_;
  std::size_t room_;
  std::vector<float> host_, partitioned_;
  std::shared_ptr<float> x_, y_, out_, scratch_;
};

/// What the answers of some runs are worth.
struct Judgement {
  std::size_t runs, distinct_bits;
  float first;                  ///< the first run's
  double error_ulps;            ///< of the run that is farthest from the truth, like the next two
  double bound;                 ///< rigorous, on the absolute error
  bool within_bound;            ///< of all runs
  bool broken;                  ///< a second result where the promise allows one only
  std::optional<bool> as_read;  ///< whether all have the bits of the declared order, where one is declared

  bool holds() const { return within_bound && !broken && as_read.value_or(true); }
};
Judgement judge(const Kernel& kernel, const std::vector<float>& answers, std::span<const float> x,
                const harness::Truth& truth);

}  // namespace samesum::ladder
