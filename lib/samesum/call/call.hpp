/// A call as a value: all that a reduction needs to know. Backends add what they need to run it.
#pragma once

#include "samesum/call/keys.hpp"
#include "samesum/call/method.hpp"
#include "samesum/call/results.hpp"

namespace samesum {

/// A reduction to run: what, of which data, in which layout, to where.
struct Call {
  const Method* method;
  Values x;
  Values y = {};   ///< given if the method takes two inputs
  Keys keys = {};  ///< given if the method takes keys
  Layout layout;
  Results out;
  Options options = {};
  std::size_t most_terms = 0;  ///< set by the library where rows by key become pairs: the number of rows
};

/// Number of keys that a call by key has results for, in which a valid key is less than that.
inline std::size_t bins(const Call& call) { return call.out.size / call.layout.inner; }

/// The most elements that a result of a call by key may have, for which its grid has room.
inline std::size_t most_terms(const Call& call) {
  return call.most_terms > 0 ? call.most_terms : call.keys.size;
}

/// Runs a call whose data are in host memory, and waits for its results: see `reduce`.
void run(const Call& call);

/// Reduces x, in the given layout, into `out`.
///
/// Each result has the bits of the same reduction of its elements alone: they do not depend on the number of
/// results, on their place or on strides. Promise and error bound: Method::promise, Method::bound.
///
/// Inputs, out and offsets are in host memory. The backend "cuda" copies inputs and offsets to the device and
/// the results back, and waits for them. It also accepts inputs in the memory of a GPU, and reads them there;
/// they must be complete, or be written in the GPU's default stream; the same holds for options.where.
/// gpu.hpp has calls for other streams and for results in device memory.
///
/// A result for no elements is +0 for sums, norms and dot, 1 for prod, -inf for logsumexp, NaN for mean and
/// moments, -1 for argmin and argmax, +inf for min and -inf for max, where NumPy and PyTorch raise an error.
///
/// Softmax accepts rows, and scans accept rows and axes (Layout::rows, Layout::axis). Result (o, k, i) is
/// written at the position of element (o, k, i), with out.row_stride in place of the input's outer stride if
/// it is not 0. `out` may be x itself with the same format and stride; any other overlap is an error. Rolling
/// operations accept what scans accept, but `out` must not overlap x.
/// @throws std::invalid_argument, before anything is read or written, if the arguments do not fit together,
///   or if products of sizes, strides or offsets overflow.
/// @throws std::overflow_error if a term or a sum overflows options.grid: a term exceeds 2^(126 - ⌈log2 n⌉)
///   units, or the sum of a result exceeds 2^126 of them, for other formats than fp64 2^62. Such results are
///   NaN. Whether a sum overflows depends neither on the order of the elements nor on NaN and infinities.
/// @throws std::bad_alloc if host memory is exhausted, on whichever thread. Then some results may be written.
/// @throws gpu::Error on the backend "cuda"; it names the CUDA call that failed.
inline void reduce(const Method& method, Values x, Layout layout, Results out, Options options = {}) {
  run({.method = &method, .x = x, .layout = layout, .out = out, .options = options});
}
/// Reduces two inputs of the same format and size, for example to dot products, as for one input.
inline void reduce(const Method& method, Values x, Values y, Layout layout, Results out,
                   Options options = {}) {
  run({.method = &method, .x = x, .y = y, .layout = layout, .out = out, .options = options});
}
/// Reduces the elements of x that have the same key, by a method whose operation takes keys (scatter_add,
/// scatter_mean, scatter_count, scatter_min, scatter_max).
///
/// The layout is Layout::axis(1, n, inner), or Layout::vector(n) for inner = 1, with n = keys.size. Element
/// (k, i) belongs to result (keys[k], i). `out` has m × inner results, so keys must be less than
/// m = out.size / inner. A key without elements has the result for no elements. With Options::combine,
/// results are combined with what `out` holds. scatter_count reads no elements: x must be empty.
///
/// Each result has the bits of the same reduction of its elements alone, in their order; scatter_add in the
/// order serial has the bits of `out[key] += x` in a loop. Memory: as for other calls; keys are in host
/// memory, too.
/// @throws std::invalid_argument as for other calls, and if a key is out of range; then nothing has been
///   written.
/// @throws gpu::Error on the backend "cuda"; it names the CUDA call that failed.
inline void reduce(const Method& method, Values x, Keys keys, Layout layout, Results out,
                   Options options = {}) {
  run({.method = &method, .x = x, .keys = keys, .layout = layout, .out = out, .options = options});
}

/// Returns a message that names the invalid argument of a call and the remedy; empty if all are valid.
/// Offsets are read only if they are in host memory; keys are not read.
std::string validation_error(const Call& call, bool offsets_on_host);
/// Returns a message that names the invalid option and the remedy; empty if all are valid.
std::string validation_error(const Method& method, const Options& options);

/// Returns a message that names the input of which `out` overlaps any element; empty if there is none. All
/// are valid otherwise.
std::string overlap_error(const Values& x, const Values& y, const Results& out);

/// Checks the options of a reduction of one vector that takes all elements. Throws std::invalid_argument if
/// the number of threads is negative, if only some elements shall take part, or if an option of scans, of
/// reductions by key or of rolling operations is given.
void check(const Options& options);

/// Throws std::invalid_argument with a message about a call or a partial of a method.
[[noreturn]] void refuse(const Method& method, const std::string& why);

/// Returns a valid call with a fixed value in each field that it does not use, so that backends need no
/// special cases.
inline Call normalised(Call call) {
  call.out.row_stride = call.out.stride_of(call.layout);
  call.layout = normalised(call.layout);
  // Vectors without elements have no results per element, and combined results without keys are those that
  // `out` holds: there are none to write.
  if (call.method->has_result_per_element && call.layout.n == 0) call.layout.outer = 0;
  if (call.options.combine && call.keys.size == 0) call.out.size = 0;
  // Without results by key, no element is read, however long the rows are.
  if (call.method->takes_keys && call.out.size == 0 && call.layout.inner > 1) call.layout.inner = 1;
  if (!call.x.is_given()) call.x.format = call.method->format;
  return call;
}

}  // namespace samesum
