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

#include <functional>

#include "foreign.hpp"
#include "samesum/backend/cpu/integers/integers.hpp"
#include "samesum/samesum.hpp"

namespace samesum::python {

namespace nb = nanobind;

/// Returns the format with that name. Throws std::invalid_argument if there is none.
const FormatInfo& format_named(std::string_view name);

inline Values values_at(const FormatInfo& format, std::uintptr_t address, std::size_t n) {
  return {format, reinterpret_cast<const void*>(address), n};
}

/// Returns n elements from `first` on; no input if there is none.
inline Values part_of(const Values& x, std::size_t first, std::size_t n) {
  if (!x.is_given()) return x;
  return {*x.format, static_cast<const std::byte*>(x.data) + first * x.format->bytes, n};
}

/// Elements between two looks at signals, unless results are longer: some milliseconds.
inline constexpr std::size_t chunk = std::size_t{1} << 24;

/// Throws a pending KeyboardInterrupt, or whatever a signal handler raised.
inline void check_signals() {
  const nb::gil_scoped_acquire held;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// Runs a call at its place: in chunks on the host, vector by vector if the method has no other kernel on a
/// GPU. The caller must not hold the GIL.
void run_at(const Call& call, Place place);
/// Runs a call in host memory. The caller must not hold the GIL. Between chunks of long calls, signal
/// handlers run.
void reduce_on_host(const Call& call);

/// Enqueues a call in a stream. The memory of a GPU's results is complete when the stream gets there. A call
/// with keys waits for the stream, and throws std::invalid_argument if a key is out of range.
void reduce_on_gpu(const Call& call, Place place);
/// Takes in elements in the memory of a GPU, and waits for the stream.
void add_on_gpu(Partial& partial, Values x, Values y, Place place);
/// Returns the exact state of elements in the memory of a GPU, and waits for the stream.
Exact accumulate_on_gpu(Values x, Place place);

/// Calls enqueue(stream), which enqueues work for cells, with the device of the place current.
void cells_on_gpu(Place place, const std::function<void(std::uintptr_t)>& enqueue);

/// Returns the type of integers with that name. Throws std::invalid_argument if there is none.
cpu::IntegerType integer_type_named(std::string_view name);
/// Reduces integers by an operation with exact results: sum, min, max, argmin or argmax. Returns whether a
/// result is not valid: a sum beyond 64 bits, or an extremum of nothing.
bool reduce_integers(std::string_view operation, const cpu::IntegerArray& array, void* out);

void bind_methods(nb::module_& m);
void bind_study(nb::module_& m);
void bind_states(nb::module_& m);
void bind_statistics(nb::module_& m);
void bind_fast(nb::module_& m);
void bind_groups(nb::module_& m);
void bind_integers(nb::module_& m);
void bind_gpu(nb::module_& m);
void bind_foreign(nb::module_& m);
void bind_cells(nb::module_& m);

}  // namespace samesum::python
