/// Partials of the C interface.
#include "samesum/interface/c_support.hpp"

struct samesum_partial {
  samesum::Partial partial;
};

namespace samesum::c {
namespace {

Partial& of(samesum_partial* partial, const char* name = "partial") { return given(partial, name).partial; }
const Partial& of(const samesum_partial* partial, const char* name = "partial") {
  return given(partial, name).partial;
}

}  // namespace

SAMESUM_API samesum_status samesum_partial_create(const samesum_method* method, uint64_t begin,
                                                  int32_t has_grid, int32_t grid, samesum_partial** partial,
                                                  char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    auto& out = given(partial, "partial");
    const std::optional<int> given = flag_of(has_grid, "has_grid") ? std::optional<int>{grid} : std::nullopt;
    out = new samesum_partial{Partial{method_of(method), begin, given}};
  });
}

SAMESUM_API samesum_status samesum_partial_copy(const samesum_partial* partial, samesum_partial** copy,
                                                char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    auto& out = given(copy, "copy");
    out = new samesum_partial{of(partial)};
  });
}

SAMESUM_API void samesum_partial_destroy(samesum_partial* partial) { delete partial; }

SAMESUM_API const samesum_method* samesum_partial_method(const samesum_partial* partial) {
  return partial ? to_c(partial->partial.method()) : nullptr;
}
SAMESUM_API uint64_t samesum_partial_begin(const samesum_partial* partial) {
  return partial ? partial->partial.begin() : 0;
}
SAMESUM_API uint64_t samesum_partial_end(const samesum_partial* partial) {
  return partial ? partial->partial.end() : 0;
}

SAMESUM_API samesum_status samesum_partial_add(samesum_partial* partial, const samesum_values* x,
                                               const samesum_values* y, const samesum_options* options,
                                               char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const samesum_values& elements = given(x, "x");
    of(partial).add(values_of(elements, "x"), values_of(y, "y"), options_of(options, elements.size));
  });
}

SAMESUM_API samesum_status samesum_partial_merge(samesum_partial* partial, const samesum_partial* next,
                                                 char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] { of(partial).merge(of(next, "next")); });
}

SAMESUM_API samesum_status samesum_partial_finish(const samesum_partial* partial, const samesum_results* out,
                                                  const samesum_options* options, char* message,
                                                  size_t message_bytes) {
  return guarded(message, message_bytes,
                 [&] { of(partial).finish(results_of(given(out, "out")), options_of(options, 0)); });
}

SAMESUM_API samesum_status samesum_partial_serialise(const samesum_partial* partial, void* bytes,
                                                     size_t capacity, size_t* size, char* message,
                                                     size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    std::size_t& needed = given(size, "size");
    const std::vector<std::byte> all = of(partial).serialise();
    needed = all.size();
    if (bytes != nullptr) copy_bytes(all, bytes, capacity);
  });
}

SAMESUM_API samesum_status samesum_partial_deserialise(const void* bytes, size_t size, const char* backend,
                                                       samesum_partial** partial, char* message,
                                                       size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    auto& out = given(partial, "partial");
    const auto* first = &given(static_cast<const std::byte*>(bytes), "bytes");
    out = new samesum_partial{Partial::deserialise(std::span{first, size}, backend ? backend : "cpu")};
  });
}

}  // namespace samesum::c
