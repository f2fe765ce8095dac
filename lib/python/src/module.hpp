/// What the files of the extension module share.
///
/// Arrays arrive as addresses: the Python side knows the array libraries, and keeps their objects alive
/// during a call.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "samesum/samesum.hpp"

namespace samesum::python {

namespace nb = nanobind;

/// Returns the format with that name. Throws std::invalid_argument if there is none.
const FormatInfo& format_named(std::string_view name);

inline Values values_at(const FormatInfo& format, std::uintptr_t address, std::size_t n) {
  return {format, reinterpret_cast<const void*>(address), n};
}

/// Where a call runs: in host memory, or in a stream of a GPU.
struct Place {
  int device = -1;  ///< -1: host memory
  std::uintptr_t stream = 0;
};

/// A call whose arguments are views of memory. `y` is null for one input, and `keys` without keys.
struct View {
  const Method& method;
  Values x;
  const Values* y;
  Layout layout;
  Results out;
  Options options;
  const Keys* keys = nullptr;
};

/// Elements between two looks at signals, unless results are longer: some milliseconds.
inline constexpr std::size_t chunk = std::size_t{1} << 24;

/// Throws a pending KeyboardInterrupt, or whatever a signal handler raised.
inline void check_signals() {
  const nb::gil_scoped_acquire held;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// Runs a call in host memory. The caller must not hold the GIL. Between chunks of long calls, signal
/// handlers run.
void reduce_on_host(const View& call);

/// Enqueues a call in a stream. The memory of a GPU's results is complete when the stream gets there. A call
/// with keys waits for the stream, and throws std::invalid_argument if a key is out of range.
void reduce_on_gpu(const View& call, Place place);
/// Takes in elements in the memory of a GPU, and waits for the stream.
void add_on_gpu(Partial& partial, Values x, const Values* y, Place place);
/// Returns the exact state of elements in the memory of a GPU, and waits for the stream.
Exact accumulate_on_gpu(Values x, Place place);

void bind_study(nb::module_& m);
void bind_states(nb::module_& m);
void bind_fast(nb::module_& m);
void bind_gpu(nb::module_& m);
void bind_foreign(nb::module_& m);

}  // namespace samesum::python
