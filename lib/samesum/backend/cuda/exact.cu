/// Launches exact sums, and prepares workspaces.
#include <algorithm>

#include "samesum/backend/cuda/exact.cuh"
#include "samesum/backend/cuda/methods.hpp"

namespace samesum::gpu {
namespace {

/// Most elements per block: each adds less than 2^32 to a digit, which has room for all of them.
constexpr std::size_t most_of_block = std::size_t{1} << 30;

/// Number of blocks: one for up to two batches per thread, since merging blocks takes a microsecond; then one
/// batch per thread; then as many blocks as run at once, or more if elements exceed most_of_block per block.
template <class T> cudaError_t blocks_for(std::size_t n, std::size_t& blocks) {
  constexpr std::size_t per_batch = std::size_t{exact_threads} * exact_batch * Vector<T>::size;
  blocks = 1;
  if (n <= 2 * per_batch) return cudaSuccess;
  int processors = 0, resident = 0;
  cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, processors);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, sum_exactly<T>, exact_threads, 0);
  const std::size_t at_once = static_cast<std::size_t>(processors) * static_cast<std::size_t>(resident);
  blocks = std::max(std::min(at_once, (n - 1) / per_batch + 1), (n - 1) / most_of_block + 1);
  return error;
}

template <class T> cudaError_t sum_exact_of(Launch& work, ExactDestination result) {
  std::size_t blocks = static_cast<std::size_t>(work.blocks);
  cudaError_t error = blocks > 0 ? cudaSuccess : blocks_for<T>(work.call.layout.n, blocks);
  blocks = std::min<std::size_t>(blocks, GridDigits::most_blocks);
  work.uses_header = blocks > 1;
  if (error != cudaSuccess || !accept_workspace(work, blocks > 1 ? header_bytes : size_if_none_needed, error))
    return error;
  return launch(sum_exactly<T>, blocks, exact_threads, work.stream, static_cast<const T*>(work.call.x.data),
                work.call.layout.n, static_cast<Header*>(work.workspace), result);
}

__global__ void write_state(const ExactState* state, ExactDestination result) {
  __shared__ Digits digits;
  for (int i = thread(); i < Digits::count; i += warp) digits.digit[i] = state->digits[i];
  write(result, digits, state->flags);
}

__global__ void prepare_header(Header* header) {
  auto* word = reinterpret_cast<std::uint32_t*>(header);
  for (std::size_t i = threadIdx.x; i < sizeof(Header) / sizeof *word; i += blockDim.x) word[i] = 0;
  __syncthreads();  // all words are zero before the cells become -0
  std::size_t i = 0;
  if (threadIdx.x == 0)
    Formats::for_each([&]<class F>() {
      header->cell[i++] = sizeof(F) == 2 ? 0x80008000u : std::uint64_t{Format<F>::sign_bit};  // see AddToCell
    });
}

}  // namespace

cudaError_t sum_exact(Launch& work, ExactDestination result) {
  return with_format(*work.call.x.format, [&]<class T>() { return sum_exact_of<T>(work, result); });
}

cudaError_t write_exact(const ExactState* state, ExactDestination result, cudaStream_t stream) {
  return launch(write_state, 1, warp, stream, state, result);
}

cudaError_t prepare_workspace(void* workspace, cudaStream_t stream) {
  return launch(prepare_header, 1, 1024, stream, static_cast<Header*>(workspace));
}

}  // namespace samesum::gpu
