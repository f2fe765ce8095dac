/// Calls on a GPU of the C interface, for a library that is built without CUDA: they say so.
#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/interface/c_support.hpp"

namespace samesum::c {
namespace {

samesum_status unavailable(char* message, size_t message_bytes) {
  return guarded(message, message_bytes,
                 [] { throw Unavailable("samesum: " + backend<"cuda">().absence()); });
}

}  // namespace

bool is_gpu_error(const std::exception&) { return false; }

SAMESUM_API samesum_status samesum_workspace_size(const samesum_call*, size_t*, char* message,
                                                  size_t message_bytes) {
  return unavailable(message, message_bytes);
}
SAMESUM_API samesum_status samesum_prepare(void*, size_t, void*, char* message, size_t message_bytes) {
  return unavailable(message, message_bytes);
}
SAMESUM_API samesum_status samesum_enqueue(const samesum_call*, void*, size_t, void*, samesum_device_status*,
                                           char* message, size_t message_bytes) {
  return unavailable(message, message_bytes);
}

}  // namespace samesum::c
