/// The ranks on which the tool runs if an MPI launcher has started it several times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "samesum/catalogue/partial.hpp"

namespace samesum::harness {

/// All ranks of a run. Errors are collective: all ranks throw one message.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Runs work() on this rank. Throws on all ranks if it throws on one.
  virtual void together(const std::string& what, const std::function<void()>& work) const = 0;
  /// Returns the sum of a number over all ranks.
  virtual std::uint64_t total(std::uint64_t number) const = 0;
  /// Returns the sum of the vector of which `fill` adds the next `count` elements to a partial.
  virtual Number sum(const Method& method, std::uint64_t count, const std::function<void(Partial&)>& fill,
                     const Options& options) const = 0;
  /// Ends all ranks, with this exit code.
  [[noreturn]] virtual void abort(int code) const = 0;
};

/// Starts MPI if a launcher has started this process, which its environment variables tell, and returns the
/// ranks; nullptr if there is one process, or if the tool was built without MPI.
std::unique_ptr<Ranks> start_ranks();

}  // namespace samesum::harness
