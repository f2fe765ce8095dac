/// Reductions of data that lie in a GPU's memory. Only where the library was built with CUDA. Calls are as
/// those of gpu.hpp: asynchronous, ordered by their stream, without a synchronisation, to be captured in a
/// CUDA graph.
#pragma once

#include "samesum/gpu.hpp"
#include "samesum/operation/distinct.hpp"
#include "samesum/operation/reduction.hpp"

namespace samesum::gpu {

/// In two phases, without exceptions: with workspace == nullptr only `bytes` is set. The workspace is aligned
/// to 16 bytes; it needs no preparation. Offsets of segments are in memory that the device can reach and are
/// not checked: they must not fall, nor go beyond x. cudaErrorInvalidValue for what `reduce` of the host
/// throws for.
cudaError_t reduce(const Reduction& reduction, void* workspace, std::size_t& bytes, Values x, Layout layout,
                   Results out, cudaStream_t stream = nullptr, ReduceOptions options = {}) noexcept;
cudaError_t reduce(const Reduction& reduction, void* workspace, std::size_t& bytes, Values x, Values y,
                   Layout layout, Results out, cudaStream_t stream = nullptr,
                   ReduceOptions options = {}) noexcept;

/// With a workspace from the stream-ordered allocator. Throws Error, std::invalid_argument.
void reduce(const Reduction& reduction, Values x, Layout layout, Results out, cudaStream_t stream = nullptr,
            ReduceOptions options = {});
void reduce(const Reduction& reduction, Values x, Values y, Layout layout, Results out,
            cudaStream_t stream = nullptr, ReduceOptions options = {});

/// How many different numbers x has, as samesum::count_distinct counts them; x is in memory that the device
/// can reach. Allocates 16 bytes an element, and waits for the stream. Throws Error.
std::uint64_t count_distinct(Values x, cudaStream_t stream = nullptr);

}  // namespace samesum::gpu
