/// Aggregate states of the C interface: flat sums of elements that arrive in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/call/values.hpp"

namespace samesum::c {

/// What a state adds, and how.
enum class Form : std::uint8_t { exact = 1, subtractable = 2, fixed_point = 3 };

/// The beginning of each state, and of each kind of state.
struct StateHeader {
  static constexpr std::uint32_t valid =
      0x31545353;  ///< "SST1", in memory; the layout of states has version 1
  std::uint32_t mark;
  std::int16_t grid;  ///< of fixed_point; otherwise 0
  Form form;
  std::uint8_t format;  ///< format index
  friend bool operator==(const StateHeader&, const StateHeader&) = default;
};

/// The exact sum.
struct ExactSum {
  static constexpr Form form = Form::exact;
  StateHeader header;
  Exact sum = {};

  void add(Values x);
  template <class T> void add_one(T x) { sum.add(x); }
  void merge(const ExactSum& other);
  bool is_empty() const { return sum.empty(); }
  /// Returns the sum divided by `divisor`, rounded once.
  Number result(const FormatInfo& format, std::uint64_t divisor) const;
  std::vector<std::byte> serialise() const { return sum.serialise(); }
  void deserialise(std::span<const std::byte> bytes) { sum = Exact::deserialise(bytes); }
};

/// How many elements of each kind have been added, less those that have been subtracted.
struct Counts {
  std::int64_t elements = 0, other_than_minus_zero = 0, nan = 0, plus_infinity = 0, minus_infinity = 0;

  /// Visits pairs of a count and the same one of `other`.
  template <class Visit> void with(const Counts& other, Visit visit) {
    visit(elements, other.elements);
    visit(other_than_minus_zero, other.other_than_minus_zero);
    visit(nan, other.nan);
    visit(plus_infinity, other.plus_infinity);
    visit(minus_infinity, other.minus_infinity);
  }
  std::int64_t specials() const { return nan + plus_infinity + minus_infinity; }
};

/// The exact sum of elements that may be subtracted again. `Exact` combines its flags by bitwise or, which
/// cannot be undone, so here they are counts. Subtracting an element adds its negative to the digits.
struct SubtractableSum {
  static constexpr Form form = Form::subtractable;
  static constexpr std::string_view name = "exact_subtractable";  ///< in serialised states
  StateHeader header;
  Counts counts = {};
  Exact finite = {};  ///< the digits of the sum of the finite elements; its flags have no meaning

  void add(Values x) { add(x, 1); }
  void subtract(Values x) { add(x, -1); }
  template <class T> void add_one(T x) { add(x, 1); }
  template <class T> void subtract_one(T x) { add(x, -1); }
  void merge(const SubtractableSum& other) { merge(other, 1); }
  void unmerge(const SubtractableSum& other) { merge(other, -1); }
  bool is_empty() const { return counts.elements == 0; }
  Number result(const FormatInfo& format, std::uint64_t divisor) const;
  std::vector<std::byte> serialise() const;
  void deserialise(std::span<const std::byte> bytes);

 private:
  /// Counts an element, `sign` times, and adds it to the digits if it is finite.
  template <class T> void add(T x, int sign) {
    const BitsOf<T> bits = to_bits(x), magnitude = BitsOf<T>(bits & ~Format<T>::sign_bit);
    counts.elements += sign;
    if (bits != Format<T>::sign_bit) counts.other_than_minus_zero += sign;
    if (magnitude > Format<T>::infinity)
      counts.nan += sign;
    else if (magnitude == Format<T>::infinity)
      (bits == magnitude ? counts.plus_infinity : counts.minus_infinity) += sign;
    else
      finite.add(sign > 0 ? x : from_bits<T>(BitsOf<T>(bits ^ Format<T>::sign_bit)));
  }
  template <class T> void add_block(std::span<const T> x, int sign);
  void add(Values x, int sign);
  void merge(const SubtractableSum& other, int sign);
  void add_counts(const Counts& other, int sign);
  void check_room(std::size_t n) const;
  Exact state() const;
};

/// The sum of multiples of 2^grid.
struct GridState {
  static constexpr Form form = Form::fixed_point;
  StateHeader header;
  std::uint64_t n = 0;  ///< number of elements
  GridSum sum = {};

  void add(Values x);
  template <class T> void add_one(T x) {
    add_count(1);
    sum.add(x, header.grid);
  }
  void merge(const GridState& other);
  bool is_empty() const { return n == 0; }
  /// @throws std::overflow_error if the sum overflows the grid.
  Number result(const FormatInfo& format, std::uint64_t divisor) const;
  std::vector<std::byte> serialise() const;
  void deserialise(std::span<const std::byte> bytes);

 private:
  void add_count(std::uint64_t more);
};

/// Most bytes of a serialised state.
std::size_t serialised_bytes(const StateHeader& kind);

}  // namespace samesum::c
