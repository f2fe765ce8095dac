/// The inner loops: what is compiled once for each instruction set.
#pragma once

#include <utility>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/backend/cpu/instruction_set.hpp"
#include "samesum/operation/operations.hpp"
#include "samesum/operation/scaled_squares.hpp"
#include "samesum/order/orders.hpp"

namespace samesum::cpu {

/// Writes the states of the leaves of n >= 1 elements.
using SumLeaves = void (*)(const void* x, std::size_t n, void* states);

/// Sums in fp64, one a column, as three words each that together have lost nothing.
struct Expansions {
  static constexpr std::size_t words = 3, columns = 8;
  double word[words][columns] = {};
};

/// Adds elements from the first on, and says how many: it stops before those that the words would not hold.
/// n is a multiple of exact_step.
using AddExactly = std::size_t (*)(Expansions& sum, const void* x, std::size_t n);
inline constexpr std::size_t exact_step = 64;
inline constexpr std::size_t exact_block = 2048;  ///< so many at a time are taken or not

/// Writes the terms of n elements, of pairs of them for products, as numbers of the carrier; where `low` is
/// not null, also their second words.
using WriteTerms = void (*)(Term term, const void* x, const void* y, std::size_t n, void* high, void* low);

/// Writes the squares of the first kind (scaled_squares.hpp) of n elements, as numbers of the carrier. Says
/// whether there are others, and only then writes these too.
using WriteSquares = bool (*)(const void* x, std::size_t n, void* middling, void* big, void* small);

/// Writes the plain sums of terms of whole leaves, and says of how many elements that is; and likewise of
/// squares of the first kind, 0 where there are others.
using SumTerms = std::size_t (*)(Term term, const void* x, const void* y, std::size_t n, void* states);
using SumMiddling = std::size_t (*)(const void* x, std::size_t n, void* states);

/// Writes the states of `count` rows of n elements, at least one and at most a leaf, `pitch` elements apart.
using SumRows = void (*)(const void* x, std::size_t pitch, std::size_t n, std::size_t count, void* states);

/// Writes mean and variance of each lane of a whole leaf of the order `tree`.
using LaneMoments = void (*)(const void* x, void* means, void* variances);

/// The largest key (extremum.hpp) of n elements, where -0 is +0 if `zeros_are_equal`; and the first element
/// that has a key, n where none has.
using LargestKey = std::uint64_t (*)(const void* x, std::size_t n, bool smallest, bool zeros_are_equal);
using FindKey = std::size_t (*)(const void* x, std::size_t n, bool smallest, std::uint64_t key);

/// Of rows of softmax in one format: see softmax_loops.hpp. Null for formats that have none.
struct SoftmaxLoops {
  float (*largest)(const void* x, std::size_t n);
  void (*exponentials)(const void* x, std::size_t n, float largest, float* e);  ///< e^(x - largest)
  /// Of at most one leaf, in the order `tree` by plain fp32, and the sum.
  float (*sum_exponentials)(const void* x, std::size_t n, float largest, float* e);
  void (*scale)(const float* e, std::size_t n, float factor, void* y);  ///< e·factor
  void (*scaled_exponentials)(const void* x, std::size_t n, float largest, float factor, void* y);
  void (*shift)(const void* x, std::size_t n, float largest, float log_sum, void* y);
  void (*online_leaf)(const void* x, std::size_t n, float* state);  ///< the two numbers of OnlineSoftmax
};

/// Whether sums in that order are made of leaves that loops compute.
template <class Order> inline constexpr bool has_leaves = requires { Order::Shape::rows; };

/// Whether a loop reads elements of format T. Elements of other formats are rounded to F first, leaf by leaf,
/// into the first-level cache: a loop for each would take half as long again to compile.
template <class Order, class T, class F>
inline constexpr bool has_loop =
    Order::Shape::leaf == unbounded || can_read<T, F> || std::is_same_v<T, CarrierOf<F>>;

/// The loops of one format: leaves with accumulators in it, exact sums of elements in it.
struct Kernels {
  /// By format of the elements; null where has_loop says no.
  SumLeaves sum_leaves[Orders::size][Accumulators::size][Formats::size];
  AddExactly add_exactly;
  WriteTerms write_terms[Formats::size];  ///< by format of the elements
  WriteSquares write_squares[Formats::size];
  SumLeaves sum_squares[Orders::size];  ///< of numbers of the carrier, plain
  SumTerms sum_terms[Formats::size];    ///< in the order `tree`, as the next three
  SumMiddling sum_middling[Formats::size];
  SumRows sum_rows[Formats::size];  ///< plain
  LaneMoments lane_moments[Formats::size];
  LargestKey largest_key[Formats::size];
  FindKey find_key[Formats::size];
  SoftmaxLoops softmax;
};

template <InstructionSet set, std::size_t index> const Kernels& kernels_of();

/// Those in use.
template <std::size_t index> const Kernels& kernels() {
  const Kernels* found = nullptr;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const InstructionSet set = instruction_set();
    static_cast<void>(
        ((set == instruction_sets[i] && (found = &kernels_of<instruction_sets[i], index>(), true)) || ...));
  }
  (std::make_index_sequence<instruction_sets.size()>{});
  return *found;
}

}  // namespace samesum::cpu
