/// Exact sums of vectors, and of batches of few long vectors, one after another; also the preparation of
/// workspaces.
/// Integer addition is associative, so a result does not depend on the order of arrival.
#include <algorithm>

#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/exact/bins.cuh"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {
namespace {

template <class T> using Summer = std::conditional_t<sizeof(T) == 8, ThreadExpansions, Bins<T>>;

/// The aligned vectors of n elements: `head` elements precede them, and those from `tail` on follow. A thread
/// loads them in batches.
template <class T> struct AlignedVectors {
  struct Batch {
    uint4 vector[exact_batch];
    int count;
  };
  std::size_t head, count, tail, stride;
  const uint4* of_thread;

  __device__ AlignedVectors(const T* x, std::size_t n) {
    const std::size_t misaligned = (16 - reinterpret_cast<std::uintptr_t>(x) % 16) % 16 / sizeof(T);
    head = min(misaligned, n);
    count = (n - head) / Vector<T>::size;
    tail = head + count * Vector<T>::size;
    of_thread = reinterpret_cast<const uint4*>(x + head) + threadIdx.x;
    stride = std::size_t{gridDim.x} * exact_threads;
  }
  /// Loads a batch of the thread. Its first vector is `first` for thread 0 of the block.
  __device__ __forceinline__ Batch load(std::size_t first) const {
    Batch batch;
    batch.count = exact_batch;
    if (first + threadIdx.x + (exact_batch - 1) * stride < count) {
      for (int i = 0; i < exact_batch; ++i) batch.vector[i] = of_thread[first + i * stride];
    } else {
      for (int i = exact_batch - 1; i >= 0; --i)
        if (first + threadIdx.x + i * stride < count)
          batch.vector[i] = of_thread[first + i * stride];
        else
          batch.count = i;
    }
    return batch;
  }
};

/// The bits of a vector in which an element differs from -0.
template <class T> __device__ unsigned other_than_minus_zero(const uint4& w) {
  constexpr unsigned low = sizeof(T) == 8 ? 0 : sizeof(T) == 4 ? 0x80000000u : 0x80008000u;
  constexpr unsigned high = sizeof(T) == 2 ? 0x80008000u : 0x80000000u;
  return (w.x ^ low) | (w.y ^ high) | (w.z ^ low) | (w.w ^ high);
}

/// Sums n elements exactly. The grid may have any size up to GridDigits::most_blocks, with at most 2^30
/// elements per block.
template <class T>
__global__ void __launch_bounds__(exact_threads, sizeof(T) == 8 ? 3 : 4)
    sum_exactly(const T* __restrict__ x, std::size_t n, Header* header, ExactDestination result) {
  __shared__ typename Summer<T>::Shared shared;
  __shared__ Digits digits;
  __shared__ unsigned flags_of_warp[exact_threads / warp];
  const AlignedVectors<T> vectors{x, n};
  std::size_t first = std::size_t{blockIdx.x} * exact_threads;  // first vector of the block
  auto next = vectors.load(first);  // one batch is in flight while another is added
  if (threadIdx.x < Exact::digit_count) digits[threadIdx.x] = 0;
  Summer<T> sum{shared, digits};
  unsigned flags = n > 0 ? Exact::seen_any : 0, other = 0;
  const auto add_one = [&](T element) {
    flags |= sum.add(element);
    other |= to_bits(element) != Format<T>::sign_bit;
  };
  if (blockIdx.x == 0 && threadIdx.x < vectors.head) add_one(x[threadIdx.x]);
  if (blockIdx.x == 0 && threadIdx.x < n - vectors.tail) add_one(x[vectors.tail + threadIdx.x]);
  do {
#pragma unroll 1
    for (int b = 0; b < Summer<T>::batches && first < vectors.count; ++b) {
      const auto batch = next;
      first += exact_batch * vectors.stride;
      next = vectors.load(first);
#pragma unroll
      for (int i = 0; i < exact_batch; ++i) {
        if (i >= batch.count) break;
        const uint4 w = batch.vector[i];
        other |= other_than_minus_zero<T>(w);
        flags |= sum.add(reinterpret_cast<const Vector<T>&>(w));
      }
    }
    if (other) flags |= Exact::seen_other_than_minus_zero;
    flags = __reduce_or_sync(whole_warp, flags);
    if (thread() == 0) flags_of_warp[warp_index()] = flags;
    sum.finish(shared, digits);
  } while (first < vectors.count);

  if (warp_index() > 0) return;  // one warp finishes
  flags = __reduce_or_sync(whole_warp, thread() < warps() ? flags_of_warp[thread()] : 0);
  if (gridDim.x == 1 ||
      add_to_grid_digits(digits, Summer<T>::first_digit, Summer<T>::last_digit, flags, header->grid_digits))
    write(result, digits, flags);
}

/// Most elements per block: each adds less than 2^32 to a digit, which has room for all of them.
constexpr std::size_t most_of_block = std::size_t{1} << 30;

/// Number of blocks: one for up to two batches per thread, since merging blocks takes a microsecond; then one
/// batch per thread; then as many blocks as run at once, or more if elements exceed most_of_block per block.
template <class T> cudaError_t blocks_for(std::size_t n, std::size_t& blocks) {
  constexpr std::size_t per_batch = std::size_t{exact_threads} * exact_batch * Vector<T>::size;
  blocks = 1;
  if (n <= 2 * per_batch) return cudaSuccess;
  std::size_t at_once = 0;
  const cudaError_t error = resident_blocks(sum_exactly<T>, exact_threads, at_once);
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
  for (int i = thread(); i < Exact::digit_count; i += warp) digits[i] = state->digits[i];
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

/// Writes a state of elements as ExactDigits. Runs on one warp.
__global__ void write_digits(const ExactState* state, ExactDigits* out) {
  __shared__ std::int64_t digits[ExactTerms::digit_count];
  constexpr int first = (Exact::lowest_exponent - ExactTerms::lowest_exponent) / 32;
  for (int i = thread(); i < ExactTerms::digit_count; i += warp) {
    const int of_state = i - first;
    digits[i] = of_state >= 0 && of_state < Exact::digit_count ? state->digits[of_state] : 0;
  }
  __syncwarp();  // all threads have written their digits
  if (thread() == 0) propagate_carries(digits, ExactTerms::digit_count);
  __syncwarp();  // the carries are propagated
  for (int i = thread(); i < ExactTerms::digit_count; i += warp) out->terms.data()[i] = digits[i];
  if (thread() == 0) out->flags = state->flags;
}

/// Whether sum_each is faster than the kernels for rows: it is for few vectors that are long enough to occupy
/// the GPU alone.
bool is_for_sums(ExactKind kind, const Layout& l) {
  return kind.term == Term::element && !kind.moments && !l.offsets && l.stride == 1 &&
         l.n >= std::size_t{1} << 22 && l.results() <= 32;
}

/// Sums vector after vector with the kernel of exact sums.
cudaError_t sum_each(ExactKind kind, Launch& work) {
  const Layout& l = work.call.layout;
  const FormatInfo& format = *work.call.method->format;
  const std::size_t bytes = work.as_state ? sizeof(ExactDigits) : format.bytes;
  Launch one = work;
  one.call.layout = Layout::vector(l.n);
  cudaError_t error;
  work.uses_header = true;
  if (!accept_workspace(work, header_bytes + sizeof(ExactState), error)) return error;
  one.bytes = work.bytes;
  auto* state = work.as_state ? static_cast<ExactState*>(states(work.workspace)) : nullptr;
  for (std::size_t at = 0; at < l.results() && error == cudaSuccess; ++at) {
    one.call.x.data = static_cast<const std::byte*>(work.call.x.data) +
                      (l.first(at / l.inner) + at % l.inner) * work.call.x.format->bytes;
    void* const out = static_cast<std::byte*>(work.call.out.data) + at * bytes;
    if (state != nullptr) error = cudaMemsetAsync(state, 0, sizeof *state, work.stream);
    if (error == cudaSuccess) error = sum_exact(one, {out, format.index, state, kind.mean ? l.n : 1});
    if (error == cudaSuccess && state != nullptr)
      error = launch(write_digits, 1, warp, work.stream, state, static_cast<ExactDigits*>(out));
  }
  return error;
}

}  // namespace

cudaError_t sum_exact(Launch& work, ExactDestination result) {
  return with_kernel_format(*work.call.x.format, [&]<class T>() { return sum_exact_of<T>(work, result); });
}

cudaError_t reduce_exactly(ExactKind kind, Launch& work) {
  if (is_for_sums(kind, work.call.layout)) return sum_each(kind, work);
  return with_kernel_format(*work.call.x.format,
                            [&]<class T>() { return reduce_exactly_of<Formats::index_of<T>()>(kind, work); });
}

cudaError_t write_exact(const ExactState* state, ExactDestination result, cudaStream_t stream) {
  return launch(write_state, 1, warp, stream, state, result);
}

cudaError_t prepare_workspace(void* workspace, cudaStream_t stream) {
  return launch(prepare_header, 1, 1024, stream, static_cast<Header*>(workspace));
}

}  // namespace samesum::gpu
