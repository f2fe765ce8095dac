/// Loops of exact sums in a few doubles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samesum/operation/term.hpp"
#include "samesum/window/exponent_range.hpp"

namespace samesum::cpu {

/// Exact sums, one per column, each the unevaluated sum of three fp64 words.
struct Expansions {
  static constexpr std::size_t words = 3, columns = 8;
  double word[words][columns] = {};
  /// What the loop expects of the next block, from the last ones.
  struct Expected {
    bool one_word = true, two_windows = false;
    int top = 1, blocks_to_wait = 0;
  } expected;
};

/// Adds elements from the first on and returns how many: it stops before elements that the words cannot hold.
/// n is a multiple of exact_step.
using AddExactly = std::size_t (*)(Expansions& sum, const void* x, std::size_t n);
inline constexpr std::size_t exact_step = 64;
inline constexpr std::size_t exact_block = 2048;  ///< elements per block, which is added whole or not at all

/// Results of exact reductions, of n >= 1 terms each: rows of contiguous elements, or neighbouring columns.
struct ExactResults {
  const void *x, *y;  ///< the factors of products; otherwise y is x
  Term term;          ///< Term::element for moments
  std::size_t count;  ///< number of results, at least one
  std::size_t n;
  std::size_t pitch;  ///< elements between the first elements of two rows
  /// Whether sums of elements that one double does not hold may lack bits rather than take more time. Only
  /// for formats shorter than fp64.
  bool nearly = false;
};
/// The sums of a result, in three words each, the highest first; the third is below the last place of the
/// second. An exact sum of no other terms than -0 is -0.
struct ExactSums {
  double sum[3], square[3];
  /// Bounds of what the words lack: 0 for exact sums; infinite, or NaN, if the words say nothing.
  double error, square_error;
  /// The sum and its error count units of 2^exponent, the squares those of 2^(2·exponent). At least 0; sums
  /// that doubles hold have no other one.
  int exponent;
  ExponentRange terms;  ///< of the elements or products of this result, and perhaps of others

  /// Whether the words are the exact sum, apart from squares.
  bool is_exact() const { return error == 0 && exponent == 0; }
};
/// Writes the sums of each result.
using SumExactly = void (*)(const ExactResults& block, ExactSums* out);
/// Writes the exact sums, or means, of up to 64 rows of elements, each rounded once to their format. Returns
/// the set of rows, of which bit r is row r, whose results need other ways; all if rows are longer than a
/// block.
using RoundRows = std::uint64_t (*)(const ExactResults& block, bool mean, void* out);
/// The number of values of ExactlySummed.
inline constexpr std::size_t exactly_summed = 3;

/// Adds those elements of a block that take part, and increases `count` by their number. Returns n; 0, and
/// adds nothing, if the words cannot hold them. An element takes part if its flag is not 0 and, if
/// `skip_nan`, it is no NaN; then `where` may be null. Without both, all but -0 take part, which changes no
/// sum. n is a multiple of exact_step, and at most exact_block.
using AddSelected = std::size_t (*)(Expansions& sum, const void* x, const std::uint8_t* where, bool skip_nan,
                                    std::size_t n, std::size_t& count);

}  // namespace samesum::cpu
