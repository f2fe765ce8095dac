/// Which kernel takes which rows.
#include <algorithm>

#include "samesum/backend/cuda/call.hpp"
#include "samesum/backend/cuda/softmax.cuh"
#include "samesum/backend/cuda/softmax_launch.hpp"

namespace samesum::gpu {
namespace {

using namespace softmaxes;

constexpr std::size_t most_blocks = 0x7fffffff;

/// The grid and the attributes of one launch.
class Launch {
 public:
  Launch(int threads, int cluster, std::size_t shared, cudaStream_t stream) : cluster_{cluster} {
    config_.blockDim = dim3(static_cast<unsigned>(threads));
    config_.gridDim = dim3(static_cast<unsigned>(cluster));
    config_.dynamicSmemBytes = shared;
    config_.stream = stream;
    if (cluster == 1) return;
    attribute_.id = cudaLaunchAttributeClusterDimension;
    attribute_.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config_.attrs = &attribute_;
    config_.numAttrs = 1;
  }
  Launch(const Launch&) = delete;

  template <class T> cudaError_t start(void (*kernel)(Rows<T>), const Rows<T>& rows, std::size_t clusters) {
    const auto size = static_cast<std::size_t>(cluster_);
    config_.gridDim = dim3(static_cast<unsigned>(std::min(clusters, most_blocks / size) * size));
    return cudaLaunchKernelEx(&config_, kernel, rows);
  }

  /// How many blocks, or clusters of them, run at once on the current device.
  template <class T> cudaError_t resident(void (*kernel)(Rows<T>), std::size_t& count) {
    int found = 0, multiprocessors = 1;
    if (config_.dynamicSmemBytes > std::size_t{48} << 10)  // must be asked for
      if (const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                         static_cast<int>(config_.dynamicSmemBytes)))
        return error;
    const auto threads = static_cast<int>(config_.blockDim.x);
    const cudaError_t error = cluster_ > 1 ? cudaOccupancyMaxActiveClusters(&found, kernel, &config_)
                                           : cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                                 &found, kernel, threads, config_.dynamicSmemBytes);
    if (error != cudaSuccess) return error;
    if (cluster_ == 1)
      if (const cudaError_t unknown = look_up(cudaDevAttrMultiProcessorCount, multiprocessors))
        return unknown;
    count = static_cast<std::size_t>(std::max(found, 1)) * static_cast<std::size_t>(multiprocessors);
    return cudaSuccess;
  }

 private:
  cudaLaunchConfig_t config_{};
  cudaLaunchAttribute attribute_{};
  int cluster_;
};

/// As many blocks as run at once, if there are rows for all: each asks for its next row early.
template <class T>
cudaError_t start_resident(Launch& launch, void (*kernel)(Rows<T>), const Rows<T>& rows, std::size_t needed) {
  std::size_t most = 0;
  if (const cudaError_t error = launch.resident(kernel, most)) return error;
  return launch.start(kernel, rows, std::min(needed, most));
}

template <class T> cudaError_t launch_narrow(const Rows<T>& rows, cudaStream_t stream) {
  int multiprocessors = 1;
  if (const cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, multiprocessors)) return error;
  const auto run = [&](auto kernel, int group, int blocks) {
    Launch launch{narrow_threads, 1, 0, stream};
    const std::size_t needed = (rows.rows - 1) / static_cast<std::size_t>(narrow_threads / group) + 1;
    return launch.start<T>(kernel, rows,
                           std::min(needed, static_cast<std::size_t>(blocks * multiprocessors)));
  };
  const auto of = [&]<class F, bool log>() {
    if (rows.columns <= 32) return run(softmax_narrow<T, F, log, 8, 1>, 8, narrow_blocks<1>);
    if (rows.columns <= 256) return run(softmax_narrow<T, F, log, warp, 2>, warp, narrow_blocks<2>);
    return run(softmax_narrow<T, F, log, warp, 8>, warp, narrow_blocks<8>);
  };
  return by_accumulator(rows.accumulator, [&]<class F>() {
    return rows.log ? of.template operator()<F, true>() : of.template operator()<F, false>();
  });
}

/// How many leaves a block holds, and how many blocks share a row; powers of two. Several rows at once on a
/// multiprocessor let one's barriers be another's time to compute.
struct HeldShape {
  int leaves, cluster;
};
HeldShape held_shape(std::size_t columns, bool has_clusters) {
  const auto needed = static_cast<int>(std::bit_ceil(Order::leaves(columns)));
  if (!has_clusters) return {needed, 1};
  const int leaves = needed <= 2 ? needed : needed <= 16 ? 2 : 4;
  return {leaves, needed / leaves};
}

template <class T> cudaError_t launch_held(const Rows<T>& rows, cudaStream_t stream, HeldShape shape) {
  Launch launch{shape.leaves * leaf_threads, shape.cluster,
                static_cast<std::size_t>(shape.leaves) * leaf * sizeof(T), stream};
  return by_accumulator(rows.accumulator, [&]<class F>() {
    return start_resident<T>(launch, rows.log ? softmax_held<T, F, true> : softmax_held<T, F, false>, rows,
                             rows.rows);
  });
}

template <class T> cudaError_t launch_wide(const Rows<T>& rows, bool online, cudaStream_t stream) {
  const int threads = rows.columns <= 2 * leaf ? 64 : rows.columns <= 8 * leaf ? 256 : wide_threads;
  Launch launch{threads, 1, 0, stream};
  return launch.start<T>(online ? softmax_wide<T, true> : softmax_wide<T, false>, rows, rows.rows);
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
    return launch_held(rows, stream, held_shape(call.columns, capability >= 9));
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
