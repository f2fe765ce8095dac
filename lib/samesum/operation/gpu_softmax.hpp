/// Softmax and log-softmax over rows that lie in a GPU's memory. Only where the library was built with CUDA.
#pragma once

#include "samesum/gpu.hpp"
#include "samesum/operation/softmax.hpp"

namespace samesum::gpu {

/// What samesum::softmax computes, bit for bit, ordered by the stream, without a workspace and without
/// waiting; can be captured in a graph. Rows are read fastest if the data are aligned to 16 bytes and columns
/// and strides are multiples of 4. cudaErrorInvalidValue for what `validation_error` names; and whatever
/// CUDA says.
cudaError_t softmax(std::nothrow_t, Matrix in, MutableMatrix out, SoftmaxOptions options = {},
                    cudaStream_t stream = nullptr) noexcept;

/// The same. Throws std::invalid_argument in words, and Error.
void softmax(Matrix in, MutableMatrix out, SoftmaxOptions options = {}, cudaStream_t stream = nullptr);

/// How rows are shared out. None of it changes a bit: for tests and experiments.
enum class SoftmaxSchedule {
  automatic,  ///< by width, the first below that fits
  narrow,     ///< a warp a row, or less; up to 1024 columns
  held,  ///< a block a row, or a cluster of blocks (Hopper and later), on the chip; up to 131072 columns,
         ///< without clusters 32768 of fp32 and 16384 of 16 bits
  wide,  ///< a block a row, which reads it again; any width, the exact and the online form
};
cudaError_t softmax(SoftmaxSchedule schedule, Matrix in, MutableMatrix out, SoftmaxOptions options,
                    cudaStream_t stream) noexcept;

}  // namespace samesum::gpu
