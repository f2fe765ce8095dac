#include "samesum/gpu.hpp"

#include <memory>

#include "samesum/backend/cuda/call.hpp"
#include "samesum/backend/cuda/check.hpp"
#include "samesum/backend/cuda/upload.hpp"
#include "samesum/environment.hpp"
#include "samesum/operation/validation.hpp"

namespace samesum::gpu {
namespace {

/// One number of the host that a copy can go to without waiting.
Memory pinned_number() {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, sizeof(std::uint64_t)), "cudaMallocHost");
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
    return "x has " + std::to_string(x.size) + " elements; fewer than 2^39 can be summed";
  return {};
}
std::string validation_error(const Variant& variant, Values x, const void* out) {
  if (std::string wrong = validation_error(x); !wrong.empty()) return wrong;
  if (!variant.launch[x.format->index])
    return variant.name + " is not a variant of the backend cuda; take " +
           variant.name.substr(0, variant.name.find('@')) + "@cuda";
  if (out == nullptr) return "out is null";
  if (!is_aligned(out, variant.format->bytes))
    return "out is not aligned to a number of " + std::to_string(variant.format->bytes) + " bytes";
  return {};
}

bool is_state(const ExactState* state) { return state != nullptr && is_aligned(state, alignof(ExactState)); }

cudaError_t run(const Variant& variant, Call& call, const FormatInfo& input) {
  return static_cast<cudaError_t>(variant.launch[input.index](call));
}

constexpr std::size_t workspace_alignment = 16;

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

cudaError_t sum(const Variant& variant, void* workspace, std::size_t& bytes, Values x, void* out,
                cudaStream_t stream) noexcept try {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr) {  // only the size is asked for: any other pointers will do
    x.data = &bytes;
    out = &bytes;
  }
  if (!validation_error(variant, x, out).empty() || !is_aligned(workspace, workspace_alignment))
    return cudaErrorInvalidValue;
  Call call{x.data, x.size, out, workspace, bytes, stream};
  const cudaError_t error = run(variant, call, *x.format);
  bytes = call.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // of a message
}

cudaError_t accumulate(void* workspace, std::size_t& bytes, Values x, ExactState* state,
                       cudaStream_t stream) noexcept try {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr) x.data = &bytes;
  if (!validation_error(x).empty() || !is_aligned(workspace, workspace_alignment) ||
      (workspace != nullptr && !is_state(state)))
    return cudaErrorInvalidValue;
  Call call{x.data, x.size, nullptr, workspace, bytes, stream};
  const cudaError_t error = sum_exact(*x.format, call, {nullptr, 0, state});
  bytes = call.bytes;
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

const Variant& find(std::string_view name) {
  const std::string_view recipe = name.substr(0, name.find('@'));
  if (recipe != name && !name.ends_with("@cuda"))
    throw std::invalid_argument("samesum: '" + std::string{name.substr(0, 80)} + "' does not run on a GPU");
  return samesum::find(std::string{recipe} + "@cuda");
}

void sum(const Variant& variant, Values x, void* out, cudaStream_t stream, cudaMemPool_t pool) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = validation_error(variant, x, out); !wrong.empty())
    throw std::invalid_argument("samesum: " + wrong);
  std::size_t bytes = 0;
  check(sum(variant, nullptr, bytes, x, out, stream), variant.name);
  alignas(workspace_alignment) static std::byte not_used[no_bytes];
  if (bytes == no_bytes) return check(sum(variant, not_used, bytes, x, out, stream), variant.name);
  void* workspace = nullptr;
  check(pool ? cudaMallocFromPoolAsync(&workspace, bytes, pool, stream)
             : cudaMallocAsync(&workspace, bytes, stream),
        of_bytes("cudaMallocAsync", bytes));
  cudaError_t error = prepare(workspace, bytes, stream);
  if (error == cudaSuccess) error = sum(variant, workspace, bytes, x, out, stream);
  const cudaError_t freed = cudaFreeAsync(workspace, stream);
  check(error, variant.name);
  check(freed, "cudaFreeAsync");
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

}  // namespace

Placed place(Values x) {
  if (x.size == 0) return {{*x.format, nullptr, 0}, nullptr};
  if (device_of(x.data) >= 0) return {x, nullptr};
  const std::size_t bytes = x.size * x.format->bytes;
  const Memory copy = device_memory(bytes);
  check(cudaMemcpy(copy.get(), x.data, bytes, cudaMemcpyHostToDevice), of_bytes("cudaMemcpy", bytes));
  // A copy from pageable memory may return before the data have arrived, and a caller may have any stream.
  check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
  return {{*x.format, copy.get(), x.size}, copy};
}

Job start(const Variant& variant, Placed x) {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  if (x.values.size > 0) device = device_of(x.values.data);
  const OnDevice scope{device};
  const auto stream = new_stream();
  const Memory out = device_memory(sizeof(std::uint64_t)), result = pinned_number();
  std::size_t bytes = 0;
  check(sum(variant, nullptr, bytes, x.values, out.get(), stream.get()), variant.name);
  const Memory workspace = device_memory(bytes);
  check(prepare(workspace.get(), bytes, stream.get()), "prepare");
  return [&variant, x, device, stream, out, result, workspace, bytes] {
    const FloatingPointEnvironment environment;
    const OnDevice scope{device};
    std::size_t size = bytes;
    check(sum(variant, workspace.get(), size, x.values, out.get(), stream.get()), variant.name);
    check(
        cudaMemcpyAsync(result.get(), out.get(), variant.format->bytes, cudaMemcpyDeviceToHost, stream.get()),
        "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize after " + variant.name);
    return with_format(*variant.format,
                       [&]<class F>() { return Number::of(*static_cast<const F*>(result.get())); });
  };
}

}  // namespace samesum::gpu
