/// How long batches of reductions take, a run of each method in turn.
#pragma once

#include "harness/speed.hpp"
#include "samesum/operation/reduction.hpp"
#include "samesum/operation/softmax.hpp"

namespace samesum::harness {

/// What is measured side by side: one operation on one shape of one format.
struct ReductionCell {
  std::string operation;  ///< "sum", "dot", … or "softmax", which is of rows
  const FormatInfo* input;
  std::size_t outer, n, inner;  ///< of a C-ordered array whose middle axis is reduced
  int threads;                  ///< 0 on a GPU

  Layout layout() const { return inner == 1 ? Layout::rows(outer, n) : Layout::axis(outer, n, inner); }
  std::size_t elements() const { return outer * n * inner; }
  /// All inputs together; of softmax what is read and what is written.
  std::size_t bytes() const {
    return elements() * input->bytes * (operation == "dot" || operation == "softmax" ? 2 : 1);
  }
  /// What memory allows: "read", "copy".
  std::string ceiling() const { return operation == "softmax" ? "copy" : "read"; }

  bool operator==(const ReductionCell&) const = default;
};

/// A reduction, or a softmax.
struct ReductionMethod {
  std::string name;
  const Reduction* reduction;
  const SoftmaxVariant* softmax = nullptr;
};

/// All of them that compute this on this side, a CPU or a GPU.
std::vector<ReductionMethod> methods_of(const ReductionCell& cell);

/// What is measured beside our methods: those of other libraries that have the operation in the format, as
/// far as they were compiled, and then the ceiling.
std::vector<std::string> others_of(const ReductionCell& cell);

/// What one of the others on a CPU makes of the data of that seed: what nobody looks at when it is timed.
std::vector<double> results_of_peer(const ReductionCell& cell, const std::string& name, std::uint64_t seed);

/// One result a method, and those of the others. The bits of ours are checked against the literal reading, or
/// on a GPU those of the CPU, on the first and the last result. On a CPU vectors of more than 2^20 elements
/// are not read literally: there the first 2^20 are reduced and checked. Throws std::runtime_error where
/// there is no GPU or not enough memory.
std::vector<Speed> cpu_reduction_speeds(const ReductionCell& cell,
                                        const std::vector<ReductionMethod>& methods, std::uint64_t seed,
                                        int repeats);
std::vector<Speed> gpu_reduction_speeds(const ReductionCell& cell,
                                        const std::vector<ReductionMethod>& methods, std::uint64_t seed,
                                        int repeats);

}  // namespace samesum::harness
