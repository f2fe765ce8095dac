/// Puts the data of calls on a device, and runs calls there.
#pragma once

#include <cstring>

#include "samesum/backend/cuda/device/kept_workspace.hpp"

namespace samesum::gpu {

/// Pinned host memory: an asynchronous copy to it does not block.
inline Memory pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return {memory, [](void* p) { static_cast<void>(cudaFreeHost(p)); }};
}

/// A stream that synchronises with the default stream, on which the data may have been written.
inline std::shared_ptr<CUstream_st> new_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  return {stream, [](cudaStream_t s) { static_cast<void>(cudaStreamDestroy(s)); }};
}

/// Copies bytes from the host to new device memory.
inline Memory copied(const void* from, std::size_t bytes) {
  const Memory copy = device_memory(bytes);
  if (bytes > 0)
    check(cudaMemcpy(copy.get(), from, bytes, cudaMemcpyHostToDevice), with_size("cudaMemcpy", bytes));
  // A copy from pageable memory may return before the data have arrived, and the caller may use any stream.
  check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
  return copy;
}

/// The device that holds x; -1 for host memory.
inline int device_of(const void* x) {
  cudaPointerAttributes where{};
  check(cudaPointerGetAttributes(&where, x), "cudaPointerGetAttributes");
  return where.type == cudaMemoryTypeDevice || where.type == cudaMemoryTypeManaged ? where.device : -1;
}

/// Key `place`, from host or device memory.
inline std::uint64_t fetched_key(const Keys& keys, std::size_t place) {
  std::uint64_t key = 0;
  const std::size_t bytes = bytes_of(keys.format);
  check(cudaMemcpy(&key, static_cast<const std::byte*>(keys.data) + place * bytes, bytes, cudaMemcpyDefault),
        with_size("cudaMemcpy", bytes));
  return key_at(keys.format, &key, 0);
}

/// The device that holds x of a call; for host memory the current one.
inline int device_for(const Call& call) {
  const int of_x = call.x.size > 0 ? device_of(call.x.data) : -1;
  int current = of_x;
  if (of_x < 0) check(cudaGetDevice(&current), "cudaGetDevice");
  return current;
}

/// Makes a device the current one until the end of the scope.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~OnDevice() { static_cast<void>(cudaSetDevice(before_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

/// Layout of the results in host memory. In device memory rows are contiguous.
struct HostLayout {
  std::size_t width, pitch, rows;  ///< width and pitch in bytes
};

inline HostLayout host_layout_of(const Call& call) {
  const Method& m = *call.method;
  const Layout& l = call.layout;
  if (!m.has_result_per_element) return {l.results() * m.result_bytes(), 0, 1};
  const std::size_t bytes = m.result_format(*call.x.format)->bytes;
  const std::size_t width = l.n * l.inner;
  if (l.outer <= 1 || width == 0 || call.out.row_stride == width) return {l.outer * width * bytes, 0, 1};
  return {width * bytes, call.out.row_stride * bytes, l.outer};
}

/// Copies results to the host and waits for them. Copies by way of `pinned` unless it is null.
inline void fetch(const HostLayout& host, void* out, const void* from, void* pinned, cudaStream_t stream) {
  if (host.rows > 1)
    check(cudaMemcpy2DAsync(out, host.pitch, from, host.width, host.width, host.rows, cudaMemcpyDeviceToHost,
                            stream),
          "cudaMemcpy2DAsync");
  else
    check(
        cudaMemcpyAsync(pinned ? pinned : out, from, host.width * host.rows, cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  if (pinned) std::memcpy(out, pinned, host.width);
}

/// Reads a status in device memory. Waits for the copy.
inline KeyStatus read(const Memory& status) {
  KeyStatus copy;
  check(cudaMemcpy(&copy, status.get(), sizeof copy, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return copy;
}

/// Allocates and prepares the workspace of a call.
inline std::shared_ptr<KeptWorkspace> workspace_for(Launch& launch) {
  check(enqueue(launch), launch.call.method->name);
  const auto workspace = std::make_shared<KeptWorkspace>();
  workspace->replace(device_memory(launch.bytes), launch.bytes);
  check(workspace->prepare(launch.stream), "prepare");
  return workspace;
}

/// Enqueues a call with its workspace.
inline void enqueue_in(KeptWorkspace& workspace, Launch& launch) {
  const auto in_workspace = [&](void* memory, std::size_t) {
    launch.workspace = memory;
    return enqueue(launch);
  };
  check(workspace.run(launch.stream, in_workspace), launch.call.method->name);
}

/// Returns x where the current device can read it; no input if there is none.
inline Placed placed(Values x) {
  if (!x.is_given()) return {x, nullptr};
  if (x.size == 0) return {{*x.format, nullptr, 0}, nullptr};
  if (device_of(x.data) >= 0) return {x, nullptr};
  const Memory copy = copied(x.data, x.size * x.format->bytes);
  return {{*x.format, copy.get(), x.size}, copy};
}

/// Runs a call on data and results in device memory, and waits for it. Sets what it reports.
inline void run_there(Launch& launch, HostRun& work) {
  const Memory status = device_memory(sizeof(KeyStatus));
  check(cudaMemsetAsync(status.get(), 0, sizeof(KeyStatus), launch.stream), "cudaMemsetAsync");
  launch.status = static_cast<KeyStatus*>(status.get());
  const auto workspace = workspace_for(launch);
  enqueue_in(*workspace, launch);
  check(cudaStreamSynchronize(launch.stream), "cudaStreamSynchronize");
  const KeyStatus reported = read(status);
  if (launch.call.keys.is_given()) work.first_bad_key = reported.first_bad_key;
  work.overflowed = work.overflowed || reported.overflowed != 0;
}

}  // namespace samesum::gpu
