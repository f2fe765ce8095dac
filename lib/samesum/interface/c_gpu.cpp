/// Calls on a GPU of the C interface.
#include <cstddef>
#include <new>

#include "samesum/gpu.hpp"
#include "samesum/interface/c_support.hpp"

namespace samesum::c {
namespace {

static_assert(sizeof(samesum_device_status) == sizeof(gpu::KeyStatus) &&
              offsetof(samesum_device_status, overflowed) == offsetof(gpu::KeyStatus, overflowed));

/// Throws the exception of an error that a call in two phases returned.
void check(const char* name, const Call* call, cudaError_t error) {
  if (error == cudaSuccess) return;
  if (error == cudaErrorMemoryAllocation) throw std::bad_alloc{};
  if (error != cudaErrorInvalidValue) throw gpu::Error(name, error);
  std::string why =
      "a pointer is NULL or misaligned, the workspace has fewer bytes than samesum_workspace_size "
      "returns, or there are 2^39 or more elements";
  if (call) {
    if (call->method->backend != "cuda")
      why = "the method does not run on a GPU; use the one @cuda";
    else if (const std::string wrong = validation_error(*call, false); !wrong.empty())
      why = wrong;
    samesum::refuse(*call->method, why);
  }
  refuse(std::string{name} + ": " + why);
}

}  // namespace

bool is_gpu_error(const std::exception& error) { return dynamic_cast<const gpu::Error*>(&error) != nullptr; }

SAMESUM_API samesum_status samesum_workspace_size(const samesum_call* call, size_t* bytes, char* message,
                                                  size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const Call asked = call_of(call);
    std::size_t size = 0;
    check("samesum_workspace_size", &asked, gpu::workspace_size(asked, size));
    given(bytes, "bytes") = size;
  });
}

SAMESUM_API samesum_status samesum_prepare(void* workspace, size_t bytes, void* stream, char* message,
                                           size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    check("samesum_prepare", nullptr, gpu::prepare(workspace, bytes, static_cast<cudaStream_t>(stream)));
  });
}

SAMESUM_API samesum_status samesum_enqueue(const samesum_call* call, void* workspace, size_t bytes,
                                           void* stream, samesum_device_status* status, char* message,
                                           size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const Call asked = call_of(call);
    if (workspace == nullptr) refuse("workspace is NULL; pass memory that samesum_prepare has prepared");
    std::size_t size = bytes;
    check("samesum_enqueue", &asked,
          gpu::enqueue(asked, workspace, size, static_cast<cudaStream_t>(stream),
                       reinterpret_cast<gpu::KeyStatus*>(status)));
  });
}

}  // namespace samesum::c
