/// Which kernel takes which rows.
#include <algorithm>

#include "samesum/backend/cuda/softmax.cuh"
#include "samesum/backend/cuda/softmax_launch.hpp"

namespace samesum::gpu {
namespace {

using namespace softmaxes;

constexpr std::size_t most_blocks = 0x7fffffff;

template <class T, class Kernel>
cudaError_t start(Kernel kernel, const Rows<T>& rows, std::size_t blocks, int threads, int cluster,
                  cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  if (cluster > 1) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, rows);
}

template <class T> cudaError_t launch_narrow(const Rows<T>& rows, cudaStream_t stream) {
  const auto run = [&](auto kernel, int group) {
    const std::size_t per_block = static_cast<std::size_t>(narrow_threads / group);
    return start(kernel, rows, std::min((rows.rows - 1) / per_block + 1, most_blocks), narrow_threads, 1,
                 stream);
  };
  return by_accumulator(rows.accumulator, [&]<class F>() {
    if (rows.columns <= 32) return run(softmax_narrow<T, F, 8, 1>, 8);
    if (rows.columns <= 256) return run(softmax_narrow<T, F, warp, 2>, warp);
    return run(softmax_narrow<T, F, warp, 8>, warp);
  });
}

/// How many leaves a block holds and how many blocks share a row: several rows at once on a multiprocessor
/// let one's loads overlap with another's exponentials.
struct HeldShape {
  int leaves, cluster;
};
HeldShape held_shape(std::size_t columns) {
  const std::size_t needed = Order::leaves(columns);
  if (needed <= 1) return {1, 1};
  if (needed <= 2) return {2, 1};
  if (needed <= 4) return {2, 2};
  if (needed <= 8) return {2, 4};
  if (needed <= 16) return {2, 8};
  return {4, 8};
}

template <class T> cudaError_t launch_held(const Rows<T>& rows, cudaStream_t stream, HeldShape shape) {
  const auto cluster = static_cast<std::size_t>(shape.cluster);
  const std::size_t blocks = std::min(rows.rows, most_blocks / cluster) * cluster;
  return by_accumulator(rows.accumulator, [&]<class F>() {
    return start(softmax_held<T, F>, rows, blocks, shape.leaves * leaf_threads, shape.cluster, stream);
  });
}

template <class T> cudaError_t launch_wide(const Rows<T>& rows, bool online, cudaStream_t stream) {
  const int threads = rows.columns <= 2 * leaf ? 64 : rows.columns <= 8 * leaf ? 256 : wide_threads;
  const std::size_t blocks = std::min(rows.rows, most_blocks);
  return online ? start(softmax_wide<T, true>, rows, blocks, threads, 1, stream)
                : start(softmax_wide<T, false>, rows, blocks, threads, 1, stream);
}

bool is_multiple(const void* p, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}

template <class T>
cudaError_t launch(const SoftmaxCall& call, SoftmaxSchedule schedule, int capability, cudaStream_t stream) {
  Rows<T> rows{static_cast<const T*>(call.x),
               static_cast<T*>(call.y),
               call.rows,
               call.columns,
               call.x_stride,
               call.y_stride,
               call.accumulator,
               call.log,
               false};
  rows.aligned = is_multiple(call.x, 4 * sizeof(T)) && is_multiple(call.y, 4 * sizeof(T)) &&
                 (call.columns | call.x_stride | call.y_stride) % 4 == 0;
  const bool online = call.accumulator == SoftmaxSum::online;
  const bool plain = !online && call.accumulator != SoftmaxSum::exact;
  const std::size_t most_held =
      std::size_t{leaf} * (capability >= 9 ? most_held_leaves : held_threads / leaf_threads);
  if (schedule == SoftmaxSchedule::automatic)
    schedule = !plain                      ? SoftmaxSchedule::wide
               : call.columns <= 1024      ? SoftmaxSchedule::narrow
               : call.columns <= most_held ? SoftmaxSchedule::held
                                           : SoftmaxSchedule::wide;
  if (schedule == SoftmaxSchedule::narrow && plain && call.columns <= 1024)
    return launch_narrow(rows, stream);
  if (schedule == SoftmaxSchedule::held && plain && call.columns <= most_held) {
    HeldShape shape = held_shape(call.columns);
    if (capability < 9) shape = {static_cast<int>(std::bit_ceil(Order::leaves(call.columns))), 1};
    return launch_held(rows, stream, shape);
  }
  if (schedule == SoftmaxSchedule::wide) return launch_wide(rows, online, stream);
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_softmax(const SoftmaxCall& call, SoftmaxSchedule schedule, cudaStream_t stream) {
  if (call.rows == 0 || call.columns == 0) return cudaSuccess;
  int device = 0, capability = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  if (const cudaError_t error =
          cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device))
    return error;
  if (call.format->index == Formats::index_of<fp16>())
    return launch<fp16>(call, schedule, capability, stream);
  if (call.format->index == Formats::index_of<bf16>())
    return launch<bf16>(call, schedule, capability, stream);
  return launch<fp32>(call, schedule, capability, stream);
}

}  // namespace samesum::gpu
