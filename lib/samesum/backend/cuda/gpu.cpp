#include "samesum/gpu.hpp"

#include <cstring>
#include <memory>

#include "samesum/backend/cuda/call.hpp"
#include "samesum/backend/cuda/check.hpp"
#include "samesum/backend/join.hpp"
#include "samesum/environment.hpp"
#include "samesum/operation/validation.hpp"
#include "samesum/support.hpp"

namespace samesum::gpu {
namespace {

/// Memory of the host that a copy can go to without waiting.
Memory pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return {memory, [](void* p) { static_cast<void>(cudaFreeHost(p)); }};
}

/// One that waits for the default stream, where the data may come from.
std::shared_ptr<CUstream_st> new_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  return {stream, [](cudaStream_t s) { static_cast<void>(cudaStreamDestroy(s)); }};
}

bool is_aligned(const void* p, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; }

constexpr int log2_limit = 39;  // of n: the header has tickets for that many

/// A message that names the argument and the remedy; empty if all are valid.
std::string validation_error(Values x) {
  if (std::string wrong = samesum::validation_error("x", x); !wrong.empty()) return wrong;
  if (x.size >> log2_limit != 0)
    return "x has " + std::to_string(x.size) + " elements; fewer than 2^39 can be reduced";
  return {};
}
std::string validation_error(const Method& m, const Values& x, const Values* y, const Layout& layout,
                             const Results& out, const Options& options) {
  if (m.backend != "cuda") return "it does not run on a GPU; take the method of that name @cuda";
  if (std::string wrong = validation_error(x); !wrong.empty()) return wrong;
  if (std::string wrong = samesum::validation_error(m, options); !wrong.empty()) return wrong;
  return samesum::validation_error(m, x, y, layout, out, false);
}

bool is_state(const ExactState* state) { return state != nullptr && is_aligned(state, alignof(ExactState)); }

constexpr std::size_t workspace_alignment = 16;

Launch launch_of(const Values& x, const Values* y, const Layout& layout, const Results& out,
                 cudaStream_t stream, const Options& options) {
  return {call_of(x, y, layout, out, options), nullptr, 0, stream};
}

cudaError_t enqueue_call(const Method& method, Launch& launch) {
  Code::of(method).backend->enqueue(method, launch);
  return launch.error;
}

cudaError_t in_phases(const Method& method, void* workspace, std::size_t& bytes, Values x, Values* y,
                      const Layout& layout, Results out, cudaStream_t stream, const Options& options) noexcept
    try {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr) {  // only the size is asked for: any other pointers will do that are apart
    x.data = reinterpret_cast<const void*>(std::uintptr_t{16});
    if (y) y->data = x.data;
    out.data = reinterpret_cast<void*>(std::uintptr_t{1} << 62);
  }
  if (!validation_error(method, x, y, layout, out, options).empty() ||
      !is_aligned(workspace, workspace_alignment))
    return cudaErrorInvalidValue;
  Launch launch = launch_of(x, y, layout, out, stream, options);
  launch.workspace = workspace;
  launch.bytes = bytes;
  const cudaError_t error = enqueue_call(method, launch);
  bytes = launch.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // of a message
}

void with_pool(const Method& method, const Values& x, const Values* y, const Layout& layout,
               const Results& out, cudaStream_t stream, cudaMemPool_t pool, const Options& options) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = validation_error(method, x, y, layout, out, options); !wrong.empty())
    throw std::invalid_argument("samesum: " + method.name + ": " + wrong);
  Launch launch = launch_of(x, y, layout, out, stream, options);
  with_pool(method.name, launch, pool, [&](Launch& l) {
    if (l.workspace && l.uses_header)
      if (const cudaError_t error = prepare_workspace(l.workspace, l.stream)) return error;
    return enqueue_call(method, l);
  });
}

}  // namespace

const std::string& absence() {
  static const std::string reason = [] {
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaSuccess && devices == 0) error = cudaErrorNoDevice;
    if (error == cudaSuccess) return std::string{};
    static_cast<void>(cudaGetLastError());
    return std::string{"no GPU can be used: "} + cudaGetErrorString(error);
  }();
  return reason;
}

cudaError_t prepare(void* workspace, std::size_t bytes, cudaStream_t stream) noexcept {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr || !is_aligned(workspace, workspace_alignment)) return cudaErrorInvalidValue;
  return bytes < header_bytes ? cudaSuccess : prepare_workspace(workspace, stream);
}

cudaError_t reduce(const Method& method, void* workspace, std::size_t& bytes, Values x, Layout layout,
                   Results out, cudaStream_t stream, Options options) noexcept {
  return in_phases(method, workspace, bytes, x, nullptr, layout, out, stream, options);
}
cudaError_t reduce(const Method& method, void* workspace, std::size_t& bytes, Values x, Values y,
                   Layout layout, Results out, cudaStream_t stream, Options options) noexcept {
  return in_phases(method, workspace, bytes, x, &y, layout, out, stream, options);
}
void reduce(const Method& method, Values x, Layout layout, Results out, cudaStream_t stream,
            cudaMemPool_t pool, Options options) {
  with_pool(method, x, nullptr, layout, out, stream, pool, options);
}
void reduce(const Method& method, Values x, Values y, Layout layout, Results out, cudaStream_t stream,
            cudaMemPool_t pool, Options options) {
  with_pool(method, x, &y, layout, out, stream, pool, options);
}

cudaError_t accumulate(void* workspace, std::size_t& bytes, Values x, ExactState* state,
                       cudaStream_t stream) noexcept try {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr) x.data = &bytes;
  if (!validation_error(x).empty() || !is_aligned(workspace, workspace_alignment) ||
      (workspace != nullptr && !is_state(state)))
    return cudaErrorInvalidValue;
  Launch launch = launch_of(x, nullptr, Layout::vector(x.size), {nullptr, nullptr, 0}, stream, {});
  launch.workspace = workspace;
  launch.bytes = bytes;
  const cudaError_t error = sum_exact(launch, {nullptr, 0, state});
  bytes = launch.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // of a message
}

cudaError_t merge(ExactState* state, const ExactState* other, cudaStream_t stream) noexcept {
  const FloatingPointEnvironment environment;
  if (!is_state(state) || !is_state(other)) return cudaErrorInvalidValue;
  return write_exact(other, {nullptr, 0, state}, stream);
}

cudaError_t round(const ExactState* state, const FormatInfo& format, void* out,
                  cudaStream_t stream) noexcept {
  const FloatingPointEnvironment environment;
  if (!is_state(state) || !is_listed(&format) || out == nullptr || !is_aligned(out, format.bytes))
    return cudaErrorInvalidValue;
  return write_exact(state, {out, format.index, nullptr}, stream);
}

const Method& find(std::string_view name, NameDefaults defaults) {
  const Method& found = samesum::find(name, defaults);
  if (found.backend != "cuda")
    throw std::invalid_argument("samesum: '" + found.name + "' does not run on a GPU");
  return found;
}

Exact download(const ExactState* state, cudaStream_t stream) {
  const FloatingPointEnvironment environment;
  if (state == nullptr) throw std::invalid_argument("samesum: state is null");
  ExactState copy;
  check(cudaMemcpyAsync(&copy, state, sizeof copy, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return Exact{copy.digits, copy.flags};
}

namespace {

/// The device on which x lies; of host memory, -1.
int device_of(const void* x) {
  cudaPointerAttributes where{};
  check(cudaPointerGetAttributes(&where, x), "cudaPointerGetAttributes");
  return where.type == cudaMemoryTypeDevice || where.type == cudaMemoryTypeManaged ? where.device : -1;
}

/// That device is the current one, until the end of the scope.
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

/// How results lie in the memory of the host; on the device rows lie one after the other.
struct Landing {
  std::size_t width, pitch, rows;  ///< in bytes
};

Landing landing_of(const Method& m, const Call& call) {
  const Layout& l = call.layout;
  if (!m.per_element) return {l.results() * m.result_bytes(), 0, 1};
  const std::size_t bytes = call.input->bytes;
  if (l.outer <= 1 || l.n == 0 || call.out_stride == l.n) return {l.outer * l.n * bytes, 0, 1};
  return {l.n * bytes, call.out_stride * bytes, l.outer};
}

/// By way of `pinned`, where that is not null: no copy to it waits.
void fetch(const Landing& landing, void* out, const void* from, void* pinned, cudaStream_t stream) {
  if (landing.rows > 1)
    check(cudaMemcpy2DAsync(out, landing.pitch, from, landing.width, landing.width, landing.rows,
                            cudaMemcpyDeviceToHost, stream),
          "cudaMemcpy2DAsync");
  else
    check(cudaMemcpyAsync(pinned ? pinned : out, from, landing.width * landing.rows, cudaMemcpyDeviceToHost,
                          stream),
          "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  if (pinned) std::memcpy(out, pinned, landing.width);
}

class Cuda : public Backend {
  std::string_view name() const override { return "cuda"; }
  std::string absence() const override { return gpu::absence(); }

  std::vector<Entry> entries() const override {
    const auto sums_of = []<std::size_t shard>() { return sums<shard>(); };
    const auto reductions_of = []<std::size_t shard>() { return reductions<shard>(); };
    return joined(sums_of, joined(reductions_of, softmax_methods()));
  }

  Placed place(Values x) const override {
    if (x.size == 0) return {{*x.format, nullptr, 0}, nullptr};
    if (device_of(x.data) >= 0) return {x, nullptr};
    const std::size_t bytes = x.size * x.format->bytes;
    const Memory copy = device_memory(bytes);
    check(cudaMemcpy(copy.get(), x.data, bytes, cudaMemcpyHostToDevice), of_bytes("cudaMemcpy", bytes));
    // A copy from pageable memory may return before the data have arrived, and a caller may have any stream.
    check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
    return {{*x.format, copy.get(), x.size}, copy};
  }

  void run(const Method& method, Call& call) const override { bind(method, call)(call.out); }

  /// On the device where x lies, with a stream and a workspace of its own.
  Bound bind(const Method& method, Call call) const override {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    if (const int of_x = call.size > 0 ? device_of(call.x) : -1; of_x >= 0) device = of_x;
    const OnDevice scope{device};
    const auto stream = new_stream();
    const Landing landing = landing_of(method, call);
    const Placed x = place({*call.input, call.x, call.size}),
                 y = place({*call.input, call.y, call.y ? call.size : 0});
    Memory offsets;
    if (call.layout.offsets) {
      const std::size_t bytes = (call.layout.outer + 1) * sizeof(std::uint64_t);
      offsets = device_memory(bytes);
      check(cudaMemcpy(offsets.get(), call.layout.offsets, bytes, cudaMemcpyHostToDevice),
            of_bytes("cudaMemcpy", bytes));
      call.layout.offsets = static_cast<const std::uint64_t*>(offsets.get());
    }
    const std::size_t out_bytes = landing.width * landing.rows;
    const Memory out = device_memory(out_bytes),
                 pinned = landing.rows == 1 && out_bytes <= small ? pinned_memory(small) : nullptr;
    Launch launch{call, nullptr, 0, stream.get()};
    launch.x = x.values.data;
    launch.y = method.inputs == 2 && !y.values.data ? out.get() : y.values.data;  // an empty one is one still
    launch.out = out.get();
    launch.out_stride = call.layout.n;
    check(enqueue_call(method, launch), method.name);
    const Memory workspace = device_memory(launch.bytes);
    launch.workspace = workspace.get();
    check(prepare(launch.workspace, launch.bytes, launch.stream), "prepare");
    return
        [&method, launch, landing, device, stream, x, y, offsets, out, pinned, workspace](void* to) mutable {
          const OnDevice scope{device};
          check(enqueue_call(method, launch), method.name);
          fetch(landing, to, out.get(), pinned.get(), stream.get());
        };
  }

  static constexpr std::size_t small = 64;  ///< bytes that are fetched by way of pinned memory
};

}  // namespace
}  // namespace samesum::gpu

template <> const samesum::Backend& samesum::backend<"cuda">() {
  static const gpu::Cuda only;
  return only;
}
