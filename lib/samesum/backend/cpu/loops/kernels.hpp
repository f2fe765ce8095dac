/// The inner loops, which are compiled once per instruction set.
#pragma once

#include <tuple>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/backend/cpu/loops/column_leaf.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/operation/operations.hpp"
#include "samesum/operation/scaled_squares.hpp"
#include "samesum/order/orders.hpp"
#include "samesum/window/compact_exact.hpp"
#include "samesum/window/int128.hpp"

namespace samesum::cpu {

/// Writes the states of the leaves of n >= 1 elements.
using SumLeaves = void (*)(const void* x, std::size_t n, void* states);

/// Exact sums, one per column, each the unevaluated sum of three fp64 words.
struct Expansions {
  static constexpr std::size_t words = 3, columns = 8;
  double word[words][columns] = {};
  /// What the loop expects of the next block, from the last ones.
  struct Expected {
    bool one_word = true, two_windows = false;
    int highest = 0, blocks_to_wait = 0;
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
};
/// The exact sums of a result, in three words each, the highest first; the third is below the last place of
/// the second. A sum of no other terms than -0 is -0.
struct ExactSums {
  double sum[3], square[3];
  bool known;              ///< false if the words could not hold the sums; then they are not valid
  bool squares_are_exact;  ///< otherwise their sum has an error below 2^-105 of its value
  /// The elements or products of this result, and perhaps of others, are multiples of 2^lowest and below
  /// 2^top.
  int top, lowest;
};
/// Writes the sums of each result.
using SumExactly = void (*)(const ExactResults& block, ExactSums* out);
/// Writes the exact sums of rows of elements, each rounded once to their format. Stops before
/// the first block of rows whose terms no common window holds, and returns the number of rows written; 0 if
/// rows are longer than a block.
using RoundRows = std::size_t (*)(const ExactResults& block, void* out);
/// The number of values of ExactlySummed.
inline constexpr std::size_t exactly_summed = 3;

/// Writes the exact prefix sums of elements, each rounded once to the format, from the first on, and returns
/// of how many: it stops before a block whose sums are unknown. `before` is the exact sum of the elements
/// before them, in two words, and becomes that of all; if `is_end`, it becomes nothing that is defined once
/// all elements are done. No result may be subnormal or too large.
using ScanExactly = std::size_t (*)(const void* x, std::size_t n, bool exclusive, bool is_end,
                                    double (&before)[2], void* out);

/// Moves a window over elements, from the first on, and returns how many it has moved: it stops before a
/// block with elements that are not finite, or with sums that two words cannot hold. Each move adds an
/// element of `entering` to the sum, which has two words, and subtracts one of `leaving`. Writes the sum
/// after each move as a rounded number, `high`, and what that lacks, `low`, each in memory for n numbers,
/// rounded up to a multiple of 8.
using RollExactly = std::size_t (*)(const double* entering, const double* leaving, std::size_t n,
                                    double (&sum)[2], double* high, double* low);
/// Whether one of n numbers is -0, infinite or NaN.
using HasSpecial = bool (*)(const double* x, std::size_t n);

/// Writes the terms of n elements, for products of n pairs, as numbers of the carrier; if `low` is not null,
/// also their second words.
using WriteTerms = void (*)(Term term, const void* x, const void* y, std::size_t n, void* high, void* low);

/// Rows of elements of which some take no part: those whose flag is 0, and, if `skip_nan`, NaN.
struct SelectedRows {
  const void* x;
  const std::uint8_t* where;  ///< null if all flags are 1
  std::size_t pitch;          ///< elements, and flags, between rows
  std::size_t rows, count;    ///< at most 2^15 elements in all
  bool skip_nan;
  std::uint64_t stand_in;  ///< bits of what stands in for them
  static constexpr std::size_t pack = 32;
};
/// Copies the rows, one behind the other. Returns how many elements take part. If `counts` is not null, adds
/// the numbers of them in each column to it: integers as wide as the elements, with room for a multiple of
/// `pack`.
using KeepSelected = std::size_t (*)(const SelectedRows& rows, void* out, void* counts);
/// The same as AddExactly for at most one block of elements of which some take no part, and counts the
/// others. If `skip_nan`, `where` may be null.
using AddSelected = std::size_t (*)(Expansions& sum, const void* x, const std::uint8_t* where, bool skip_nan,
                                    std::size_t n, std::size_t& count);
inline constexpr std::size_t most_selected = std::size_t{1} << 15;

/// Writes the middling squares (scaled_squares.hpp) of n elements, as numbers of the carrier. Returns whether
/// there are big or small ones, and writes these only then.
using WriteSquares = bool (*)(const void* x, std::size_t n, void* middling, void* big, void* small);

/// Writes the plain sums of the terms of whole leaves, and returns the number of elements in these leaves.
/// SumMiddling sums middling squares, and returns 0 if there are others.
using SumTerms = std::size_t (*)(Term term, const void* x, const void* y, std::size_t n, void* states);
using SumMiddling = std::size_t (*)(const void* x, std::size_t n, void* states);

/// Writes the states of `count` rows of n elements each, at least one and at most a leaf; the rows are
/// `pitch` elements apart.
using SumRows = void (*)(const void* x, std::size_t pitch, std::size_t n, std::size_t count, void* states);

/// Writes the states of the columns of a leaf. `scratch` has room for scratch_states, aligned to 64 bytes.
using SumColumns = void (*)(Term term, const ColumnLeaf& leaf, void* scratch, void* states);

/// Writes the mean and variance of n >= 1 elements, at most a leaf of the order `tree`.
using LeafMoments = void (*)(const void* x, std::size_t n, void* mean, void* variance);
/// Writes two numbers whose product, times 2^exponent, is that of n elements, at most a leaf of the order
/// `tree`: the last merge is left to the caller. Returns false if an element is 0, subnormal, infinite or
/// NaN; then the product is not valid.
using LeafProduct = bool (*)(const void* x, std::size_t n, void* numbers, std::int64_t& exponent);

/// What LeafProduct returns, for one column.
struct ColumnProduct {
  double number[2];  ///< numbers of the format
  std::int64_t exponent;
  bool is_valid;
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
/// LargestKey returns the largest key of n >= 1 elements. FindKey returns the index of the first element with
/// that key, where zeros are equal, and n if there is none. LargestKeys writes the largest key of each
/// column.
using LargestKey = std::uint64_t (*)(const void* x, std::size_t n, KeyOrder order);
using FindKey = std::size_t (*)(const void* x, std::size_t n, bool smallest, std::uint64_t key);
using LargestKeys = void (*)(const ColumnLeaf& leaf, KeyOrder order, std::uint64_t* keys);

/// Scans the first n <= 4096 elements of a tile of the order prefix, numbers of the carrier. Writes the state
/// of the n elements, and the result of each prefix, after `carry`, the state of the elements before the
/// tile; null if there are none. The last result of a whole tile is that of other merges: the caller replaces
/// it.
using ScanTile = void (*)(const void* x, std::size_t n, const void* carry, void* results, void* state);

/// Neighbouring columns of a tile of the order prefix.
struct ScannedColumns {
  const void* x;             ///< the first elements
  WriteTerms read;           ///< rounds elements to numbers of the carrier; null if they are such numbers
  std::size_t bytes, pitch;  ///< per element; elements between rows
  std::size_t n, count;      ///< rows, at most 4096, and columns
  const void* carry;         ///< the states of the columns before the tile; null if there are none
  void* out;                 ///< the results of the first row
  std::size_t out_pitch;     ///< results between rows
  void* exclusive;           ///< null, or the results of an exclusive scan for the first row
  void *scratch, *numbers;   ///< room for scratch_states per column, aligned, and for 4 rows of numbers
  void* states;              ///< where the states of the columns go, unless this is null
  static constexpr std::size_t pack =
      16;  ///< `scratch` and `numbers` have room for a multiple of these columns
  static constexpr std::size_t scratch_states = 17;
};
/// Scans them as ScanTile scans one. In an exclusive scan the results of a row are written to the
/// next one, and those of the last row to `exclusive`.
using ScanColumns = void (*)(const ScannedColumns& columns);

/// Returns the largest bit pattern of |x| among n numbers: at least that of infinity if one is not finite.
using LargestMagnitude = std::uint64_t (*)(const double* x, std::size_t n);
/// Rounds n <= 2048 numbers x·scale once to integers, to nearest, ties to even, and adds these to
/// sums[0] + sums[1]·2^50 + sums[2]·2^100, whose first `slices` are used: 1 for integers of up to 2^50, 2 up
/// to 2^100, and 3 up to 2^126. No x·scale may underflow, unless it is below 1/2. If `low` is not null, the
/// numbers are the unevaluated sums of x and `low`, of which x is the nearest double.
using AddSlices = void (*)(const double* x, const double* low, std::size_t n, double scale, int slices,
                           std::int64_t* sums);

/// Rounds each of n numbers of one format once to a multiple of 2^grid, to nearest, ties to even; the numbers
/// 2^(grid + p - 1) and 2^(grid + p), where p is the precision, must be normal.
using RoundToGrid = void (*)(void* x, std::size_t n, int grid);

/// Neighbouring columns whose elements, or terms, are summed on grids.
struct GridColumns {
  static constexpr std::size_t most = 32, rows = 64;  ///< columns, and rows per block
  const void *x, *y;                                  ///< the first elements; y is null for one input
  Term term;
  WriteTerms read;       ///< writes the terms as doubles; null if elements and magnitudes are read in place
  std::size_t count, n;  ///< columns, 1 to `most`, and rows, at least one
  std::size_t pitch, bytes;                 ///< elements between rows, and their size
  static constexpr int largest_grid = 900;  ///< and -900 the smallest: beyond, the sums are not known
  bool is_given;
  int grid;                ///< the grid of all columns, if it is given; otherwise each column finds its own
  int word_bits, quantum;  ///< see found_grid
  std::uint32_t* marks;    ///< room for a number per block
};
/// The sum of a column: exact[0] + exact[1] + exact[2], which are multiples of the grid, plus units[0] +
/// units[1]·2^50 + units[2]·2^100 units of it.
struct GridColumnSum {
  double exact[3];
  std::int64_t units[3];
  std::uint64_t largest;  ///< bits of the largest magnitude, in the format of the elements or terms
  int grid;
  bool known;     ///< false if an element is not finite or too large; then the sums are not valid
  bool is_exact;  ///< whether all units are 0
};
/// Writes the sum of each column.
using SumColumnsOnGrid = void (*)(const GridColumns& columns, GridColumnSum* out);

/// The same as AddSlices for n <= 2048 elements of one format, integers of up to 2^50, and one slice, which
/// it returns.
using SumUnits = std::int64_t (*)(const void* x, std::size_t n, double scale);

/// Returns the largest bit pattern of |x| among n elements of one format, NaN and infinities included.
using LargestBits = std::uint64_t (*)(const void* x, std::size_t n);

/// Rows of one key: `count` rows of `inner` elements of one format, at any places of an array.
struct RowsOfKey {
  static constexpr std::size_t ahead = 4;   ///< this many indices behind the last one are read
  static constexpr std::size_t least = 16;  ///< smallest `inner`
  const void* x;
  const std::uint32_t* index;  ///< the row of x
  std::size_t count, inner;
};

/// How elements are rounded to integers.
struct GridOfRows {
  double scale;         ///< an element x becomes x·scale, which must not underflow unless it is below 1/2
  std::uint64_t limit;  ///< bit pattern of the number that |x| must stay below
  bool few;             ///< whether the integers have up to 2^51, else 2^62
  bool exactly;         ///< whether no rounding may change a number; then no x·scale may underflow
};
/// Writes the sums of columns of units. Returns false if that was impossible; then they do not count.
using SumUnitRows = bool (*)(const RowsOfKey& rows, const GridOfRows& grid, std::int64_t* sums);
/// Writes n sums of units as numbers sum·unit of one format, each rounded once; `unit` is a power of two. Of
/// a format of 32 or 64 bits no result may be subnormal or infinite. A negative number that rounds to zero
/// becomes -0 if `signed_zero`.
using RoundUnits = void (*)(const std::int64_t* sums, std::size_t n, double unit, bool signed_zero,
                            void* out);
/// Writes the sums of columns of rows of one format, which are added in turn to `held`; if that is null, to
/// no elements. NaN becomes the canonical one.
using SumRowsInTurn = void (*)(const RowsOfKey& rows, const void* held, void* sums);
/// Adds the units of n rows of `inner` elements each to a table, row r to the words from place[r] on. They
/// are rounded as for SumUnitRows.
using AddUnitRows = void (*)(const void* x, const std::size_t* place, std::size_t n, std::size_t inner,
                             double scale, bool few, std::int64_t* table);

/// Loops over rows of softmax of elements of one format that are computed in format C (softmax_loops.hpp);
/// null if there are none.
template <class C> struct SoftmaxLoops {
  C (*largest)(const void* x, std::size_t n);
  void (*exponentials)(const void* x, std::size_t n, C largest, C* e);  ///< e^(x - largest)
  /// Exponentials of at most one leaf; returns their plain sum in the order `tree`.
  C (*sum_exponentials)(const void* x, std::size_t n, C largest, C* e);
  void (*scale)(const C* e, std::size_t n, C factor, void* y);  ///< e·factor
  void (*scaled_exponentials)(const void* x, std::size_t n, C largest, C factor, void* y);
  void (*shift)(const void* x, std::size_t n, C largest, C log_sum, void* y);
  /// Writes the states of the leaves of n >= 1 elements in the order `tree`.
  void (*online_leaves)(const void* x, std::size_t n, OnlineSoftmax<Scalar<C>>* states);
};

/// Types of integers that have loops. Booleans are those of 8 bits.
using IntegerTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                              std::uint16_t, std::uint32_t, std::uint64_t>;
/// Rows of `count` neighbouring integers.
struct IntegerRows {
  const void* x;
  std::ptrdiff_t pitch;  ///< integers between rows
  std::size_t rows, count;
};
/// The loops over integers of one type.
struct IntegerLoops {
  /// Returns the sum of n < 2^32 integers.
  Int128 (*sum)(const void* x, std::size_t n);
  /// Adds the columns of fewer than 2^32 rows to the sums.
  void (*sum_columns)(const IntegerRows& rows, Int128* sums);
  /// Replaces `best` by the largest, or [1] smallest, of it and n integers. The next one does so for each
  /// column.
  void (*extremum[2])(const void* x, std::size_t n, void* best);
  void (*extremum_columns[2])(const IntegerRows& rows, void* best);
  /// Returns the index of the first of n integers that equals `value`; n if there is none.
  std::size_t (*find)(const void* x, std::size_t n, const void* value);
  /// Copies n integers, with `stand_in` in place of those whose flag is 0.
  void (*keep)(const void* x, const std::uint8_t* where, std::size_t n, const void* stand_in, void* out);
};

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
  SumExactly sum_rows_exactly[exactly_summed];  ///< of elements in the format
  SumExactly sum_columns_exactly[exactly_summed];
  RoundRows round_rows;                     ///< of elements in the format, for fp32 and fp64 only
  ScanExactly scan_exactly[Formats::size];  ///< by format of the elements; to fp32 and fp64 only
  WriteTerms write_terms[Formats::size];    ///< by format of the elements
  KeepSelected keep_selected;               ///< of elements in the format
  WriteSquares write_squares[Formats::size];
  SumLeaves sum_squares[Orders::size];  ///< plain sums of numbers of the carrier
  SumTerms sum_terms[Formats::size];    ///< adds in the order `tree`, as the next three do
  SumMiddling sum_middling[Formats::size];
  SumRows sum_rows[Formats::size];  ///< adds with the accumulator `plain`
  LeafMoments leaf_moments[Formats::size];
  LeafProduct leaf_product;    ///< of elements in the format, for fp32 and fp64 only
  LeafProducts leaf_products;  ///< likewise
  LargestKey largest_key[Formats::size];
  FindKey find_key[Formats::size];
  LargestKeys largest_keys[Formats::size];
  std::tuple<SoftmaxLoops<fp32>, SoftmaxLoops<fp64>> softmax;  ///< of elements of the format F
  ScanTile scan_tile[Accumulators::size];
  ScanColumns scan_columns[Accumulators::size];
  LargestMagnitude largest_magnitude;  ///< for fp64 only, as the next one
  AddSlices add_slices;
  RoundToGrid round_to_grid;  ///< for fp32 and fp64 only
  RollExactly roll_exactly;   ///< for fp64 only, as the next one
  HasSpecial has_special;
  SumUnits sum_units;                    ///< of elements in the format, for fp32 and fp64 only
  LargestBits largest_bits;              ///< of elements in the format
  SumColumnsOnGrid sum_columns_on_grid;  ///< of elements in the format
  SumUnitRows sum_unit_rows;             ///< of elements in the format
  RoundUnits round_units;                ///< to the format
  AddUnitRows add_unit_rows;             ///< of elements in the format
  SumRowsInTurn sum_rows_in_turn;
  IntegerLoops integers[IntegerTypes::size];  ///< for fp64 only
};

template <InstructionSet set, std::size_t index> const Kernels& kernels_of();

/// The loops of the format with this index for the instruction set in use.
const Kernels& kernels(std::size_t format);

}  // namespace samesum::cpu
