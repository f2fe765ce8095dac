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

// In fixed_point.cu:
cudaError_t reduce_on_grid(ExactKind kind, const FormatInfo& format, Launch& launch);
// In exact_scan.cu, for a call with elements:
struct ExactScan;
struct TileDigits;
/// Finds the window of the elements at multiples of `step`: the sample, or all of them if that has not given
/// the results.
cudaError_t find_exact_window(const Launch& call, const ExactScan& scan, std::size_t step);
/// Scans the elements if integers of 128 bits cannot. `digits` has room for each tile of the results, if they
/// have more than one, `format` is the format index of the results.
cudaError_t scan_with_digits(const Launch& call, const ExactScan& scan, TileDigits* digits,
                             std::size_t format);

// Methods of one format, by format index; each format has its own translation unit.
template <std::size_t index> std::vector<Entry> sums();
template <std::size_t index> std::vector<Entry> reductions();
template <std::size_t index> std::vector<Entry> scans();
std::vector<Entry> softmax_methods();
std::vector<Entry> methods_by_key();

/// The reason why no GPU can be used; empty if one can.
const std::string& absence();

}  // namespace samesum::gpu
