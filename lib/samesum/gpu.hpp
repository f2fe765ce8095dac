/// Reductions of data that lie in a GPU's memory. Only where the library was built with CUDA.
///
/// Calls are asynchronous and ordered by their stream, can be captured in a CUDA graph, and never
/// synchronise. Calls in different streams may run at once if each has a workspace, and an exact state, of
/// its own. Pointers to data need the alignment of an element and no more. The bits are those of the same
/// method on the CPU.
#pragma once

#include <cuda_runtime_api.h>

#include "samesum/backend/cuda/distinct.hpp"
#include "samesum/backend/cuda/error.hpp"
#include "samesum/backend/cuda/exact_state.hpp"
#include "samesum/operation/distinct.hpp"
#include "samesum/samesum.hpp"

namespace samesum::gpu {

// --- in two phases, without exceptions ---------------------------------------------------------------------
// With workspace == nullptr a call only sets `bytes` to what it needs, and looks at no other pointer; the
// size depends on the layout, the number of elements and the device that is current. A workspace is aligned
// to 16 bytes, as cudaMalloc's are. A new one is prepared once; each call, of any method, leaves it prepared.
// A workspace that was never prepared, or that another call uses at the same time, leads to wrong results or
// to a hang. If one byte is asked for, nothing needs to be prepared.
//
// All return cudaSuccess or what went wrong: cudaErrorInvalidValue for a null or misaligned pointer, a
// workspace that is too small, 2^39 elements and more, and whatever samesum::reduce throws for; the templates
// cudaErrorNoDevice where no method runs on a GPU; and whatever CUDA says.

/// Makes a workspace of that many bytes ready for its first call.
cudaError_t prepare(void* workspace, std::size_t bytes, cudaStream_t stream = nullptr) noexcept;

/// Reduces x (and y, for two inputs) as laid out by a method of the backend "cuda". All pointers are to
/// memory that the device can reach. x is read fastest if aligned to 16 bytes, rows if their strides are
/// multiples of that, too. Offsets of segments are not checked: they must not fall, nor go beyond x.
cudaError_t reduce(const Method& method, void* workspace, std::size_t& bytes, Values x, Layout layout,
                   Results out, cudaStream_t stream = nullptr, Options options = {}) noexcept;
cudaError_t reduce(const Method& method, void* workspace, std::size_t& bytes, Values x, Values y,
                   Layout layout, Results out, cudaStream_t stream = nullptr, Options options = {}) noexcept;

/// Adds x to an exact state, which one stream at a time may write to.
cudaError_t accumulate(void* workspace, std::size_t& bytes, Values x, ExactState* state,
                       cudaStream_t stream = nullptr) noexcept;

/// Adds what the other state has seen.
cudaError_t merge(ExactState* state, const ExactState* other, cudaStream_t stream = nullptr) noexcept;

/// Rounds a state once, to one number of that format.
cudaError_t round(const ExactState* state, const FormatInfo& format, void* out,
                  cudaStream_t stream = nullptr) noexcept;

/// The method on the backend "cuda" of a name with or without "@cuda". Throws like samesum::find, also where
/// there is no GPU, and says why.
const Method& find(std::string_view name, NameDefaults defaults = {.backend = "cuda"});

/// The sum of n elements by a method chosen at compile time: sum<"pairwise/kahan/fp32">(...).
template <Name name, Element T>
cudaError_t sum(void* workspace, std::size_t& bytes, const T* x, std::size_t n,
                typename Named<name, "cuda">::Format* out, cudaStream_t stream = nullptr) noexcept try {
  static const Method& method = find(name.view());
  return reduce(method, workspace, bytes, {format_info<T>(), x, n}, Layout::vector(n), std::span{out, 1},
                stream);
} catch (const std::exception&) {
  return cudaErrorNoDevice;  // the name is right, or it would not have compiled
}

/// The exact sum, correctly rounded to T.
template <Element T>
cudaError_t sum(void* workspace, std::size_t& bytes, const T* x, std::size_t n, T* out,
                cudaStream_t stream = nullptr) noexcept try {
  static const Method& exact = find("exact", {.format = Format<T>::name, .backend = "cuda"});
  return reduce(exact, workspace, bytes, {format_info<T>(), x, n}, Layout::vector(n), std::span{out, 1},
                stream);
} catch (const std::exception&) {
  return cudaErrorNoDevice;
}

// --- with a workspace from the stream-ordered allocator of CUDA --------------------------------------------

/// The same with a workspace from `pool` (nullptr: the device's current one), taken and given back in the
/// stream's order. Throws Error, which names the call, and std::invalid_argument for a wrong argument.
void reduce(const Method& method, Values x, Layout layout, Results out, cudaStream_t stream = nullptr,
            cudaMemPool_t pool = nullptr, Options options = {});
void reduce(const Method& method, Values x, Values y, Layout layout, Results out,
            cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr, Options options = {});

template <Name name, Element T>
void sum(const T* x, std::size_t n, typename Named<name, "cuda">::Format* out, cudaStream_t stream = nullptr,
         cudaMemPool_t pool = nullptr) {
  static const Method& method = find(name.view());
  reduce(method, {format_info<T>(), x, n}, Layout::vector(n), std::span{out, 1}, stream, pool);
}

template <Element T>
void sum(const T* x, std::size_t n, T* out, cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr) {
  static const Method& exact = find("exact", {.format = Format<T>::name, .backend = "cuda"});
  reduce(exact, {format_info<T>(), x, n}, Layout::vector(n), std::span{out, 1}, stream, pool);
}

// --- that wait for the stream
// --------------------------------------------------------------------------------

/// Copies a state to the host, to be serialised or merged there. Waits for the stream. Throws Error.
Exact download(const ExactState* state, cudaStream_t stream = nullptr);

}  // namespace samesum::gpu
