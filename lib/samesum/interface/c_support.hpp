/// What the files of the C interface share: exceptions become codes, and plain structures those of C++.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "samesum/base/environment.hpp"
#include "samesum/samesum.h"
#include "samesum/samesum.hpp"

namespace samesum::c {

/// Thrown if this process has no such backend.
class Unavailable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Whether an exception is that of a failed CUDA call. Defined once with CUDA and once without.
bool is_gpu_error(const std::exception& error);

/// Writes a text to the caller's buffer: cut to its size between two characters, with a NUL at its end.
void write_message(std::string_view text, char* message, std::size_t bytes) noexcept;

/// Returns the status of the exception that is being handled, and writes its message. Allocates nothing.
samesum_status status_of_exception(char* message, std::size_t bytes) noexcept;

/// Runs work() in the standard floating-point environment, and maps its exceptions to codes.
template <class Work> samesum_status guarded(char* message, std::size_t bytes, const Work& work) noexcept {
  try {
    const FloatingPointEnvironment environment;
    work();
  } catch (...) {
    return status_of_exception(message, bytes);
  }
  write_message({}, message, bytes);
  return SAMESUM_OK;
}

/// Throws std::invalid_argument.
[[noreturn]] void refuse(const std::string& why);

/// Returns what a pointer to an argument refers to.
/// @throws std::invalid_argument if it is null.
template <class T> T& given(T* pointer, const char* name) {
  if (pointer == nullptr) refuse(std::string{name} + " is NULL; pass its address");
  return *pointer;
}

// The values of the C interface as those of C++. They throw std::invalid_argument for values that are not in
// the list; `name` is that of the argument, and `field` that of its field.

const FormatInfo& format_of(samesum_format format, const char* name, const char* field = "");
/// nullptr for SAMESUM_INT64.
const FormatInfo* result_format_of(samesum_format format, const char* name);
samesum_format to_c(const FormatInfo* format);
bool flag_of(std::int32_t flag, const char* name);
Values values_of(const samesum_values& values, const char* name);
Values values_of(const samesum_values* values, const char* name);
Results results_of(const samesum_results& results);
/// @param elements the number of flags of `where`.
Options options_of(const samesum_options& options, std::size_t elements);
/// The options at an address, or those of zeros if it is null.
Options options_of(const samesum_options* options, std::size_t elements);
/// @param n the number of elements of SAMESUM_ALL.
Layout layout_of(const samesum_layout& layout, std::size_t n);
Call call_of(const samesum_call* call);
/// Checks that fields of later versions are 0.
template <class Struct> void check_reserved(const Struct& fields, const char* name) {
  std::uint64_t any = 0;
  for (const std::uint64_t field : fields.reserved) any |= field;
  if constexpr (requires { fields.reserved_32; }) any |= static_cast<std::uint32_t>(fields.reserved_32);
  if (any != 0)
    refuse(std::string{name} + ".reserved is not 0; set it to 0, or load the library of the caller's header");
}

/// The method of a handle; nullptr if it is none of this process.
const Method* find_method(const samesum_method* method);
/// The method of a handle.
/// @throws std::invalid_argument if it is none of this process.
const Method& method_of(const samesum_method* method);
inline const samesum_method* to_c(const Method& method) {
  return reinterpret_cast<const samesum_method*>(&method);
}

/// Copies bytes to the caller's memory.
/// @throws std::invalid_argument if it is too small.
void copy_bytes(std::span<const std::byte> from, void* to, std::size_t capacity);

/// Writes a number to memory of any alignment.
inline void write_number(Number number, void* out) {
  std::memcpy(out, &number.bits, number.format->bytes);  // little-endian: the lowest bytes come first
}

}  // namespace samesum::c
