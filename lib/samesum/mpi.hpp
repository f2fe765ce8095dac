/// Public interface for vectors that are spread over the ranks of an MPI communicator, available if the
/// library was built with MPI: reductions that return the bits of the undivided vector, for any number of
/// ranks.
///
/// Every call is collective: all ranks of `comm`, an intracommunicator, make it, with the same method,
/// options and shapes. The backend and the number of threads may differ between ranks; ranks that share a
/// machine pass their share of its processors, since options.threads = 0 means all. A call sends its
/// messages in a duplicate of `comm`, which its first call makes and which is freed with `comm`, so they
/// meet no message of the caller. Data are in host memory; a partial of the backend "cuda" also reads
/// contiguous elements in the memory of a GPU.
///
/// options.where and skip_nan leave out elements, for one vector and for calls on arrays, by methods that
/// return no index: each rank has flags for its own elements, or none, and the result has the bits of the
/// undivided elements that take part.
///
/// Errors are collective, too. If the arguments of one rank are invalid, if its memory does not suffice, if
/// ranks make different calls or have different versions of samesum, if a state is damaged on its way, or if
/// a sum overflows its grid, then all ranks throw Error with one message, which names the rank. (A rank that
/// has no memory for the message either throws std::bad_alloc.) MPI's own errors go to the error handler of
/// `comm`, which ends the job unless the caller has set another one; with MPI_ERRORS_RETURN the rank throws
/// Error.
#pragma once

#include <mpi.h>

#include <functional>

#include "samesum/samesum.hpp"

namespace samesum::mpi {

/// Thrown on all ranks if a call fails on one; what() names the rank, the argument and the remedy.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// --- one vector over all ranks -----------------------------------------------------------------------------

/// Reduces the vector that the blocks of all ranks form, in rank order, and returns the result on all ranks:
/// the bits that the method returns for the undivided vector.
///
/// Blocks may have any lengths, also none; elements, any formats that the method accepts. The method is one
/// that has partials (see Partial), and fixed_point needs options.grid. Promise: Method::promise, whatever
/// the number of ranks. Error bound: Method::bound for the undivided vector.
///
/// Complexity: an all-reduce of 24 bytes, a scan of 8, ⌈log2 P⌉ messages with a partial, and a broadcast of
/// the result. In the order serial, P - 1 messages one after another, each to the next rank, which only then
/// adds its block.
/// @throws Error on all ranks if an argument of any rank is invalid, or if a sum overflows options.grid.
///
/// With two inputs, which have the same format and size, it is that of both, for example their dot product.
Number reduce(const Method& method, Values x, Values y, MPI_Comm comm, Options options = {});
/// Reduces one input.
inline Number reduce(const Method& method, Values block, MPI_Comm comm, Options options = {}) {
  return reduce(method, block, Values{}, comm, options);
}

/// Runs a call on arrays whose reduced axis is cut into blocks, one per rank: rows whose columns are spread
/// over ranks, for example. Writes the results on all ranks.
///
/// All ranks have the same number of results; the elements per result (layout.n, or the lengths of the
/// segments) may differ. Each result has the bits of the same reduction of its undivided elements. The
/// messages carry one partial per result: of few elements they are about as long as the elements.
/// @throws Error as for one vector.
void run(const Call& call, MPI_Comm comm);
/// Reduces x, in the given layout, into `out`, as `run`.
inline void reduce(const Method& method, Values x, Layout layout, Results out, MPI_Comm comm,
                   Options options = {}) {
  run({.method = &method, .x = x, .layout = layout, .out = out, .options = options}, comm);
}
/// Reduces two inputs of the same format and size, as for one input.
inline void reduce(const Method& method, Values x, Values y, Layout layout, Results out, MPI_Comm comm,
                   Options options = {}) {
  run({.method = &method, .x = x, .y = y, .layout = layout, .out = out, .options = options}, comm);
}

/// Reduces a vector of which `fill` adds the next `size` elements, those of this rank, to a partial: portions
/// of a file, for example. Writes the result to `out` on all ranks.
/// @throws Error as for one vector, and if `fill` throws on any rank or adds another number of elements.
void reduce(const Method& method, std::uint64_t size, const std::function<void(Partial&)>& fill, Results out,
            MPI_Comm comm, Options options = {});

// --- element by element ------------------------------------------------------------------------------------

/// Reduces the vectors of all ranks element by element: result i is the reduction, in rank order, of the
/// elements i of all ranks. Writes all results to `out` on all ranks.
///
/// The bits are those of samesum::reduce, along the first axis, of the array whose row r is the vector of
/// rank r; MPI_Allreduce with MPI_SUM may return others for each number of ranks. Takes every deterministic
/// method that accepts such a layout. All ranks pass vectors of one format and length n; `out` has n
/// results, and overlaps no input.
///
/// Complexity: an all-to-all and an all-gather, so each rank sends 2·(P - 1)/P of a vector, as in a ring, and
/// reduces n / P results. Uses a buffer of at most 2^24 elements per input.
/// @throws Error on all ranks if an argument of any rank is invalid, or if a sum overflows options.grid.
void all_reduce(const Method& method, Values x, Values y, Results out, MPI_Comm comm, Options options = {});
/// Reduces one input per rank.
inline void all_reduce(const Method& method, Values x, Results out, MPI_Comm comm, Options options = {}) {
  all_reduce(method, x, {}, out, comm, options);
}

/// Reduces the vectors of all ranks element by element, as all_reduce, and leaves each rank with a block of
/// the results: rank r has as many as its `out` takes, after those of the ranks before it. Together the
/// blocks have n results. `out` overlaps no element of an input. Uses two buffers of at most 2^24 elements
/// per input.
/// @throws Error as all_reduce does, and if the blocks have not n results.
void reduce_scatter(const Method& method, Values x, Values y, Results out, MPI_Comm comm,
                    Options options = {});
/// Reduces one input per rank.
inline void reduce_scatter(const Method& method, Values x, Results out, MPI_Comm comm, Options options = {}) {
  reduce_scatter(method, x, {}, out, comm, options);
}

// --- states in MPI's own collectives -----------------------------------------------------------------------

/// The type of an Exact in memory, for machines of one architecture.
MPI_Datatype exact_type();
/// The sum of exact states, commutative: `MPI_Allreduce(MPI_IN_PLACE, states, n, exact_type(), exact_sum(),
/// comm)` adds the states of all ranks, and the bits of their results do not depend on how MPI does that.
MPI_Op exact_sum();

/// Partials of one method whose order is free (exact, fixed_point, min, max, argmin, argmax) as elements of
/// MPI's collectives. All have the same size in bytes.
class PackedPartials {
 public:
  /// @throws std::invalid_argument if the method has no partials, or if they have no common size.
  explicit PackedPartials(const Method& method, std::optional<int> grid = {});
  ~PackedPartials();
  PackedPartials(const PackedPartials&) = delete;
  PackedPartials& operator=(const PackedPartials&) = delete;

  /// The type of one packed partial, of size() bytes.
  MPI_Datatype type() const { return type_; }
  /// The merging of neighbours. It is not commutative: MPI merges in rank order, so the partial of each rank
  /// begins where that of the rank before ends.
  MPI_Op merge() const { return merge_; }
  std::size_t size() const { return size_; }
  /// Returns the bytes of a partial of this method and grid.
  /// @throws std::invalid_argument for another method or grid.
  std::vector<std::byte> pack(const Partial& partial) const;
  /// Restores a partial.
  /// @throws std::invalid_argument if the bytes are damaged, or if partials that were merged were damaged or
  ///   no neighbours.
  Partial unpack(std::span<const std::byte> bytes) const;

 private:
  const Method& method_;
  std::optional<int> grid_;
  std::size_t size_;
  MPI_Datatype type_;
  MPI_Op merge_;
};

// --- agreement ---------------------------------------------------------------------------------------------

/// Runs work() on each rank, and throws on all ranks if it throws on one, or if `call`, a text that describes
/// what the ranks do together, differs between them.
/// @throws Error with the message of the lowest rank that failed, or with two different texts.
void together(MPI_Comm comm, std::string_view call, const std::function<void()>& work);

}  // namespace samesum::mpi
