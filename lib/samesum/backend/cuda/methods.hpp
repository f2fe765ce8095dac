/// The parts of the CUDA backend.
#pragma once

#include <string>
#include <vector>

#include "samesum/backend/cuda/call.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {

// In exact.cu:
cudaError_t sum_exact(Launch& call, ExactResult result);
cudaError_t write_exact(const ExactState* state, ExactResult result, cudaStream_t stream);
cudaError_t prepare_workspace(void* workspace, cudaStream_t stream);

// In exact_reduce.cu:
cudaError_t reduce_exactly(ExactKind kind, const FormatInfo& format, Launch& launch);

// The parts of the backend. Methods in the format at place `index` of the list, a translation unit each:
template <std::size_t index> std::vector<Entry> sums();
template <std::size_t index> std::vector<Entry> reductions();
std::vector<Entry> softmax_methods();

/// Why there is no GPU; empty if there is one.
const std::string& absence();

}  // namespace samesum::gpu
