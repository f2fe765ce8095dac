/// Selects the softmax kernel for the rows of a work, and launches it, for elements of one format.
#include <algorithm>

#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/softmax/narrow.cuh"
#include "samesum/backend/cuda/softmax/softmax.cuh"
#include "samesum/backend/cuda/softmax/wide.cuh"

namespace samesum::gpu {
namespace softmaxes {
namespace {

constexpr std::size_t most_blocks = 0x7fffffff;

/// The grid and the attributes of one launch.
class Grid {
 public:
  Grid(int threads, int cluster, std::size_t shared, cudaStream_t stream) : cluster_{cluster} {
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
  Grid(const Grid&) = delete;

  template <class T>
  cudaError_t start(void (*kernel)(SoftmaxRows<T>), const SoftmaxRows<T>& rows, std::size_t clusters) {
    const auto size = static_cast<std::size_t>(cluster_);
    if (clusters > most_blocks / size) return cudaErrorInvalidConfiguration;
    config_.gridDim = dim3(static_cast<unsigned>(clusters * size));
    return cudaLaunchKernelEx(&config_, kernel, rows);
  }

  /// Sets `count` to the number of blocks, or clusters, that run at once on the current device.
  template <class T> cudaError_t resident(void (*kernel)(SoftmaxRows<T>), std::size_t& count) {
    const std::size_t shared = config_.dynamicSmemBytes;
    if (const cudaError_t error = allow_shared(reinterpret_cast<const void*>(kernel), shared)) return error;
    if (cluster_ == 1) return resident_blocks(kernel, static_cast<int>(config_.blockDim.x), count, shared);
    int found = 0;
    const cudaError_t error = cudaOccupancyMaxActiveClusters(&found, kernel, &config_);
    count = static_cast<std::size_t>(std::max(found, 1));
    return error;
  }

 private:
  cudaLaunchConfig_t config_{};
  cudaLaunchAttribute attribute_{};
  int cluster_;
};

template <class T, class C> cudaError_t launch_narrow(const SoftmaxRows<T>& rows, cudaStream_t stream) {
  Grid grid{narrow_threads, 1, 0, stream};
  constexpr int run_of_few = sizeof(T) == 2 ? 8 : 4;  // half a warp per row, if that suffices
  const auto launch_with = [&]<class Sum, bool log>() {
    const auto kernel = [&]<int run, int group, int rows_of_lanes>() {
      return grid.start<T>(softmax_narrow<T, C, Sum, log, run, group, rows_of_lanes>, rows,
                           (rows.rows - 1) / static_cast<std::size_t>(narrow_threads / group) + 1);
    };
    if (rows.columns <= 32) return kernel.template operator()<run_of_few, 32 / run_of_few, 1>();
    if (rows.columns <= 256) return kernel.template operator()<run_of_few, lanes / run_of_few, 2>();
    if (rows.columns <= 512) return kernel.template operator()<run_of_few, lanes / run_of_few, 4>();
    return kernel.template operator()<4, warp, 8>();
  };
  if (rows.accumulator == SoftmaxSum::exact)
    return rows.log ? launch_with.template operator()<ExactRowSum, true>()
                    : launch_with.template operator()<ExactRowSum, false>();
  if (rows.accumulator == SoftmaxSum::online)
    return rows.log ? launch_with.template operator()<OnlineRowSum, true>()
                    : launch_with.template operator()<OnlineRowSum, false>();
  return by_accumulator<C>(rows.accumulator, [&]<class F>() {
    return rows.log ? launch_with.template operator()<RowSum<F>, true>()
                    : launch_with.template operator()<RowSum<F>, false>();
  });
}

/// Leaves per row, rounded up to a power of two.
[[maybe_unused]] int leaves_of_row(std::size_t columns) {
  return static_cast<int>(std::bit_ceil(Order::leaves(columns)));
}

template <class T> cudaError_t launch_held(const SoftmaxRows<T>& rows, cudaStream_t stream) {
  const auto start = [&]<class F>() {
    constexpr int most = held_threads<T, F> / LeafPart<T>::threads;
    const int needed = leaves_of_row(rows.columns),
              leaves = needed <= most ? needed : std::max(most / 2, needed / most_cluster);
    Grid grid{leaves * LeafPart<T>::threads, needed / leaves, 0, stream};
    return grid.start<T>(rows.log ? softmax_held<T, F, true> : softmax_held<T, F, false>, rows, rows.rows);
  };
  if (rows.accumulator == SoftmaxSum::exact) return start.template operator()<ExactHeldSum>();
  if (rows.accumulator == SoftmaxSum::online) return start.template operator()<OnlineHeldSum>();
  return by_accumulator<fp32>(rows.accumulator, [&]<class F>() { return start.template operator()<F>(); });
}

/// Launches as many blocks as run at once, or fewer for fewer rows: each block prefetches its next rows.
template <class T>
cudaError_t launch_ahead(const SoftmaxRows<T>& rows, cudaStream_t stream, bool has_clusters) {
  const int needed = leaves_of_row(rows.columns);
  const int leaves = !has_clusters ? needed : needed < most_cluster ? 2 : needed / most_cluster;
  const int threads = leaves * LeafPart<T>::threads;
  Grid grid{threads, needed / leaves, static_cast<std::size_t>(threads) * Ahead<T, true>::bytes_of_thread,
            stream};
  return by_accumulator<fp32>(rows.accumulator, [&]<class F>() {
    const auto kernel = by_alignment(rows.aligned, [&]<bool aligned>() {
      return rows.log ? softmax_ahead<T, F, true, aligned> : softmax_ahead<T, F, false, aligned>;
    });
    std::size_t most = 0;
    if (const cudaError_t error = grid.resident<T>(kernel, most)) return error;
    return grid.start<T>(kernel, rows, std::min(rows.rows, most));
  });
}

template <class T, class C>
cudaError_t launch_wide(const SoftmaxRows<T>& rows, bool online, cudaStream_t stream) {
  // The fastest numbers, measured on an H100. In the online form a warp adds a leaf, which takes longest.
  const std::size_t n = rows.columns;
  const int threads = online          ? (n <= 4 * leaf ? 64 : 256)
                      : n <= leaf / 2 ? 64
                      : n <= leaf     ? 128
                      : n <= 2 * leaf ? 256
                                      : wide_threads;
  Grid grid{threads, 1, 0, stream};
  return grid.start<T>(online ? softmax_wide<T, C, true> : softmax_wide<T, C, false>, rows,
                       std::min(rows.rows, most_blocks));
}

/// Launches a kernel that holds rows computed in fp32; sets `error` and returns whether it can.
template <class T> bool launch_if_held(const SoftmaxRows<T>& rows, cudaStream_t stream, cudaError_t& error) {
  // The architecture that the kernels were compiled for decides: it may be older than the device.
  cudaFuncAttributes attributes{};
  if ((error = cudaFuncGetAttributes(&attributes, softmax_held<T, fp32, false>))) return true;
  const bool has_clusters = attributes.ptxVersion >= 90;
  constexpr int most_of_block = ahead_threads / LeafPart<T>::threads;
  static_assert(ahead_threads == held_threads<T, ExactHeldSum> &&
                ahead_threads == held_threads<T, OnlineHeldSum>);
  if (rows.columns > std::size_t{leaf} * (has_clusters ? most_held_leaves : most_of_block)) return false;
  if constexpr (sizeof(T) == 2) {
    if (rows.columns > leaf && rows.accumulator != SoftmaxSum::exact &&
        rows.accumulator != SoftmaxSum::online) {
      error = launch_ahead(rows, stream, has_clusters);
      return true;
    }
  }
  error = launch_held(rows, stream);
  return true;
}

bool is_multiple(const void* p, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}

template <class T, class C> cudaError_t launch(const Launch& work, const SoftmaxForm& form) {
  const Layout& l = work.call.layout;
  const auto* const x = static_cast<const T*>(work.call.x.data);
  auto* const y = static_cast<T*>(work.call.out.data);
  const std::size_t y_stride = work.call.out.row_stride;
  const bool aligned = is_multiple(x, 4 * sizeof(T)) && is_multiple(y, 4 * sizeof(T)) &&
                       (l.n | l.outer_stride | y_stride) % 4 == 0;
  const SoftmaxRows<T> rows{x, y, l.outer, l.n, l.outer_stride, y_stride, form.sum, form.log, aligned};
  const bool online = form.sum == SoftmaxSum::online;
  const auto may_be = [&](SoftmaxSchedule schedule) {
    return work.schedule == schedule || work.schedule == SoftmaxSchedule::automatic;
  };
  if (may_be(SoftmaxSchedule::narrow) && l.n <= 1024) return launch_narrow<T, C>(rows, work.stream);
  if constexpr (std::is_same_v<C, fp32>) {
    cudaError_t error;
    if (may_be(SoftmaxSchedule::held) && launch_if_held(rows, work.stream, error)) return error;
  }
  if (may_be(SoftmaxSchedule::wide)) return launch_wide<T, C>(rows, online, work.stream);
  return cudaErrorInvalidValue;
}

}  // namespace
}  // namespace softmaxes

template <> cudaError_t softmax_of<SAMESUM_FORMAT_INDEX>(const Launch& work, const SoftmaxForm& form) {
  using T = Formats::at<SAMESUM_FORMAT_INDEX>;
  return with_computed(form, [&]<class C>() {
    if constexpr (can_read<T, C>)
      return softmaxes::launch<T, C>(work, form);
    else
      return cudaErrorInvalidValue;
  });
}

}  // namespace samesum::gpu
