/// Entry points of the translation units of the CUDA backend.
#pragma once

#include <string>
#include <vector>

#include "samesum/backend/cuda/device/call.hpp"
#include "samesum/backend/cuda/device/kernel_formats.hpp"
#include "samesum/backend/cuda/device/key_segments.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {

// In exact/exact.cu:
cudaError_t sum_exact(Launch& work, ExactDestination result);
cudaError_t write_exact(const ExactState* state, ExactDestination result, cudaStream_t stream);
cudaError_t prepare_workspace(void* workspace, cudaStream_t stream);
cudaError_t reduce_exactly(ExactKind kind, Launch& launch);
// In window/exact_reduce.cu, for the format of the elements:
template <std::size_t index> cudaError_t reduce_exactly_of(ExactKind kind, Launch& launch);

// In window/fixed_point.cu, for the format of the elements:
template <std::size_t index> cudaError_t reduce_on_grid_of(ExactKind kind, Launch& launch);
/// Finds the largest exponent of the elements of each result. Without a workspace, only sets `bytes`.
template <std::size_t index>
cudaError_t find_largest_exponents_of(const Launch& work, std::int32_t* exponents, void* workspace,
                                      std::size_t& bytes);

// In scan/exact_scan.cu, for a call with elements:
struct ExactScan;
struct ScanDestination;
template <class Sum> struct ScanSegments;
template <class Sum> struct ColumnSums;
template <int words> struct WideSum;
struct WindowSum;
struct TileDigits;
/// Finds the window of a sample, one element of each `step`, and that of all elements if the sample has not
/// given the results; and the sums of the segments and groups before each one.
cudaError_t sum_exact_segments(const Launch& work, const ExactScan& scan,
                               const ScanSegments<WindowSum>& narrow, const ScanSegments<WideSum<5>>& wide,
                               std::size_t step);
/// Finds the windows and the sums of the parts of columns, as sum_exact_segments those of segments.
cudaError_t sum_exact_parts(const Launch& work, const ExactScan& scan, const ColumnSums<WindowSum>& narrow,
                            const ColumnSums<WideSum<5>>& wide, std::size_t step);
/// Scans the elements if integers of 128 bits cannot. `digits` has room for each tile of the results, if they
/// have more than one, `format` is the format index of the results.
cudaError_t scan_with_digits(const Launch& work, const ExactScan& scan, TileDigits* digits,
                             const ScanDestination& out, std::size_t format);

// In by_key/key_segments.cu:
/// A search for runs of equal keys: its arguments, stream and workspace.
struct SegmentsLaunch {
  Keys keys;
  DeviceSegments out;
  cudaStream_t stream;
  void* workspace = nullptr;  ///< null for a size query, which only sets `bytes`
  std::size_t bytes = 0;
};
cudaError_t find_segments(SegmentsLaunch& call);

// Methods of one format, by format index; each format has its own translation unit.
template <std::size_t index> std::vector<Entry> sums();
template <std::size_t index> std::vector<Entry> reductions();
/// Enters the kernels for elements of other formats into the methods of reductions(), which begin with those
/// of batches.
template <std::size_t index> void enter_batches_of_other_formats(std::vector<Entry>& methods);
template <std::size_t index> std::vector<Entry> scans();
/// Launches the kernel for rows of the format with that index; there are some.
template <std::size_t index> cudaError_t softmax_of(const Launch& work, const SoftmaxForm& form);
std::vector<Entry> methods_by_key();
std::vector<Entry> rolling_methods();

/// The reason why no GPU can be used; empty if one can.
const std::string& absence();

}  // namespace samesum::gpu
