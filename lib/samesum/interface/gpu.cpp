/// Definitions of gpu.hpp: checks of arguments, and the calls of kernels.
#include "samesum/gpu.hpp"

#include "samesum/backend/cuda/device/device_input.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/call/validation.hpp"

namespace samesum::gpu {
namespace {

bool is_aligned(const void* p, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; }

constexpr int log2_limit = 39;  // of n: the header of a workspace has counters for that many

/// Returns a message that names the invalid argument and the remedy; empty if all are valid.
std::string validation_error(Values x) {
  if (std::string wrong = samesum::validation_error("x", x); !wrong.empty()) return wrong;
  if (x.size >> log2_limit != 0)
    return "x has " + std::to_string(x.size) + " elements; fewer than 2^39 are supported";
  return {};
}
std::string validation_error(const Call& call) {
  if (call.method->backend != "cuda")
    return "the method does not run on a GPU; use the method of the same name @cuda";
  if (call.x.is_given())
    if (std::string wrong = validation_error(call.x); !wrong.empty()) return wrong;
  return samesum::validation_error(call, false);
}

bool is_state(const ExactState* state) { return state != nullptr && is_aligned(state, alignof(ExactState)); }

constexpr std::size_t workspace_alignment = 16;

std::string validation_error(const Keys& keys, const DeviceSegments& out) {
  if (std::string wrong = samesum::validation_error(keys); !wrong.empty()) return wrong;
  if (keys.size >> log2_limit != 0)
    return "there are " + std::to_string(keys.size) + " keys; fewer than 2^39 are supported";
  const auto is_room = [](const void* p) { return p != nullptr && is_aligned(p, sizeof(std::uint64_t)); };
  if ((keys.size > 0 && !is_room(out.keys)) || !is_room(out.offsets) || !is_room(out.count))
    return "keys, offsets or count of the result is null or misaligned; pass memory aligned to 8 bytes";
  return {};
}

}  // namespace

cudaError_t prepare(void* workspace, std::size_t bytes, cudaStream_t stream) noexcept {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr || !is_aligned(workspace, workspace_alignment)) return cudaErrorInvalidValue;
  return bytes < header_bytes ? cudaSuccess : prepare_workspace(workspace, stream);
}

cudaError_t enqueue(const Call& asked, void* workspace, std::size_t& bytes, cudaStream_t stream,
                    KeyStatus* status) noexcept try {
  const FloatingPointEnvironment environment;
  Call call = asked;
  if (workspace == nullptr) {  // a query of the size: any pointers that are apart pass the checks
    for (Values* input : {&call.x, &call.y})
      if (input->is_given()) input->data = reinterpret_cast<const void*>(std::uintptr_t{16});
    if (call.keys.is_given()) call.keys.data = reinterpret_cast<const void*>(std::uintptr_t{16});
    call.out.data = reinterpret_cast<void*>(std::uintptr_t{1} << 62);
  }
  if (!validation_error(call).empty() || !is_aligned(workspace, workspace_alignment))
    return cudaErrorInvalidValue;
  Launch launch{
      .call = normalised(call), .workspace = workspace, .bytes = bytes, .stream = stream, .status = status};
  const cudaError_t error = enqueue(launch);
  bytes = launch.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // for a message
}

void run(const Call& call, cudaStream_t stream, cudaMemPool_t pool, KeyStatus* status) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = validation_error(call); !wrong.empty()) refuse(*call.method, wrong);
  Launch launch{.call = normalised(call), .stream = stream, .status = status};
  enqueue_with_pool(launch, pool);
}

cudaError_t segments_of(void* workspace, std::size_t& bytes, Keys keys, DeviceSegments out,
                        cudaStream_t stream) noexcept try {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr) {  // a query of the size: any pointers pass the checks
    alignas(16) static std::uint64_t none[1];
    keys.data = none;
    out = {reinterpret_cast<std::int64_t*>(none), none, none};
  }
  if (!validation_error(keys, out).empty() || !is_aligned(workspace, workspace_alignment))
    return cudaErrorInvalidValue;
  SegmentsLaunch launch{keys, out, stream, workspace, bytes};
  const cudaError_t error = find_segments(launch);
  bytes = launch.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // for a message
}
void segments_of(Keys keys, DeviceSegments out, cudaStream_t stream, cudaMemPool_t pool) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = validation_error(keys, out); !wrong.empty())
    throw std::invalid_argument("samesum: segments_of: " + wrong);
  SegmentsLaunch launch{keys, out, stream};
  with_pool("segments_of", launch, pool, find_segments);
}

void add(Partial& partial, Values x, Values y, cudaStream_t stream, cudaMemPool_t pool) {
  const FloatingPointEnvironment environment;
  const Method& m = partial.method();
  std::string wrong = validation_error(x);
  if (m.backend != "cuda") wrong = "the method does not run on a GPU; use the method of the same name @cuda";
  if (!wrong.empty()) throw std::invalid_argument("samesum: Partial of " + m.name + ": " + wrong);
  check_portion(partial, x, y);
  DeviceInput input{call_for_state(m, x, y, {.grid = partial.grid()}), stream, pool};
  add_to(partial, input, x.size);
}

cudaError_t accumulate(void* workspace, std::size_t& bytes, Values x, ExactState* state,
                       cudaStream_t stream) noexcept try {
  const FloatingPointEnvironment environment;
  if (workspace == nullptr) x.data = &bytes;
  if (!validation_error(x).empty() || !is_aligned(workspace, workspace_alignment) ||
      (workspace != nullptr && !is_state(state)))
    return cudaErrorInvalidValue;
  Launch launch{
      .call = {.method = nullptr, .x = x, .layout = Layout::vector(x.size), .out = {nullptr, nullptr, 0}},
      .workspace = workspace,
      .bytes = bytes,
      .stream = stream};
  const cudaError_t error = sum_exact(launch, {nullptr, 0, state});
  bytes = launch.bytes;
  return error;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;  // for a message
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
    throw std::invalid_argument("samesum: '" + found.name + "' does not run on a GPU; use a method @cuda");
  return found;
}

Exact download(const ExactState* state, cudaStream_t stream) {
  const FloatingPointEnvironment environment;
  if (state == nullptr)
    throw std::invalid_argument("samesum: download: state is null; pass a state in device memory");
  ExactState copy;
  check(cudaMemcpyAsync(&copy, state, sizeof copy, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return Exact{copy.digits, copy.flags};
}

}  // namespace samesum::gpu
