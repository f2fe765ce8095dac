/// Partial sums that can be filled, serialised and merged.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "samesum/bound/height.hpp"
#include "samesum/format/value.hpp"

namespace samesum {

/// A partial sum that can be filled in parts, serialised, and merged elsewhere. It holds the state of one of
/// the accumulators plain, kahan, neumaier and double_word in one format, and whether it is empty.
///
/// The bits of the result depend on which states are merged, and in which order. Those of `Exact` do not.
class State {
 public:
  /// Creates an empty state. `name` is an accumulator and a format, such as "kahan/fp32".
  /// @throws std::invalid_argument if there is no such accumulator or format.
  explicit State(std::string_view name);

  /// Adds the elements of x. Each element is rounded once to the format; the elements are summed in order,
  /// and their sum is merged into the state.
  /// @throws std::invalid_argument if x is null but not empty, is misaligned, or has an unknown format.
  /// @throws std::length_error if the state would have 2^64 elements or more.
  void add(Values x);
  /// Merges another state into this one by the merge of the accumulator.
  /// @throws std::invalid_argument if the states have different names.
  /// @throws std::length_error if the states together have 2^64 elements or more.
  void merge(const State& other);

  /// Accumulator and format, such as "kahan/fp32".
  const std::string& name() const;
  bool empty() const { return count_ == 0; }
  /// Number of elements.
  std::uint64_t count() const { return count_; }
  /// Returns the sum in the format of the state, +0 if the state is empty.
  Number result() const;
  /// Returns a rigorous bound on |result - sum of the elements as given|, rounded up. It is infinite if an
  /// overflow on the way cannot be excluded. `magnitudes` is at least Σ|x| over the elements as given.
  /// @throws std::invalid_argument if magnitudes is negative.
  double bound(double magnitudes) const;

  /// Returns the state as bytes, little-endian: name, count, height, whether elements were rounded, and the
  /// numbers of the accumulator.
  std::vector<std::byte> serialise() const;
  /// Restores a state from the bytes that `serialise` returned.
  /// @throws std::invalid_argument if the bytes are not a serialised state.
  static State deserialise(std::span<const std::byte> bytes);

 private:
  struct Kind;
  static const std::vector<Kind>& kinds();

  const Kind* kind_;
  std::uint64_t count_ = 0;
  Height height_;
  bool rounded_ = false;             // whether an element had a format that this one does not hold
  std::array<double, 2> numbers_{};  // an accumulator has at most two, and each is a double
};

}  // namespace samesum
