/// How long batches of reductions take, a run of each method in turn.
#pragma once

#include "harness/speed.hpp"
#include "samesum/operation/reduction.hpp"

namespace samesum::harness {

/// What is measured side by side: one operation on one shape of one format.
struct ReductionCell {
  std::string operation;  ///< "sum", "dot", …
  const FormatInfo* input;
  std::size_t outer, n, inner;  ///< of a C-ordered array whose middle axis is reduced
  int threads;                  ///< 0 on a GPU

  Layout layout() const { return inner == 1 ? Layout::rows(outer, n) : Layout::axis(outer, n, inner); }
  std::size_t elements() const { return outer * n * inner; }
  /// All inputs together.
  std::size_t bytes() const { return elements() * input->bytes * (operation == "dot" ? 2 : 1); }
};

/// One result a method, those of other libraries that have the operation, and "read". The bits of ours are
/// checked against the literal reading, or those of the CPU, on results from the beginning and the end.
std::vector<Speed> cpu_reduction_speeds(const ReductionCell& cell,
                                        const std::vector<const Reduction*>& methods, std::uint64_t seed,
                                        int repeats);
std::vector<Speed> gpu_reduction_speeds(const ReductionCell& cell,
                                        const std::vector<const Reduction*>& methods, std::uint64_t seed,
                                        int repeats);

}  // namespace samesum::harness
