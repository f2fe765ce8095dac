#include "samesum/operation/gpu_softmax.hpp"

#include <new>

#include "samesum/backend/cuda/softmax_launch.hpp"
#include "samesum/environment.hpp"
#include "samesum/operation/softmax_backends.hpp"
#include "samesum/recipe.hpp"

namespace samesum::gpu {

bool has_softmax() { return absence().empty(); }

cudaError_t softmax(SoftmaxSchedule schedule, Matrix in, MutableMatrix out, SoftmaxOptions options,
                    cudaStream_t stream) noexcept try {
  const FloatingPointEnvironment environment;
  if (schedule < SoftmaxSchedule::automatic || schedule > SoftmaxSchedule::wide ||
      !validation_error(in, out, options).empty())
    return cudaErrorInvalidValue;
  return launch_softmax({in.format, in.data, out.data, in.rows, in.columns, in.row_stride, out.row_stride,
                         options.accumulator, options.log, 1},
                        schedule, stream);
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // of a message
}

cudaError_t softmax(std::nothrow_t, Matrix in, MutableMatrix out, SoftmaxOptions options,
                    cudaStream_t stream) noexcept {
  return softmax(SoftmaxSchedule::automatic, in, out, options, stream);
}

void softmax(Matrix in, MutableMatrix out, SoftmaxOptions options, cudaStream_t stream) {
  if (const std::string wrong = validation_error(in, out, options); !wrong.empty())
    throw std::invalid_argument("samesum: " + wrong);
  const cudaError_t error = softmax(SoftmaxSchedule::automatic, in, out, options, stream);
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // it has been told: the next call shall not find it
  throw Error{"softmax", error};
}

}  // namespace samesum::gpu
