/// Loops over leaves of a tree and over the terms of sums: sums, moments, products and extrema.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samesum/operation/term.hpp"

namespace samesum::cpu {

struct ColumnLeaf;

/// Writes the states of the leaves of n >= 1 elements.
using SumLeaves = void (*)(const void* x, std::size_t n, void* states);

/// Writes the terms of n elements, for products of n pairs, as numbers of the carrier; if `low` is not null,
/// also their second words.
using WriteTerms = void (*)(Term term, const void* x, const void* y, std::size_t n, void* high, void* low);

/// Writes the middling squares (scaled_squares.hpp) of n elements, as numbers of the carrier. Returns whether
/// there are big or small ones, and writes these only then.
using WriteSquares = bool (*)(const void* x, std::size_t n, void* middling, void* big, void* small);

/// Writes the plain sums of the terms of whole leaves, and returns the number of elements in these leaves.
using SumTerms = std::size_t (*)(Term term, const void* x, const void* y, std::size_t n, void* states);
/// Writes the plain sums of the middling squares of whole leaves, and returns the number of elements in these
/// leaves; 0 if there are big or small ones.
using SumMiddling = std::size_t (*)(const void* x, std::size_t n, void* states);

/// Writes the states of `count` rows of n elements each, at least one and at most a leaf; the rows are
/// `pitch` elements apart.
using SumRows = void (*)(const void* x, std::size_t pitch, std::size_t n, std::size_t count, void* states);

/// Writes the states of the columns of a leaf. `scratch` has room for scratch_states, aligned to 64 bytes.
using SumColumns = void (*)(Term term, const ColumnLeaf& leaf, void* scratch, void* states);

/// Writes the mean and variance of n >= 1 elements, at most a leaf of the order `tree`.
using LeafMoments = void (*)(const void* x, std::size_t n, void* mean, void* variance);
/// Writes the means and variances of `count` rows of n elements each, as SumRows.
using RowMoments = void (*)(const void* x, std::size_t pitch, std::size_t n, std::size_t count, void* means,
                            void* variances);
/// Writes two numbers whose product, times 2^exponent, is that of n elements, at most a leaf of the order
/// `tree`: the last merge is left to the caller. Returns false if an element is 0, subnormal, infinite or
/// NaN; then the product is not valid.
using LeafProduct = bool (*)(const void* x, std::size_t n, void* numbers, std::int64_t& exponent);

/// The product of a column: that of both numbers, times 2^exponent.
struct ColumnProduct {
  double number[2];  ///< numbers of the format
  std::int64_t exponent;
  bool is_valid;  ///< false if an element is 0, subnormal, infinite or NaN
};
/// Writes the products of the columns of a leaf. `scratch` has room for a number per column, in whole packs
/// of ColumnLeaf::least, and lane, aligned to 64 bytes.
using LeafProducts = void (*)(const ColumnLeaf& leaf, void* scratch, ColumnProduct* out);

/// Which elements have the largest keys (extremum.hpp).
struct KeyOrder {
  bool smallest;
  bool zeros_are_equal;  ///< whether -0 is taken as +0
  bool skip_nan;         ///< whether NaN has the key 0, that of no element
};
/// Returns the largest key of n >= 1 elements.
using LargestKey = std::uint64_t (*)(const void* x, std::size_t n, KeyOrder order);
/// Returns the index of the first element with that key, where zeros are equal; n if there is none.
using FindKey = std::size_t (*)(const void* x, std::size_t n, bool smallest, std::uint64_t key);
/// Writes the largest key of each column of a leaf.
using LargestKeys = void (*)(const ColumnLeaf& leaf, KeyOrder order, std::uint64_t* keys);

}  // namespace samesum::cpu
