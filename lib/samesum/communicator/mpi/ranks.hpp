/// The ranks of a communicator: messages of bytes between them, and agreement on errors.
#pragma once

#include "samesum/communicator/agreement.hpp"
#include "samesum/mpi.hpp"

namespace samesum::mpi {

/// Throws Error if an MPI call has returned an error code.
void check(const char* call, int code);

/// Returns a new type of that many bytes.
MPI_Datatype type_of_bytes(std::size_t bytes);

/// A duplicate of a communicator that only this library uses.
class Ranks {
 public:
  /// Makes the duplicate, or takes that of an earlier call.
  explicit Ranks(MPI_Comm of_user);

  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Sends bytes of any number, in pieces that every receiver has memory for.
  void send(std::span<const std::byte> bytes, int to) const;
  /// Receives the bytes that a rank sends; std::nullopt if they do not fit into memory, after all of them
  /// have arrived.
  std::optional<std::vector<std::byte>> receive(int from) const;
  /// Copies the bytes of `root` to those of all ranks, which have the same number.
  void broadcast(std::span<std::byte> bytes, int root) const;

  /// Throws Error on all ranks if one of them reports an error, or if their calls differ. Allocates nothing
  /// before that. Costs one all-reduce of 24 bytes if all is well. The first agreement of a call has the same
  /// form in every version of samesum.
  void agree(const Report& mine) const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

/// Runs the call that `call` returns, as mpi::run. What `call` throws is an error of this rank.
void run(const std::function<Call()>& call, MPI_Comm comm);

/// Describes a call of a function with a method, for `agree`.
std::string description(std::string_view function, const Method& method, const Options& options);

}  // namespace samesum::mpi
