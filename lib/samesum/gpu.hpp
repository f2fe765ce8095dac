/// Sums of data that lie in a GPU's memory. Only where the library was built with CUDA.
///
/// Calls are asynchronous and ordered by their stream, can be captured in a CUDA graph, and never
/// synchronise. Calls in different streams may run at once if each has a workspace, and an exact state, of
/// its own. Pointers to data need the alignment of an element and no more. The bits are those of the same
/// variant on the CPU.
#pragma once

#include <cuda_runtime_api.h>

#include "samesum/samesum.hpp"

namespace samesum::gpu {

/// A call of CUDA that failed: what() names it and says why.
class Error : public std::runtime_error {
 public:
  Error(const std::string& call, cudaError_t code)
      : std::runtime_error{"samesum: " + call + " failed: " + cudaGetErrorString(code)}, code_{code} {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// An exact state in a GPU's memory. All bytes zero is the empty state (cudaMemsetAsync).
struct ExactState {
  std::int64_t digits[Exact::digit_count];
  std::uint32_t flags;
};

// --- in two phases, without exceptions ---------------------------------------------------------------------
// With workspace == nullptr a call only sets `bytes` to what it needs, and looks at no other pointer; the
// size depends on n and on the device that is current. A workspace is aligned to 16 bytes, as cudaMalloc's
// are. A new one is prepared once; each call leaves it prepared. With one that is not, or that another call
// uses at the same time, a sum may be wrong or never end. Where one block of threads does all the work
// (n up to 32768, for exact less) one byte is asked for, and nothing needs to be prepared.
//
// All return cudaSuccess or what went wrong: cudaErrorInvalidValue for a null or misaligned pointer, a
// workspace that is too small or 2^39 elements and more; the templates cudaErrorNoDevice where no variant
// runs on a GPU; and whatever CUDA says.

/// Makes a workspace of that many bytes ready for its first call.
cudaError_t prepare(void* workspace, std::size_t bytes, cudaStream_t stream = nullptr) noexcept;

/// The sum of x by a variant of the backend "cuda" into one number of the variant's format. Both x and out
/// are in memory that the device can reach. n is below 2^39. x is read fastest if aligned to 16 bytes.
cudaError_t sum(const Variant& variant, void* workspace, std::size_t& bytes, Values x, void* out,
                cudaStream_t stream = nullptr) noexcept;

/// Adds x to an exact state, which one stream at a time may write to.
cudaError_t accumulate(void* workspace, std::size_t& bytes, Values x, ExactState* state,
                       cudaStream_t stream = nullptr) noexcept;

/// Adds what the other state has seen.
cudaError_t merge(ExactState* state, const ExactState* other, cudaStream_t stream = nullptr) noexcept;

/// Rounds a state once, to one number of that format.
cudaError_t round(const ExactState* state, const FormatInfo& format, void* out,
                  cudaStream_t stream = nullptr) noexcept;

/// The variant on the backend "cuda" of a name with or without "@cuda". Throws like samesum::find, also where
/// there is no GPU, and says why.
const Variant& find(std::string_view name);

/// The sum of n elements by a variant chosen at compile time: sum<"pairwise/kahan/fp32">(...).
template <Name name, Element T>
cudaError_t sum(void* workspace, std::size_t& bytes, const T* x, std::size_t n,
                typename Named<name, "cuda">::Format* out, cudaStream_t stream = nullptr) noexcept try {
  static const Variant& variant = find(name.view());
  return sum(variant, workspace, bytes, Values{format_info<T>(), x, n}, out, stream);
} catch (const std::exception&) {
  return cudaErrorNoDevice;  // the name is right, or it would not have compiled
}

/// The exact sum, correctly rounded to T.
template <Element T>
cudaError_t sum(void* workspace, std::size_t& bytes, const T* x, std::size_t n, T* out,
                cudaStream_t stream = nullptr) noexcept try {
  static const Variant& exact = find(std::string{"exact/"}.append(Format<T>::name));
  return sum(exact, workspace, bytes, Values{format_info<T>(), x, n}, out, stream);
} catch (const std::exception&) {
  return cudaErrorNoDevice;
}

// --- with a workspace from the stream-ordered allocator of CUDA --------------------------------------------

/// The same with a workspace from `pool` (nullptr: the device's current one), taken and given back in the
/// stream's order. Throws Error, which names the call, std::invalid_argument for a wrong argument.
void sum(const Variant& variant, Values x, void* out, cudaStream_t stream = nullptr,
         cudaMemPool_t pool = nullptr);

template <Name name, Element T>
void sum(const T* x, std::size_t n, typename Named<name, "cuda">::Format* out, cudaStream_t stream = nullptr,
         cudaMemPool_t pool = nullptr) {
  static const Variant& variant = find(name.view());
  sum(variant, Values{format_info<T>(), x, n}, out, stream, pool);
}

template <Element T>
void sum(const T* x, std::size_t n, T* out, cudaStream_t stream = nullptr, cudaMemPool_t pool = nullptr) {
  static const Variant& exact = find(std::string{"exact/"}.append(Format<T>::name));
  sum(exact, Values{format_info<T>(), x, n}, out, stream, pool);
}

/// Copies a state to the host, to be serialised or merged there. Waits for the stream. Throws Error.
Exact download(const ExactState* state, cudaStream_t stream = nullptr);

}  // namespace samesum::gpu
