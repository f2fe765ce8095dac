/// The table of inner loops, which are compiled once per instruction set. The headers in kernels/ say what
/// each computes.
#pragma once

#include <tuple>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/backend/cpu/kernels/by_key.hpp"
#include "samesum/backend/cpu/kernels/exact.hpp"
#include "samesum/backend/cpu/kernels/grid.hpp"
#include "samesum/backend/cpu/kernels/integers.hpp"
#include "samesum/backend/cpu/kernels/leaves.hpp"
#include "samesum/backend/cpu/kernels/prefixes.hpp"
#include "samesum/backend/cpu/kernels/rolling.hpp"
#include "samesum/backend/cpu/kernels/selection.hpp"
#include "samesum/backend/cpu/kernels/softmax.hpp"
#include "samesum/backend/cpu/loops/column_leaf.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/operation/operations.hpp"
#include "samesum/operation/scaled_squares.hpp"
#include "samesum/order/orders.hpp"
#include "samesum/window/compact_exact.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum::cpu {

/// Whether an order consists of leaves that these loops compute.
template <class Order> inline constexpr bool has_leaves = requires { Order::Shape::rows; };

/// Whether there is a loop for elements of format T. Elements of other formats are first rounded to F, leaf
/// by leaf, into the first-level cache: loops for them would lengthen compilation by half.
template <class Order, class T, class F>
inline constexpr bool has_loop =
    Order::Shape::leaf == unbounded || can_read<T, F> || std::is_same_v<T, CarrierOf<F>>;

/// The loops of one format: for leaves with accumulators in it, and for exact sums of elements in it.
struct Kernels {
  /// By order, accumulator and format of the elements; null if has_loop is false.
  SumLeaves sum_leaves[Orders::size][Accumulators::size][Formats::size];
  /// By order, accumulator and format of the elements, for methods with batches; null if has_loop is false.
  SumColumns sum_columns[Orders::size][Accumulators::size][Formats::size];
  AddExactly add_exactly;
  AddSelected add_selected;
  SumExactly sum_rows_exactly[exactly_summed];  ///< elements have the format
  SumExactly sum_columns_exactly[exactly_summed];
  RoundRows round_rows;                     ///< elements have the format; for fp32 and fp64 only
  ScanExactly scan_exactly[Formats::size];  ///< by format of the elements; to fp32 and fp64 only
  ScanNearly scan_nearly[Formats::size];    ///< likewise
  WriteTerms write_terms[Formats::size];    ///< by format of the elements
  KeepSelected keep_selected;               ///< elements have the format
  WriteSquares write_squares[Formats::size];
  SumLeaves sum_squares[Orders::size];  ///< plain sums of numbers of the carrier
  SumTerms sum_terms[Formats::size];    ///< adds in the order `tree`, as the next three do
  SumMiddling sum_middling[Formats::size];
  SumRows sum_rows[Formats::size];  ///< adds with the accumulator `plain`
  LeafMoments leaf_moments[Formats::size];
  RowMoments row_moments[Formats::size];
  LeafProduct leaf_product;    ///< elements have the format; for fp32 and fp64 only
  LeafProducts leaf_products;  ///< elements have the format; for fp32 and fp64 only
  LargestKey largest_key[Formats::size];
  FindKey find_key[Formats::size];
  LargestKeys largest_keys[Formats::size];
  std::tuple<SoftmaxLoops<fp32>, SoftmaxLoops<fp64>> softmax;  ///< elements have the format F
  ScanTile scan_tile[Accumulators::size];
  ScanColumns scan_columns[Accumulators::size];
  LargestMagnitude largest_magnitude;  ///< for fp64 only, as the next one
  AddSlices add_slices;
  RoundToGrid round_to_grid;  ///< for fp32 and fp64 only
  RollExactly roll_exactly;   ///< for fp64 only, as the next three
  RollInWords roll_in_words;
  RoundMeans round_means;
  HasSpecial has_special;
  SumUnits sum_units;                    ///< elements have the format; for fp32 and fp64 only
  LargestBits largest_bits;              ///< elements have the format
  SumColumnsOnGrid sum_columns_on_grid;  ///< elements have the format
  SumUnitRows sum_unit_rows;             ///< elements have the format
  RoundUnits round_units;                ///< to the format
  AddUnitRows add_unit_rows;             ///< elements have the format
  SumRowsInTurn sum_rows_in_turn;
  IntegerLoops integers[IntegerTypes::size];  ///< for fp64 only
};

template <InstructionSet set, std::size_t index> const Kernels& kernels_of();

/// The loops of the format with this index for the instruction set in use.
const Kernels& kernels(std::size_t format);

}  // namespace samesum::cpu
