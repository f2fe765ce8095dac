/// The CUDA backend: places data on the device, and binds calls to a stream and a workspace.
#include <cstring>
#include <memory>

#include "samesum/backend/cuda/device_input.hpp"
#include "samesum/backend/cuda/kept_workspace.hpp"
#include "samesum/backend/cuda/merge_subtrees.hpp"
#include "samesum/backend/cuda/methods.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/catalogue/join.hpp"

namespace samesum::gpu {

const std::string& absence() {
  static const std::string reason = [] {
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaSuccess && devices == 0) error = cudaErrorNoDevice;
    if (error == cudaSuccess && only_checked)
      return std::string{"this build only checks whether CUDA code compiles (SAMESUM_CUDA=CHECK)"};
    if (error == cudaSuccess) return std::string{};
    static_cast<void>(cudaGetLastError());
    return std::string{"no GPU can be used: "} + cudaGetErrorString(error);
  }();
  return reason;
}

namespace {

/// Pinned host memory: an asynchronous copy to it does not block.
Memory pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return {memory, [](void* p) { static_cast<void>(cudaFreeHost(p)); }};
}

/// A stream that synchronises with the default stream, on which the data may have been written.
std::shared_ptr<CUstream_st> new_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  return {stream, [](cudaStream_t s) { static_cast<void>(cudaStreamDestroy(s)); }};
}

/// Copies bytes from the host to new device memory.
Memory copied(const void* from, std::size_t bytes) {
  const Memory copy = device_memory(bytes);
  if (bytes > 0)
    check(cudaMemcpy(copy.get(), from, bytes, cudaMemcpyHostToDevice), with_size("cudaMemcpy", bytes));
  // A copy from pageable memory may return before the data have arrived, and the caller may use any stream.
  check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
  return copy;
}

/// The device that holds x; -1 for host memory.
int device_of(const void* x) {
  cudaPointerAttributes where{};
  check(cudaPointerGetAttributes(&where, x), "cudaPointerGetAttributes");
  return where.type == cudaMemoryTypeDevice || where.type == cudaMemoryTypeManaged ? where.device : -1;
}

/// The device that holds x of a call; for host memory the current one.
int device_for(const Call& call) {
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

HostLayout host_layout_of(const Call& call) {
  const Method& m = *call.method;
  const Layout& l = call.layout;
  if (!m.has_result_per_element) return {l.results() * m.result_bytes(), 0, 1};
  const std::size_t bytes = m.result_format(*call.x.format)->bytes;
  const std::size_t width = l.n * l.inner;
  if (l.outer <= 1 || width == 0 || call.out.row_stride == width) return {l.outer * width * bytes, 0, 1};
  return {width * bytes, call.out.row_stride * bytes, l.outer};
}

/// Copies results to the host and waits for them. Copies by way of `pinned` unless it is null.
void fetch(const HostLayout& host, void* out, const void* from, void* pinned, cudaStream_t stream) {
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
KeyStatus read(const Memory& status) {
  KeyStatus copy;
  check(cudaMemcpy(&copy, status.get(), sizeof copy, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return copy;
}

/// Allocates and prepares the workspace of a call.
std::shared_ptr<KeptWorkspace> workspace_for(Launch& launch) {
  check(enqueue(launch), launch.call.method->name);
  const auto workspace = std::make_shared<KeptWorkspace>();
  workspace->replace(device_memory(launch.bytes), launch.bytes);
  check(workspace->prepare(launch.stream), "prepare");
  return workspace;
}

/// Enqueues a call with its workspace.
void enqueue_in(KeptWorkspace& workspace, Launch& launch) {
  const auto in_workspace = [&](void* memory, std::size_t) {
    launch.workspace = memory;
    return enqueue(launch);
  };
  check(workspace.run(launch.stream, in_workspace), launch.call.method->name);
}

/// Returns x where the current device can read it; no input if there is none.
Placed placed(Values x) {
  if (!x.is_given()) return {x, nullptr};
  if (x.size == 0) return {{*x.format, nullptr, 0}, nullptr};
  if (device_of(x.data) >= 0) return {x, nullptr};
  const Memory copy = copied(x.data, x.size * x.format->bytes);
  return {{*x.format, copy.get(), x.size}, copy};
}

/// Elements of a call on host or device memory, on the device that holds x.
class PlacedInput : public PartialInput {
 public:
  PlacedInput(const Call& call, int device)
      : scope_{device},
        stream_{new_stream()},
        x_{placed(call.x)},
        y_{placed(call.y)},
        input_{on_device(call), stream_.get(), nullptr} {}
  const FormatInfo& format() const override { return input_.format(); }
  void copy(std::size_t first, std::size_t n, std::byte* x, std::byte* y) override {
    input_.copy(first, n, x, y);
  }
  void reduce(std::span<const Subtree> subtrees, std::size_t state_bytes, std::byte* states) override {
    input_.reduce(subtrees, state_bytes, states);
  }

 private:
  Call on_device(Call call) const {
    call.x = x_.values;
    call.y = y_.values;
    return call;
  }
  OnDevice scope_;
  std::shared_ptr<CUstream_st> stream_;
  Placed x_, y_;
  DeviceInput input_;
};

void softmax(Launch& work, SoftmaxForm form) {
  const Layout& l = work.call.layout;
  if (!accept_workspace(work, size_if_none_needed, work.error) || l.outer == 0 || l.n == 0) return;
  work.error = with_kernel_format(*work.call.x.format,
                                  [&]<class T>() { return softmax_of<Formats::index_of<T>()>(work, form); });
}

class Cuda : public Backend {
  std::string_view name() const override { return "cuda"; }
  std::string absence() const override { return gpu::absence(); }

  std::vector<Entry> entries() const override {
    using Entries = std::vector<Entry>;
    const auto sums_of = []<std::size_t index>() -> Entries {
      if constexpr (has_kernels<index>) return sums<index>();
      return {};
    };
    const auto reductions_of = []<std::size_t index>() -> Entries {
      if constexpr (has_kernels<index>) return reductions<index>();
      return {};
    };
    const auto scans_of = []<std::size_t index>() -> Entries {
      if constexpr (has_kernels<index>) return scans<index>();
      return {};
    };
    return joined(
        sums_of,
        joined(reductions_of,
               joined(scans_of, joined(joined(softmax_entries<Launch, softmax>("cuda"), methods_by_key()),
                                       subtree_merges()))));
  }

  bool is_on_host(const void* x) const override { return device_of(x) < 0; }
  Placed place(Values x) const override { return placed(x); }

  void run(HostRun& work) const override {
    const Call& call = work.call;
    if (call.method->takes_keys) return run_by_key(work);
    bind(call)(call.out.data);
  }

  /// Binds a call on the device that holds x, with its own stream and workspace.
  Bound bind(const Call& call) const override {
    const int device = device_for(call);
    const OnDevice scope{device};
    const auto stream = new_stream();
    const HostLayout host = host_layout_of(call);
    const Placed x = placed(call.x), y = placed(call.y);
    Launch launch{.call = call, .stream = stream.get()};
    Memory offsets;
    if (call.layout.offsets) {
      offsets = copied(call.layout.offsets, (call.layout.outer + 1) * sizeof(std::uint64_t));
      launch.call.layout.offsets = static_cast<const std::uint64_t*>(offsets.get());
    }
    const std::size_t out_bytes = host.width * host.rows;
    const Memory out = device_memory(out_bytes),
                 pinned = host.rows == 1 && out_bytes <= small ? pinned_memory(small) : nullptr;
    const Memory status = call.options.grid ? device_memory(sizeof(KeyStatus)) : nullptr;
    launch.status = static_cast<KeyStatus*>(status.get());
    launch.call.x = x.values;
    launch.call.y = y.values;
    if (call.y.is_given() && !y.values.data) launch.call.y.data = out.get();  // null would mean one input
    launch.call.out.data = out.get();
    launch.call.out.row_stride = call.layout.n * call.layout.inner;
    const auto workspace = workspace_for(launch);
    return [launch, host, device, stream, x, y, offsets, out, pinned, workspace, status](void* to) mutable {
      const OnDevice scope{device};
      if (status) check(cudaMemsetAsync(status.get(), 0, sizeof(KeyStatus), stream.get()), "cudaMemsetAsync");
      enqueue_in(*workspace, launch);
      fetch(host, to, out.get(), pinned.get(), stream.get());
      if (status && read(status).overflowed != 0) refuse_grid(*launch.call.method, *launch.call.options.grid);
    };
  }

  std::unique_ptr<PartialInput> partial_input(const Call& call) const override {
    return std::make_unique<PlacedInput>(call, device_for(call));
  }

 private:
  /// Runs a call by key on the device that holds x. Sets the place of a bad key, and then writes nothing.
  void run_by_key(HostRun& work) const {
    const Call& call = work.call;
    const OnDevice scope{device_for(call)};
    const auto stream = new_stream();
    const Placed x = placed(call.x);
    Launch launch{.call = call, .stream = stream.get()};
    launch.call.x = x.values;
    Memory keys;
    if (call.keys.size > 0 && device_of(call.keys.data) < 0) {
      keys = copied(call.keys.data, call.keys.size * bytes_of(call.keys.format));
      launch.call.keys.data = keys.get();
    }
    const std::size_t out_bytes = call.out.size * call.method->result_bytes();
    const Memory out = call.options.combine ? copied(call.out.data, out_bytes) : device_memory(out_bytes),
                 status = device_memory(sizeof(KeyStatus));
    launch.call.out.data = out.get();
    launch.status = static_cast<KeyStatus*>(status.get());
    const auto workspace = workspace_for(launch);
    enqueue_in(*workspace, launch);
    check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    const KeyStatus reported = read(status);
    work.first_bad_key = reported.first_bad_key;
    work.overflowed = reported.overflowed != 0;
    if (work.first_bad_key == no_bad_key && !work.overflowed && out_bytes > 0)
      check(cudaMemcpy(call.out.data, out.get(), out_bytes, cudaMemcpyDeviceToHost),
            with_size("cudaMemcpy", out_bytes));
  }

  static constexpr std::size_t small = 64;  ///< most bytes that are fetched by way of pinned memory
};

}  // namespace
}  // namespace samesum::gpu

template <> const samesum::Backend& samesum::backend<"cuda">() {
  static const gpu::Cuda only;
  return only;
}
