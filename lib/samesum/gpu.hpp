/// Public interface for data in GPU memory, available if the library was built with CUDA.
///
/// Unless stated otherwise, calls are asynchronous and stream-ordered, can be captured in a CUDA graph, and
/// do not synchronise. Calls in different streams or from different host threads may run concurrently if each
/// has its own workspace and its own exact state. The stream must belong to the current device, which must be
/// able to access all pointers. Pointers to data need only the alignment of an element. Results must not
/// overlap inputs (softmax may work in place) or the workspace. Methods that promise `everywhere` return the
/// same bits as on the CPU.
///
/// Workspace. Calls with a workspace have two phases:
/// - The size query. If `workspace` is nullptr, the call sets `bytes` to the size that it needs, launches
///   nothing, and reads no other pointer. The size depends on the method, the format and number of elements,
///   the layout, the number of results by key, whether a grid is given, and the current device. The offsets
///   of segments must not be null even here, since Layout::segments throws.
/// - The call. `bytes` is the size of the workspace. It may be larger than needed, and is left unchanged.
///
/// A workspace is memory that the device can access, aligned to 16 bytes, as memory from cudaMalloc is. Call
/// `prepare` once per workspace, before its first call, with the size of the allocation. Every call that
/// succeeds, of any method, leaves the workspace prepared; after one that returns an error, prepare it again.
/// A required size of one byte means that no preparation is needed. A workspace serves one call at a time. A
/// workspace that is not prepared, or that a concurrent call uses, leads to wrong results or to a hang. A
/// captured call uses its workspace in each replay: replays must not overlap. Prepare the workspace before
/// the capture.
///
/// Functions that return a cudaError_t do not throw. They return cudaSuccess or
/// - cudaErrorInvalidValue for a null or misaligned pointer, a workspace that is too small, 2^39 or more
///   elements, for sums by key in the order `serial` 2^31 or more rows or results, and every argument for
///   which samesum::reduce throws, except offsets, which are not checked;
/// - cudaErrorInvalidConfiguration if a kernel would need more than 2^31 - 1 blocks;
/// - cudaErrorNoDevice, only from the `sum` templates, if the method was not found: because this process
///   cannot use a GPU, because the name has another backend ("@cpu"), or because host memory is exhausted;
/// - cudaErrorMemoryAllocation if host memory is exhausted otherwise;
/// - the error of a CUDA call, unchanged. Errors of a running kernel are not waited for: a later CUDA call
///   reports them.
#pragma once

#include <cuda_runtime_api.h>

#include "samesum/backend/cuda/device/error.hpp"
#include "samesum/backend/cuda/device/exact_state.hpp"
#include "samesum/backend/cuda/device/key_segments.hpp"
#include "samesum/backend/cuda/device/key_status.hpp"
#include "samesum/backend/cuda/selection/distinct.hpp"
#include "samesum/operation/distinct.hpp"
#include "samesum/samesum.hpp"

namespace samesum::gpu {

// --- two phases, without exceptions ------------------------------------------------------------------------

/// Prepares a workspace of `bytes` bytes for its first call, in stream order.
cudaError_t prepare(void* workspace, std::size_t bytes, cudaStream_t stream = nullptr) noexcept;

/// Enqueues a call of a method of the backend "cuda" in a stream, or queries the size of its workspace.
///
/// All pointers, segment offsets and keys included, are to memory that the device can access. Reading is
/// fastest if x is aligned to 16 bytes and the strides of rows are multiples of 16 bytes. Offsets are not
/// checked: they must not decrease, nor exceed the size of x. Results are as for samesum::reduce, but a sum
/// that overflows options.grid is no error: it is NaN. options.where and skip_nan are refused: pack the
/// elements that take part, or call samesum::reduce, which waits; rolling operations take skip_nan. Promise
/// and error bound: Method::promise, Method::bound.
///
/// A key that is out of range is not known before the kernels have run: its element is skipped, although a
/// grid that is found may depend on it, and `status`, in device memory, names the first such place. It may be
/// null.
cudaError_t enqueue(const Call& call, void* workspace, std::size_t& bytes, cudaStream_t stream = nullptr,
                    KeyStatus* status = nullptr) noexcept;
/// Queries the size of the workspace of a call.
inline cudaError_t workspace_size(const Call& call, std::size_t& bytes) noexcept {
  return enqueue(call, nullptr, bytes);
}

/// Reduces x, in the given layout, into `out`, as `enqueue`.
inline cudaError_t reduce(const Method& method, void* workspace, std::size_t& bytes, Values x, Layout layout,
                          Results out, cudaStream_t stream = nullptr, Options options = {}) noexcept {
  return enqueue({.method = &method, .x = x, .layout = layout, .out = out, .options = options}, workspace,
                 bytes, stream);
}
/// Reduces the elements of each key, as samesum::reduce with keys does.
inline cudaError_t reduce(const Method& method, void* workspace, std::size_t& bytes, Values x, Keys keys,
                          Layout layout, Results out, KeyStatus* status = nullptr,
                          cudaStream_t stream = nullptr, Options options = {}) noexcept {
  return enqueue({.method = &method, .x = x, .keys = keys, .layout = layout, .out = out, .options = options},
                 workspace, bytes, stream, status);
}
/// Reduces two inputs of the same format and size, for example to dot products, as for one input.
inline cudaError_t reduce(const Method& method, void* workspace, std::size_t& bytes, Values x, Values y,
                          Layout layout, Results out, cudaStream_t stream = nullptr,
                          Options options = {}) noexcept {
  return enqueue({.method = &method, .x = x, .y = y, .layout = layout, .out = out, .options = options},
                 workspace, bytes, stream);
}

/// Finds the runs of equal keys that follow each other, as samesum::segments_of does. Keys are in device
/// memory.
///
/// The number of runs is known only when the call has completed. A call of `reduce` with
/// Layout::segments(out.offsets, most) needs not wait for it: if there are fewer runs than `most`, the
/// results behind theirs are those for no elements.
cudaError_t segments_of(void* workspace, std::size_t& bytes, Keys keys, DeviceSegments out,
                        cudaStream_t stream = nullptr) noexcept;

/// Adds the elements of x to an exact state in device memory. Only one stream at a time may write to a state.
/// Promise: `order_free`.
cudaError_t accumulate(void* workspace, std::size_t& bytes, Values x, ExactState* state,
                       cudaStream_t stream = nullptr) noexcept;

/// Adds the sum of `other` to `state`. Promise: `order_free`.
cudaError_t merge(ExactState* state, const ExactState* other, cudaStream_t stream = nullptr) noexcept;

/// Rounds a state once, to one number of `format`, and writes it to `out` in device memory. Special values:
/// see Exact::result.
cudaError_t round(const ExactState* state, const FormatInfo& format, void* out,
                  cudaStream_t stream = nullptr) noexcept;

/// Returns the method `name` of the backend "cuda". The name may omit the backend and every other field for
/// which `defaults` has a value.
/// @throws std::invalid_argument as samesum::find does; if there is no GPU, the message gives the reason.
const Method& find(std::string_view name, NameDefaults defaults = {.backend = "cuda"});

/// Sums n elements into *out by a method chosen at compile time: sum<"pairwise/kahan">(...). x and out are in
/// device memory. Without a name the sum is exact, and rounded once (to nearest, ties to even; promise
/// `order_free`; special values: see Exact::result). A name without a format means that of the elements; one
/// that is not the name of a sum does not compile.
template <Name name = "exact", Element T>
cudaError_t sum(void* workspace, std::size_t& bytes, const T* x, std::size_t n,
                typename NamedSum<name, T, "cuda">::Format* out, cudaStream_t stream = nullptr) noexcept try {
  return reduce(NamedSum<name, T, "cuda">::method(), workspace, bytes, {format_info<T>(), x, n},
                Layout::vector(n), std::span{out, 1}, stream);
} catch (const std::exception&) {
  return cudaErrorNoDevice;  // no GPU, another backend in the name, or no host memory
}

// --- with a workspace from CUDA's stream-ordered allocator -------------------------------------------------

/// Enqueues a call, with a workspace from `pool` (nullptr: the device's current pool), which is allocated and
/// freed in stream order. Otherwise as `enqueue`.
/// @throws Error, which names the CUDA call that failed.
/// @throws std::invalid_argument for an invalid argument.
void run(const Call& call, cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr,
         KeyStatus* status = nullptr);

/// Reduces x, in the given layout, into `out`, as `run`.
inline void reduce(const Method& method, Values x, Layout layout, Results out, cudaStream_t stream = nullptr,
                   cudaMemPool_t pool = nullptr, Options options = {}) {
  run({.method = &method, .x = x, .layout = layout, .out = out, .options = options}, stream, pool);
}
/// Reduces the elements of each key, as the call with a workspace.
inline void reduce(const Method& method, Values x, Keys keys, Layout layout, Results out,
                   KeyStatus* status = nullptr, cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr,
                   Options options = {}) {
  run({.method = &method, .x = x, .keys = keys, .layout = layout, .out = out, .options = options}, stream,
      pool, status);
}
/// Reduces two inputs of the same format and size, as for one input.
inline void reduce(const Method& method, Values x, Values y, Layout layout, Results out,
                   cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr, Options options = {}) {
  run({.method = &method, .x = x, .y = y, .layout = layout, .out = out, .options = options}, stream, pool);
}

/// Finds the runs of equal keys, with a workspace from `pool`. Otherwise as `segments_of` with a workspace.
/// @throws Error and std::invalid_argument as `reduce` with a pool does.
void segments_of(Keys keys, DeviceSegments out, cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr);

/// Sums n elements into *out with a workspace from `pool`, as `sum` with a workspace does.
/// @throws Error and std::invalid_argument as `reduce` with a pool does, and std::invalid_argument if there
///   is no GPU.
template <Name name = "exact", Element T>
void sum(const T* x, std::size_t n, typename NamedSum<name, T, "cuda">::Format* out,
         cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr) {
  reduce(NamedSum<name, T, "cuda">::method(), {format_info<T>(), x, n}, Layout::vector(n), std::span{out, 1},
         stream, pool);
}

// --- calls that wait for the stream ------------------------------------------------------------------------
// Also count_distinct (backend/cuda/selection/distinct.hpp), which calls cudaMalloc besides.

/// Takes in the next elements, in device memory, for a partial of a method of the backend "cuda". The partial
/// itself is in host memory: it merges with partials of any backend. Allocates from `pool` (nullptr: the
/// device's current pool), and waits for the stream. The current device must be that of the stream. Methods
/// in the order serial copy the elements to the host.
/// @throws Error, which names the CUDA call that failed, and otherwise as Partial::add. If it throws, the
///   partial is unchanged.
void add(Partial& partial, Values x, Values y, cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr);
/// Takes in the next elements of one input.
inline void add(Partial& partial, Values x, cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr) {
  add(partial, x, {}, stream, pool);
}

/// Copies an exact state to the host, where it can be merged, rounded or serialised. Waits for the stream.
/// @throws Error, which names the CUDA call that failed.
/// @throws std::invalid_argument if state is null.
Exact download(const ExactState* state, cudaStream_t stream = nullptr);

}  // namespace samesum::gpu
