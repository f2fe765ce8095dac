/// The CUDA backend: places data on the device, and binds calls to a stream and a workspace.
#include "samesum/backend/cuda/device/device_input.hpp"
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/device/placing.hpp"
#include "samesum/backend/cuda/selection/selection.hpp"
#include "samesum/backend/cuda/tree/merge_subtrees.hpp"
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
        joined(
            reductions_of,
            joined(scans_of, joined(joined(joined(softmax_entries<Launch, softmax>("cuda"), methods_by_key()),
                                           rolling_methods()),
                                    subtree_merges()))));
  }

  Placed place(Values x) const override { return placed(x); }

  void run(HostRun& work) const override {
    const Call& call = work.call;
    if (call.method->takes_keys) return run_by_key(work);
    bound(call, false)(call.out.data);
  }

  void run_selected(HostRun& work) const override { gpu::run_selected(work); }
  PackedInputs packed(const Values& x, const Values& y, const Options& options) const override {
    return gpu::packed(x, y, options);
  }

  Bound bind(const Call& call) const override { return bound(call, true); }

  std::unique_ptr<PartialInput> partial_input(const Call& call) const override {
    return std::make_unique<PlacedInput>(call, device_for(call));
  }

 private:
  /// Binds a call on the device that holds x, with its own stream and workspace. Pinned memory takes longer
  /// to allocate than it saves once, so only a call that `repeats` has it.
  Bound bound(const Call& call, bool repeats) const {
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
                 pinned = repeats && host.rows == 1 && out_bytes <= small ? pinned_memory(small) : nullptr;
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
    const Memory out = call.options.combine ? copied(call.out.data, out_bytes) : device_memory(out_bytes);
    launch.call.out.data = out.get();
    run_there(launch, work);
    if (work.first_bad_key != no_bad_key)
      work.bad_key = fetched_key(call.keys, work.first_bad_key);
    else if (out_bytes > 0)
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
