/// Public interface for vectors in the memory of several GPUs, the ranks of a NCCL communicator, available if
/// the library was built with NCCL: reductions that return the bits of the undivided vector, for any number
/// of GPUs.
///
/// A `Plan` holds what its calls need: the lengths of the blocks of all ranks, which it exchanges once,
/// memory, a stream and events. Making one is collective: all ranks of `comm`, a blocking communicator, make
/// the same plan, each in a host thread or process of its own, with the device of `comm` as the current one;
/// it waits for the other ranks, and must not be made between ncclGroupStart and ncclGroupEnd. The calls of a
/// plan are collective, too, but asynchronous and stream-ordered: they do not synchronise, and can be
/// captured in a CUDA graph together with those of the other ranks. A plan serves one call at a time: calls
/// follow each other in one stream, and replays of a graph do not overlap. As for NCCL itself, all ranks
/// enqueue the calls of one communicator in the same order. A plan outlives its calls, and `comm` outlives
/// the plan.
///
/// All data, results included, are in device memory, as for gpu.hpp. Methods are those of the backend "cuda".
///
/// Errors of a plan are collective: if the arguments of one rank are invalid, if its current device is not
/// that of `comm`, if its device lacks memory, or if ranks make different plans, all ranks throw Error with
/// one message, which names the rank. So do the calls below that make a plan and wait, for all their
/// arguments. The calls of a plan only check their own arguments: if one throws on a rank, the calls of the
/// other ranks wait for it, and the communicator must be aborted.
#pragma once

#include <nccl.h>

#include <memory>

#include "samesum/gpu.hpp"

namespace samesum::nccl {

/// Thrown if a plan fails on one rank, then on all of them, or if a NCCL call fails; what() names the rank,
/// the argument and the remedy, or the call that failed.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bytes of an input of which a rank exchanges the blocks at a time, element by element. The number changes
/// no bit; twice as much memory is allocated.
inline constexpr std::size_t default_chunk_bytes = std::size_t{256} << 20;

/// A reduction over ranks, to be called any number of times.
class Plan {
 public:
  /// Plans a call. Its layout says what the ranks reduce together:
  ///
  /// Layout::vector(size): the vector that the blocks of all ranks form, in rank order, as `reduce`.
  /// Layout::axis(1, 1, n): the vectors of all ranks, each of n elements, element by element, as
  /// `all_reduce`.
  ///
  /// Addresses may be null, and then each call of `enqueue` passes them. Results are written on all ranks.
  /// @throws Error on all ranks if an argument of any rank is invalid, if any rank lacks memory, or if the
  ///   plans differ. The data are checked if out.data is not null.
  /// @throws gpu::Error, which names the CUDA call that failed, if this rank cannot even take part in the
  ///   agreement of the ranks.
  Plan(const Call& call, ncclComm_t comm, std::size_t chunk_bytes = default_chunk_bytes);

  /// Plans the reduction of the vector that the blocks of all ranks form, in rank order. `size` is the length
  /// of the block of this rank; blocks may have any lengths, also none. Results are written on all ranks, and
  /// have the bits that the method returns for the undivided vector.
  ///
  /// The method is one that has partials (see Partial), in an order whose partials a GPU merges: not serial
  /// and not prefix. fixed_point needs options.grid; as for gpu::reduce, a sum that overflows it is NaN.
  /// Promise: Method::promise, whatever the number of ranks. Error bound: Method::bound for the undivided
  /// vector.
  ///
  /// Complexity: the vector is cut into at most 1024 tiles, whose number of leaves is a power of two. A tile
  /// that is spread over ranks is sent to one of them, so that each rank has whole subtrees; an all-gather of
  /// their states, at most 2·log2(1024) + P per rank, follows. Orders of exact methods, fixed_point and
  /// extrema are free: they send no elements, and one state per rank.
  /// @throws Error and gpu::Error as the constructor does.
  static Plan reduce(const Method& method, const FormatInfo& input, std::size_t size, ncclComm_t comm,
                     Options options = {}) {
    return {planned(method, input, size, Layout::vector(size), options), comm};
  }

  /// Plans the reduction of the vectors of all ranks element by element: result i is the reduction, in rank
  /// order, of the elements i of all ranks. All results are written on all ranks.
  ///
  /// The bits are those of samesum::reduce, along the first axis, of the array whose row r is the vector of
  /// rank r; ncclAllReduce may return others for each number of ranks. Takes every deterministic method that
  /// accepts such a layout (Layout::axis). All ranks have vectors of n elements. `out` may be x itself, if
  /// both have the same format, but overlaps it in no other way.
  ///
  /// Complexity: an all-to-all, a reduction of n / P results per rank, and an all-gather, so each rank sends
  /// 2·(P - 1)/P of a vector, as in a ring. Chunks of the vector overlap: one is sent to its ranks and one
  /// from them, in one group of NCCL, while the one between them is reduced.
  /// @throws Error and gpu::Error as the constructor does.
  static Plan all_reduce(const Method& method, const FormatInfo& input, std::size_t n, ncclComm_t comm,
                         Options options = {}, std::size_t chunk_bytes = default_chunk_bytes);

  /// Plans the same reduction, of which each rank keeps a block of the results: this rank `results` of them,
  /// after those of the ranks before it. Together the blocks have n results. `out` overlaps no element of an
  /// input.
  /// @throws Error and gpu::Error as the constructor does, and Error if the blocks have not n results.
  static Plan reduce_scatter(const Method& method, const FormatInfo& input, std::size_t n,
                             std::size_t results, ncclComm_t comm, Options options = {},
                             std::size_t chunk_bytes = default_chunk_bytes);

  /// Enqueues the call with the addresses that it was planned with.
  /// @throws std::invalid_argument if an argument is invalid.
  /// @throws Error and gpu::Error, which name the call that failed.
  void enqueue(cudaStream_t stream = nullptr);
  /// Enqueues the call on x, which has the format and the number of elements of the plan. Errors: as above.
  void enqueue(Values x, Results out, cudaStream_t stream = nullptr) { enqueue(x, {}, out, stream); }
  /// Enqueues the call on two inputs of the same format and size, as on one input.
  void enqueue(Values x, Values y, Results out, cudaStream_t stream = nullptr);

  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  class Work;

 private:
  explicit Plan(std::unique_ptr<Work> work);
  /// A call whose data are not known yet.
  static Call planned(const Method& method, const FormatInfo& input, std::size_t size, Layout layout,
                      const Options& options) {
    const Values x{input, nullptr, size};
    return {.method = &method,
            .x = x,
            .y = method.inputs == 2 ? x : Values{},
            .layout = layout,
            .out = {method.result_format(input), nullptr, 0},
            .options = options};
  }
  std::unique_ptr<Work> work_;
};

// --- calls that wait for the stream ------------------------------------------------------------------------
// Each makes a plan, enqueues its call, and waits for it.

/// Runs a call, as Plan does.
/// @throws Error and gpu::Error as the plan does, and Error on all ranks if an argument of any rank is
///   invalid.
void run(const Call& call, ncclComm_t comm, cudaStream_t stream = nullptr);

/// Reduces the vector that the blocks of all ranks form, in rank order, into `out` on all ranks. Otherwise as
/// Plan::reduce. Errors: as for `run`.
inline void reduce(const Method& method, Values x, Values y, Results out, ncclComm_t comm,
                   cudaStream_t stream = nullptr, Options options = {}) {
  run({.method = &method, .x = x, .y = y, .layout = Layout::vector(x.size), .out = out, .options = options},
      comm, stream);
}
/// Reduces one input.
inline void reduce(const Method& method, Values x, Results out, ncclComm_t comm,
                   cudaStream_t stream = nullptr, Options options = {}) {
  reduce(method, x, Values{}, out, comm, stream, options);
}

/// Reduces the vectors of all ranks element by element, as Plan::all_reduce. Errors: as for `run`.
void all_reduce(const Method& method, Values x, Values y, Results out, ncclComm_t comm,
                cudaStream_t stream = nullptr, Options options = {});
/// Reduces one input.
inline void all_reduce(const Method& method, Values x, Results out, ncclComm_t comm,
                       cudaStream_t stream = nullptr, Options options = {}) {
  all_reduce(method, x, Values{}, out, comm, stream, options);
}

/// Reduces the vectors of all ranks element by element, and leaves each rank with a block of the results: as
/// many as its `out` takes, as Plan::reduce_scatter. Errors: as for `run`.
void reduce_scatter(const Method& method, Values x, Values y, Results out, ncclComm_t comm,
                    cudaStream_t stream = nullptr, Options options = {});
/// Reduces one input.
inline void reduce_scatter(const Method& method, Values x, Results out, ncclComm_t comm,
                           cudaStream_t stream = nullptr, Options options = {}) {
  reduce_scatter(method, x, Values{}, out, comm, stream, options);
}

}  // namespace samesum::nccl
