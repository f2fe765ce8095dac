/// The ranks of a communicator: their agreement on a plan.
#pragma once

#include <string>
#include <vector>

#include "samesum/communicator/agreement.hpp"
#include "samesum/nccl.hpp"

namespace samesum::nccl {

/// Throws Error if a NCCL call has returned an error code.
void check(ncclResult_t code, const char* call);

/// What NCCL knows about a communicator.
class Ranks {
 public:
  /// @throws Error if comm is null.
  explicit Ranks(ncclComm_t comm);

  ncclComm_t comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::size_t me() const { return static_cast<std::size_t>(rank_); }
  std::size_t count() const { return static_cast<std::size_t>(size_); }
  /// Throws std::invalid_argument if the current device is another than that of comm.
  void check_device() const;

  /// Gathers a number of each rank. Throws Error on all ranks if one of them reports an error, or if their
  /// calls differ. Waits for the other ranks. Works whatever the current device is, and without memory on the
  /// device.
  std::vector<std::uint64_t> agree(const Report& mine, std::uint64_t number = 0) const;

 private:
  ncclComm_t comm_;
  int rank_ = 0, size_ = 1, device_ = 0;
};

/// Describes a call of a function with a method, for `agree`.
std::string description(std::string_view function, const Method& method, const FormatInfo& input,
                        const Options& options);

}  // namespace samesum::nccl
