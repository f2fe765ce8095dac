/// A call from an extension module that is compiled apart from the library, such as _jax. Such modules share
/// the one copy of the library in _core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "samesum/call/call.hpp"

namespace samesum::python {

/// Where a call runs: in host memory, or in a stream of a GPU.
struct Place {
  int device = -1;  ///< -1: host memory
  std::uintptr_t stream = 0;
};

/// Runs a call in host memory, or enqueues it in a stream. `method` is the name of its method; without a
/// backend, it is that of the place. Sets `error` to a message if that is impossible. The caller need not
/// hold the GIL.
using RunForeignCall = void (*)(std::string_view method, const Call& call, Place place,
                                std::string& error) noexcept;

/// Name of the capsule in _core that holds a RunForeignCall.
inline constexpr const char* foreign_capsule = "samesum._core.run_foreign_call";

}  // namespace samesum::python
