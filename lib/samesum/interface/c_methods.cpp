/// Versions, formats and methods of the C interface.
#include <algorithm>
#include <array>

#include "samesum/interface/c_support.hpp"

#define SAMESUM_TEXT_OF(number) #number
#define SAMESUM_TEXT(number) SAMESUM_TEXT_OF(number)

namespace samesum::c {
namespace {

/// Returns get(method); `otherwise` if the handle is no method of this process.
template <class T, class Get> T fact(const samesum_method* handle, T otherwise, const Get& get) noexcept {
  try {
    const Method* const method = find_method(handle);
    return method ? static_cast<T>(get(*method)) : otherwise;
  } catch (...) {
    return otherwise;  // host memory is exhausted in the first call, which makes the list of methods
  }
}

/// Throws Unavailable if the name ends with a backend that this process lacks.
void check_available(std::string_view name) {
  const std::size_t at = name.rfind('@');
  if (at == name.npos) return;
  for (const Absent& a : absent())
    if (name.substr(at + 1) == a.backend)
      throw Unavailable("samesum: there is no backend " + a.backend + ": " + a.reason);
}

}  // namespace

SAMESUM_API int samesum_abi_version(void) { return SAMESUM_ABI_VERSION; }

SAMESUM_API const char* samesum_version(void) {
  return SAMESUM_TEXT(SAMESUM_VERSION_MAJOR) "." SAMESUM_TEXT(SAMESUM_VERSION_MINOR) "." SAMESUM_TEXT(
      SAMESUM_VERSION_PATCH);
}

SAMESUM_API size_t samesum_sizeof(const char* structure) {
#define SAMESUM_SIZE(name) \
  std::pair<std::string_view, std::size_t> { #name, sizeof(name) }
  constexpr std::array sizes{SAMESUM_SIZE(samesum_values),          SAMESUM_SIZE(samesum_keys),
                             SAMESUM_SIZE(samesum_layout),          SAMESUM_SIZE(samesum_results),
                             SAMESUM_SIZE(samesum_options),         SAMESUM_SIZE(samesum_call),
                             SAMESUM_SIZE(samesum_bound_query),     SAMESUM_SIZE(samesum_device_status),
                             SAMESUM_SIZE(samesum_state_kind),      SAMESUM_SIZE(samesum_state_options),
                             SAMESUM_SIZE(samesum_statistics_call), SAMESUM_SIZE(samesum_allocator)};
#undef SAMESUM_SIZE
  for (const auto& [name, size] : sizes)
    if (structure != nullptr && name == structure) return size;
  return 0;
}

SAMESUM_API const char* samesum_status_name(samesum_status status) {
  constexpr std::array names{"ok",        "invalid argument",  "out of memory",
                             "overflow",  "too many elements", "unavailable",
                             "GPU error", "internal error",    "MPI error"};
  const auto index = static_cast<std::size_t>(status);
  return index < names.size() ? names[index] : "unknown status";
}

SAMESUM_API const char* samesum_format_name(samesum_format format) {
  if (format == SAMESUM_INT64) return "int64";
  if (format < SAMESUM_FP16 || format > SAMESUM_FP64) return nullptr;
  return formats[static_cast<std::size_t>(format - SAMESUM_FP16)].name.data();  // a literal, so it has a NUL
}

SAMESUM_API size_t samesum_format_bytes(samesum_format format) {
  if (format == SAMESUM_INT64) return sizeof(std::int64_t);
  if (format < SAMESUM_FP16 || format > SAMESUM_FP64) return 0;
  return formats[static_cast<std::size_t>(format - SAMESUM_FP16)].bytes;
}

SAMESUM_API size_t samesum_method_count(void) {
  try {
    return methods().size();
  } catch (...) {
    return 0;
  }
}

SAMESUM_API const samesum_method* samesum_method_at(size_t i) {
  try {
    return i < methods().size() ? to_c(methods()[i]) : nullptr;
  } catch (...) {
    return nullptr;
  }
}

SAMESUM_API samesum_status samesum_find(const char* name, samesum_format input, const samesum_method** method,
                                        char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const std::string_view text{&given(name, "name")};
    auto& found = given(method, "method");
    const std::string_view format = input == SAMESUM_NONE ? "" : format_of(input, "input").name;
    try {
      found = to_c(find(text, {.format = format}));
    } catch (const std::invalid_argument&) {
      check_available(text);
      throw;
    }
  });
}

// --- facts about a method ----------------------------------------------------------------------------------

namespace {

const char* text_of(const samesum_method* method, std::string Method::*field) {
  return fact<const char*>(method, nullptr, [&](const Method& m) { return (m.*field).c_str(); });
}
int is_set(const samesum_method* method, bool Method::*field) {
  return fact<int>(method, 0, [&](const Method& m) { return m.*field; });
}

}  // namespace

SAMESUM_API const char* samesum_method_name(const samesum_method* method) {
  return text_of(method, &Method::name);
}
SAMESUM_API const char* samesum_method_operation(const samesum_method* method) {
  return text_of(method, &Method::operation);
}
SAMESUM_API const char* samesum_method_summary(const samesum_method* method) {
  return text_of(method, &Method::summary);
}
SAMESUM_API const char* samesum_method_order(const samesum_method* method) {
  return text_of(method, &Method::order);
}
SAMESUM_API const char* samesum_method_accumulator(const samesum_method* method) {
  return text_of(method, &Method::accumulator);
}
SAMESUM_API const char* samesum_method_backend(const samesum_method* method) {
  return text_of(method, &Method::backend);
}

SAMESUM_API samesum_promise samesum_method_promise(const samesum_method* method) {
  return fact<samesum_promise>(method, SAMESUM_PROMISE_NONE, [](const Method& m) { return m.promise; });
}
SAMESUM_API samesum_format samesum_method_format(const samesum_method* method) {
  return fact<samesum_format>(method, SAMESUM_NONE, [](const Method& m) { return to_c(m.format); });
}
SAMESUM_API samesum_format samesum_method_result_format(const samesum_method* method, samesum_format input) {
  return fact<samesum_format>(method, SAMESUM_NONE, [&](const Method& m) {
    return to_c(m.result_format(m.keeps_format ? format_of(input, "input") : *m.format));
  });
}

SAMESUM_API int samesum_method_inputs(const samesum_method* method) {
  return fact<int>(method, 0, [](const Method& m) { return m.inputs; });
}
SAMESUM_API int samesum_method_results(const samesum_method* method) {
  return fact<int>(method, 0, [](const Method& m) { return m.results; });
}
SAMESUM_API int samesum_method_returns_index(const samesum_method* method) {
  return is_set(method, &Method::returns_index);
}
SAMESUM_API int samesum_method_has_result_per_element(const samesum_method* method) {
  return is_set(method, &Method::has_result_per_element);
}
SAMESUM_API int samesum_method_is_scan(const samesum_method* method) {
  return fact<int>(method, 0, [](const Method& m) { return m.is_scan(); });
}
SAMESUM_API int samesum_method_takes_window(const samesum_method* method) {
  return is_set(method, &Method::takes_window);
}
SAMESUM_API int samesum_method_takes_keys(const samesum_method* method) {
  return is_set(method, &Method::takes_keys);
}
SAMESUM_API int samesum_method_takes_grid(const samesum_method* method) {
  return is_set(method, &Method::takes_grid);
}
SAMESUM_API int samesum_method_can_combine(const samesum_method* method) {
  return is_set(method, &Method::can_combine);
}

SAMESUM_API int samesum_method_accepts(const samesum_method* method, samesum_format input,
                                       const samesum_layout* layout) {
  return fact<int>(method, 0, [&](const Method& m) {
    const FormatInfo& format = format_of(input, "input");
    return layout ? m.accepts(format, layout_of(*layout, 0)) : m.accepts(format);
  });
}

}  // namespace samesum::c
