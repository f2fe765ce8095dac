#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "samesum/bound/height.hpp"
#include "samesum/format/value.hpp"

namespace samesum {

/// A partial sum that travels: filled here, merged there, shipped as bytes in between. It holds what one of
/// the accumulators plain, kahan, neumaier, double_word holds in one format, and knows whether it is empty.
///
/// The bits of the result depend on which states were merged with which, and in what order. For a state that
/// does not depend on that, see `Exact`.
class State {
 public:
  /// "kahan/fp32". Throws std::invalid_argument for anything that is no accumulator and format.
  explicit State(std::string_view name);

  /// Sums x in turn, each element rounded once to the format, and merges that.
  void add(Values x);
  /// Merges by the accumulator's own rule. Throws std::invalid_argument where the names differ and
  /// std::length_error beyond 2^64 elements.
  void merge(const State& other);

  const std::string& name() const;
  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  /// +0 where empty.
  Number result() const;
  /// A rigorous bound on |result - sum of the elements as given|, rounded up, `magnitudes` at least Σ|x| over
  /// them; infinity if it cannot be excluded that a number on the way overflows. Throws std::invalid_argument
  /// for negative magnitudes.
  double bound(double magnitudes) const;

  /// Name, count, height, whether elements were rounded, and the state's numbers, little-endian.
  std::vector<std::byte> serialise() const;
  /// Throws std::invalid_argument where the bytes are not a serialised state.
  static State deserialise(std::span<const std::byte> bytes);

 private:
  struct Kind;
  static const std::vector<Kind>& kinds();

  const Kind* kind_;
  std::uint64_t count_ = 0;
  Height height_;
  bool rounded_ = false;             // an element came in a format that this one does not hold
  std::array<double, 2> numbers_{};  // every accumulator has at most two, and every format's are doubles
};

}  // namespace samesum
