/// Entry points of the translation units of the CUDA backend.
#pragma once

#include <string>
#include <vector>

#include "samesum/backend/cuda/call.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {

// In exact.cu:
cudaError_t sum_exact(Launch& call, ExactDestination result);
cudaError_t write_exact(const ExactState* state, ExactDestination result, cudaStream_t stream);
cudaError_t prepare_workspace(void* workspace, cudaStream_t stream);

// In exact_reduce.cu:
cudaError_t reduce_exactly(ExactKind kind, const FormatInfo& format, Launch& launch);

// Methods of one format, by format index; each format has its own translation unit.
template <std::size_t index> std::vector<Entry> sums();
template <std::size_t index> std::vector<Entry> reductions();
template <std::size_t index> std::vector<Entry> scans();
std::vector<Entry> softmax_methods();

/// The reason why no GPU can be used; empty if one can.
const std::string& absence();

}  // namespace samesum::gpu
