/// A call from an extension module that is compiled apart from the library, such as _jax. Such modules share
/// the one copy of the library in _core, and pass only plain types.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace samesum::python {

/// Reduces `rows` contiguous rows of n elements by a method. Results lie without gaps.
struct ForeignCall {
  std::string_view method;  ///< name; without a backend, that of the device
  std::string_view format;  ///< of the elements
  const void* x;
  const void* y;  ///< nullptr for one input
  std::size_t rows, n;
  std::string_view out_format;  ///< empty for std::int64_t
  void* out;
  std::size_t out_size;
  int threads;
  double ddof;
  int device;  ///< -1: host memory
  void* stream;
};

/// Runs a call in host memory, or enqueues it in a stream. Sets `error` to a message if that is impossible.
/// The caller need not hold the GIL.
using RunForeignCall = void (*)(const ForeignCall& call, std::string& error) noexcept;

/// Name of the capsule in _core that holds a RunForeignCall.
inline constexpr const char* foreign_capsule = "samesum._core.run_foreign_call";

}  // namespace samesum::python
