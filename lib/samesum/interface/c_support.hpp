/// What the files of the C interface share: exceptions become codes, and plain structures those of C++.
#pragma once

#include <cstddef>
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
Results results_of(const samesum_results& results, const char* name = "out");
/// The options at an address, or the default ones if it is null.
/// @param elements the number of flags of `where`.
Options options_of(const samesum_options* options, std::size_t elements);
/// @param n the number of elements of SAMESUM_ALL.
Layout layout_of(const samesum_layout& layout, std::size_t n);
Call call_of(const samesum_call* call);

/// Copies a structure that begins with its size in the header of the caller to `to`, which has `bytes` bytes
/// of zeros. The first version of the structure had `least` bytes.
void read_sized(const void* from, void* to, std::size_t bytes, std::size_t least, const char* name,
                const char* type);
/// Returns a structure of the caller, whose header may be older or newer than this library: fields that it
/// lacks are 0.
/// @param name of the argument; `type`, that of the structure.
/// @param least what sizeof(Struct) was before the first field was appended.
/// @throws std::invalid_argument if struct_size is that of no header, or if a field that this library lacks
///   is not 0.
template <class Struct>
Struct sized(const Struct* pointer, const char* name, const char* type, std::size_t least = sizeof(Struct)) {
  static_assert(offsetof(Struct, struct_size) == 0);
  Struct read{};
  read_sized(&given(pointer, name), &read, sizeof read, least, name, type);
  if constexpr (requires { read.reserved_32; })
    if (read.reserved_32 != 0)
      refuse(std::string{name} + ".reserved_32 is not 0; set it to 0, as " + type + "_default() does");
  return read;
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
