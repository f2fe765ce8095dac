/// Calls in the streams of a GPU, with a workspace for each stream that stays prepared between calls.
#include "samesum/gpu.hpp"

#include <map>
#include <memory>
#include <mutex>

#include "module.hpp"
#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/backend/cuda/device/kept_workspace.hpp"

namespace samesum::python {
namespace {

using gpu::check;

/// Makes a device current, and the previous one again at the end.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (device != before_) check(cudaSetDevice(device), "cudaSetDevice");
    changed_ = device != before_;
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// The workspace of one stream. Calls of one stream run one after the other, so they can share it; the mutex
/// keeps the kernels of one call together.
struct Workspace {
  std::mutex enqueuing;
  gpu::KeptWorkspace kept;
};

/// Workspaces by device and stream. CUDA never gives two streams the same id, but it does reuse handles. They
/// are never destroyed: at exit, the driver may be gone first.
class Workspaces {
 public:
  /// Returns the workspace of a stream; nullptr if too many streams have one already.
  Workspace* of(int device, cudaStream_t stream) {
    unsigned long long id = 0;
    check(cudaStreamGetId(stream, &id), "cudaStreamGetId");
    const std::scoped_lock lock{mutex_};
    if (const auto found = all_.find({device, id}); found != all_.end()) return found->second.get();
    if (all_.size() >= most) return nullptr;
    return (all_[{device, id}] = std::make_unique<Workspace>()).get();
  }

 private:
  static constexpr std::size_t most = 128;
  std::mutex mutex_;
  std::map<std::pair<int, unsigned long long>, std::unique_ptr<Workspace>> all_;
};

Workspaces& workspaces() {
  static auto& all = *new Workspaces;
  return all;
}

/// Allocates memory in stream order, which is freed in stream order.
gpu::Memory stream_memory(std::size_t bytes, cudaStream_t stream) {
  return {gpu::pool_memory(bytes, nullptr, stream),
          [stream](void* p) { static_cast<void>(cudaFreeAsync(p, stream)); }};
}

/// Replaces the workspace by one of at least `bytes` bytes, in stream order.
void grow(gpu::KeptWorkspace& workspace, std::size_t bytes, cudaStream_t stream) {
  const std::size_t size = std::max(2 * workspace.bytes(), bytes);
  workspace.replace(stream_memory(size, stream), size);
}

/// Whether a stream is being captured into a graph.
bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus capture;
  check(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
  return capture != cudaStreamCaptureStatusNone;
}

/// Copies `bytes` bytes to the host, and waits for the stream.
void fetch(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

/// Waits for a call with keys, and throws what it reports.
void require_success(const Call& call, const void* status, cudaStream_t stream) {
  gpu::KeyStatus found;
  fetch(&found, status, sizeof found, stream);
  if (found.first_bad_key != no_bad_key) {
    const std::size_t place = found.first_bad_key, bytes = bytes_of(call.keys.format);
    std::int64_t key = 0;
    fetch(&key, static_cast<const std::byte*>(call.keys.data) + place * bytes, bytes, stream);
    refuse(*call.method, message_of_bad_key(place, key_at(call.keys.format, &key, 0), bins(call)));
  }
  if (found.overflowed != 0) refuse_grid(*call.method, *call.options.grid);
}

/// Enqueues a call, which reports on its keys, if it has any, to `status`.
void enqueue_in_stream(const Call& call, int device, cudaStream_t stream, gpu::KeyStatus* status) {
  // A graph that is being captured may be replayed in another stream, so it gets memory of its own.
  Workspace* const workspace = is_captured(stream) ? nullptr : workspaces().of(device, stream);
  std::size_t bytes = 0;
  // A call that fails here fails in the other form with a message.
  if (!workspace || gpu::workspace_size(call, bytes) != cudaSuccess)
    return gpu::run(call, stream, nullptr, status);
  const std::scoped_lock lock{workspace->enqueuing};
  if (bytes > workspace->kept.bytes()) grow(workspace->kept, bytes, stream);
  const auto in_workspace = [&](void* memory, std::size_t size) {
    return gpu::enqueue(call, memory, size, stream, status);
  };
  if (workspace->kept.run(stream, in_workspace) != cudaSuccess) gpu::run(call, stream, nullptr, status);
}

}  // namespace

void reduce_on_gpu(const Call& call, Place place) {
  const CurrentDevice current{place.device};
  const auto stream = reinterpret_cast<cudaStream_t>(place.stream);
  if (!call.keys.is_given()) return enqueue_in_stream(call, place.device, stream, nullptr);
  if (is_captured(stream))
    refuse(
        *call.method,
        "a graph is being captured, and calls by key wait for the GPU, to check the keys; call it outside, "
        "or use gpu::reduce in C++, which does not wait");
  const gpu::Memory status = stream_memory(sizeof(gpu::KeyStatus), stream);
  enqueue_in_stream(call, place.device, stream, static_cast<gpu::KeyStatus*>(status.get()));
  require_success(call, status.get(), stream);
}

void add_on_gpu(Partial& partial, Values x, Values y, Place place) {
  const CurrentDevice current{place.device};
  gpu::add(partial, x, y, reinterpret_cast<cudaStream_t>(place.stream));
}

Exact accumulate_on_gpu(Values x, Place place) {
  const CurrentDevice current{place.device};
  const auto stream = reinterpret_cast<cudaStream_t>(place.stream);
  std::size_t bytes = 0;
  check(gpu::accumulate(nullptr, bytes, x, nullptr, stream), "gpu::accumulate");
  const gpu::Memory workspace = stream_memory(bytes, stream);
  const gpu::Memory memory = stream_memory(sizeof(gpu::ExactState), stream);
  auto* const state = static_cast<gpu::ExactState*>(memory.get());
  check(gpu::prepare(workspace.get(), bytes, stream), "gpu::prepare");
  check(cudaMemsetAsync(state, 0, sizeof *state, stream), "cudaMemsetAsync");
  check(gpu::accumulate(workspace.get(), bytes, x, state, stream), "gpu::accumulate");
  return gpu::download(state, stream);
}

void cells_on_gpu(Place place, const std::function<void(std::uintptr_t)>& enqueue) {
  const CurrentDevice current{place.device};
  enqueue(place.stream);
}

void bind_gpu(nb::module_& m) { m.attr("has_cuda") = true; }

}  // namespace samesum::python
