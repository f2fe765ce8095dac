/// Exact reductions: the terms that each operation adds, and the state of a result.
#pragma once

#include <cstring>

#include "samesum/base/serial_form.hpp"
#include "samesum/operation/exact_terms.hpp"
#include "samesum/operation/operations.hpp"

namespace samesum {

/// Converts the ddof of an exact variance, a whole number, to an integer. Saturates: any larger value leaves
/// nothing to divide by.
inline std::uint64_t whole(double ddof) {
  return ddof < 0x1p64 ? static_cast<std::uint64_t>(ddof) : std::numeric_limits<std::uint64_t>::max();
}

/// What an exact reduction adds, and what it computes from the sums: the sum, the mean, or mean and variance.
struct ExactKind {
  Term term = Term::element;
  bool mean = false, moments = false;
};

/// The exact sums for one result.
struct ExactBatchState {
  ExactTerms terms, squares;  ///< squares: only for moments

  void merge(const ExactBatchState& other) {
    terms.merge(other.terms);
    squares.merge(other.squares);
  }
  /// Writes result `at`, the result for n elements, to `out` in the given format.
  void finish(ExactKind kind, const FormatInfo& format, std::uint64_t n, double ddof, std::size_t at,
              void* out) const {
    const auto write = [&](std::size_t place, Number x) {
      std::memcpy(static_cast<std::byte*>(out) + place * format.bytes, &x.bits, format.bytes);
    };
    if (kind.moments) {
      const auto [mean, variance] = exact_moments(terms, squares, n, whole(ddof), format);
      write(2 * at, mean);
      write(2 * at + 1, variance);
    } else if (kind.mean && n == 0) {
      write(at, {&format, format.canonical_nan});
    } else {
      write(at, terms.quotient(format, kind.mean ? n : 1));
    }
  }
};

/// The sums of an ExactBatchState as digits, in which they travel between backends.
struct ExactDigits {
  ExactTerms::Digits terms{}, squares{};
  std::uint64_t flags = 0;

  ExactDigits() = default;
  explicit ExactDigits(const ExactBatchState& state)
      : terms{state.terms.digits()}, squares{state.squares.digits()}, flags{state.terms.flags()} {}
  ExactBatchState state() const {
    const auto of_terms = static_cast<std::uint32_t>(flags);
    return {{terms, of_terms}, {squares, of_terms}};
  }
  void merge(const ExactDigits& other) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      terms[i] += other.terms[i];
      squares[i] += other.squares[i];
    }
    propagate_carries(terms.data(), ExactTerms::digit_count);
    propagate_carries(squares.data(), ExactTerms::digit_count);
    flags |= other.flags;
  }
};

/// Serialises the digits: equal sums give equal bytes.
void write_digits(ExactDigits digits, ExactKind kind, SerialWriter& out);
/// Restores digits. Returns false if no elements have such sums.
bool read_digits(SerialReader& in, ExactKind kind, ExactDigits& digits);

/// Derives what an operation adds from its reducer.
template <class Operation> constexpr ExactKind kind_of() {
  if constexpr (Operation::has_accumulator) {
    constexpr TermReducer<Plain, fp64> reducer = Operation::template reducer<Plain, fp64>({});
    return {reducer.term, reducer.mean, false};
  } else {
    return {Term::element, false, true};
  }
}
template <class Operation> inline constexpr ExactKind exact_kind = kind_of<Operation>();

}  // namespace samesum
