/// One call on a GPU, and how a workspace is laid out.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "samesum/backend/backend.hpp"
#include "samesum/gpu.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {

/// Which kernels share out the rows of a softmax. None of it changes a bit.
enum class SoftmaxSchedule {
  automatic,  ///< by width, the first below that fits
  narrow,     ///< a warp a row, or less; up to 1024 columns
  held,  ///< a block a row, or a cluster of blocks (Hopper and later), on the chip; up to 131072 columns,
         ///< without clusters 32768 of fp32 and 16384 of 16 bits
  wide,  ///< a block a row, which reads it again; any width, the exact and the online form
};

/// A call whose pointers are all to memory that the device can reach, and what enqueues it.
struct Launch : Call {
  void* workspace = nullptr;  ///< null: only `bytes` is set
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
  // As measured to be fast; the tests force others, which changes no bit.
  int blocks = 0, threads = 0;
  SoftmaxSchedule schedule = SoftmaxSchedule::automatic;
  bool uses_header = false;         ///< whether the start of the workspace must have been prepared
  cudaError_t error = cudaSuccess;  ///< what became of it
};

/// As an entry of the catalogue.
template <cudaError_t (*enqueue)(Launch&)> void run_launch(Call& call) {
  auto& launch = static_cast<Launch&>(call);
  launch.error = enqueue(launch);
}

/// The largest blocks that the kernels are compiled for.
inline constexpr int most_threads = 256;

/// Where the blocks of an exact sum meet: digits, then flags, and in the upper bits of each word how many
/// blocks have added to it. So nobody has to wait for anything but these words: no fence, no ticket.
template <int digits> struct MeetingOf {
  static constexpr int sum_bits = 52, counter_bits = 12;
  static constexpr unsigned most_blocks = (1u << counter_bits) - 1;
  static constexpr std::uint64_t one = std::uint64_t{1} << sum_bits;
  std::array<std::uint64_t, digits + 1> word;

  SAMESUM_HD static std::int64_t sum(std::uint64_t word) {
    return static_cast<std::int64_t>(word << counter_bits) >> counter_bits;
  }
  SAMESUM_HD static unsigned arrivals(std::uint64_t word) {
    return static_cast<unsigned>((word - static_cast<std::uint64_t>(sum(word))) >> sum_bits);
  }

  /// A counter for each flag but the first, which all blocks have or none.
  SAMESUM_HD static std::uint64_t counters(unsigned flags) {
    std::uint64_t counters = 0;
    for (int f = 1; f <= 4; ++f) counters |= std::uint64_t{flags >> f & 1} << (f - 1) * counter_bits;
    return counters;
  }
  SAMESUM_HD static unsigned flags(std::int64_t counters) {
    unsigned flags = 0;
    for (int f = 1; f <= 4; ++f)
      if (counters >> (f - 1) * counter_bits & most_blocks) flags |= 1u << f;
    return flags;
  }
};
using Meeting = MeetingOf<Exact::digit_count>;
static_assert(Exact::seen_any == 1 && Exact::seen_minus_infinity == 1 << 4);

/// What all blocks of a call share at the start of the workspace. Between calls all of it is zero but the
/// cells, which are -0.
struct Header {
  Meeting meeting;
  std::array<std::uint64_t, Formats::size> cell;  ///< the low bytes, in each format
  std::array<std::uint32_t, 15 * 1024> ticket;
};
inline constexpr std::size_t header_bytes = std::size_t{1} << 16;
static_assert(sizeof(Header) <= header_bytes);

/// States come after it, so that any method leaves a workspace prepared for any other.
inline void* states(void* workspace) { return static_cast<std::byte*>(workspace) + header_bytes; }

/// For a call that needs no workspace: a query must answer with something that is not 0.
inline constexpr std::size_t no_bytes = 1;

/// Sets the size where only that was asked for. True where the call can go on: the workspace is large enough.
template <class AnyCall> bool has_workspace(AnyCall& call, std::size_t needed, cudaError_t& error) {
  error = cudaSuccess;
  if (call.workspace != nullptr && call.bytes < needed) error = cudaErrorInvalidValue;
  const bool go_on = call.workspace != nullptr && error == cudaSuccess;
  if (call.workspace == nullptr) call.bytes = needed;
  return go_on;
}

/// A fact of the current device.
inline cudaError_t look_up(cudaDeviceAttr attribute, int& value) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  return cudaDeviceGetAttribute(&value, attribute, device);
}

/// kernel<<<blocks, threads, 0, stream>>>(arguments…), with its own error and nobody else's.
template <class... Parameter, class... Argument>
cudaError_t launch(void (*kernel)(Parameter...), std::size_t blocks, int threads, cudaStream_t stream,
                   Argument... argument) {
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  std::tuple<Parameter...> parameters{argument...};
  return std::apply(
      [&](auto&... p) {
        std::array<void*, sizeof...(p)> pointers{&p...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)),
                                dim3(static_cast<unsigned>(threads)), pointers.data(), 0, stream);
      },
      parameters);
}

/// Where an exact sum goes: rounded to one number of the format at that place of the list, or into a state.
struct ExactResult {
  void* out;
  std::size_t format;
  ExactState* state;  ///< null: `out` it is
};

// In exact.cu:
cudaError_t sum_exact(Launch& call, ExactResult result);
cudaError_t write_exact(const ExactState* state, ExactResult result, cudaStream_t stream);
cudaError_t prepare_workspace(void* workspace, cudaStream_t stream);

// In exact_reduce.cu:
cudaError_t reduce_exactly(ExactKind kind, const FormatInfo& format, Launch& launch);

// The parts of the backend. Methods in the format at place `shard` of the list, a translation unit each:
template <std::size_t shard> std::vector<Entry> sums();
template <std::size_t shard> std::vector<Entry> reductions();
std::vector<Entry> softmax_methods();

/// Why there is no GPU; empty if there is one.
const std::string& absence();

}  // namespace samesum::gpu
