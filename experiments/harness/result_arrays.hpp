/// The results of calls with many results: their errors, and whether all their bits are the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// The errors of the results of one call.
class ErrorsOfResults {
 public:
  void add(const Measurement& m);
  /// The measured fields of a row of kind "errors". There must be an error.
  Json values() const;

 private:
  std::vector<double> ulps_;
  std::size_t correct_ = 0;
  bool within_bound_ = true;
  double relative_ = 0, share_ = -1;  ///< the largest; -1: no result has a finite bound
};

/// The check that a row of kind "errors" violates, as a message. Empty if it passes, and for peers.
std::string complaint_about_errors(const Method& method, const Json& row);

/// Number of calls whose results differ from those of every earlier call.
class DistinctResults {
 public:
  void add(std::span<const std::byte> results);
  /// The measured fields of a row of kind "repeats". `forbids`: the weakest promise that a second result
  /// breaks.
  Json values(const Method& method, Promise forbids) const;

 private:
  std::vector<std::uint64_t> digests_;
};

/// The result at an index, as a number of the method's format.
Number number_at(const Method& method, std::span<const std::byte> results, std::size_t at);

}  // namespace samesum::harness
