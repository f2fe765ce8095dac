#pragma once

#include "samesum/operation/gpu_softmax.hpp"

namespace samesum::gpu {

/// Starts the kernel of a call whose arguments have been checked, all pointers to device memory.
cudaError_t launch_softmax(const SoftmaxCall& call, SoftmaxSchedule schedule, cudaStream_t stream);

}  // namespace samesum::gpu
