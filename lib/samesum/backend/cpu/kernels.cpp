/// The table of inner loops, compiled once per instruction set and format. No inline function may remain in
/// the object file: the linker could use it for other object files, on a machine that lacks its instructions.
#include "samesum/backend/cpu/loops/kernels.hpp"

#include "samesum/backend/cpu/exact/block.hpp"
#include "samesum/backend/cpu/exact/column_loops.hpp"
#include "samesum/backend/cpu/exact/grid_column_loops.hpp"
#include "samesum/backend/cpu/exact/grid_loops.hpp"
#include "samesum/backend/cpu/exact/near_scan_loops.hpp"
#include "samesum/backend/cpu/exact/rolling_loops.hpp"
#include "samesum/backend/cpu/exact/rounded_row_loops.hpp"
#include "samesum/backend/cpu/exact/scan_loops.hpp"
#include "samesum/backend/cpu/loops/column_loops.hpp"
#include "samesum/backend/cpu/loops/extremum_loops.hpp"
#include "samesum/backend/cpu/loops/integer_loops.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/backend/cpu/loops/moment_loops.hpp"
#include "samesum/backend/cpu/loops/product_loops.hpp"
#include "samesum/backend/cpu/loops/row_loops.hpp"
#include "samesum/backend/cpu/loops/scan_loops.hpp"
#include "samesum/backend/cpu/loops/softmax_loops.hpp"
#include "samesum/backend/cpu/loops/terms.hpp"
#include "samesum/catalogue/support.hpp"

namespace samesum::cpu {
namespace {

using F = Formats::at<SAMESUM_FORMAT_INDEX>;

template <class Order, template <class> class A> constexpr void fill(SumLeaves* entry) {
  using Loops = Leaves<typename Order::Shape, A, F>;
  Formats::for_each([&]<class T>() {
    if constexpr (has_loop<Order, T, F>) entry[Formats::index_of<T>()] = Loops::template sum<T>;
  });
}

constexpr void fill_terms(Kernels& all) {
  using TermLoops = Terms<F>;
  Formats::for_each([&]<class T>() {
    constexpr std::size_t f = Formats::index_of<T>();
    all.write_terms[f] = TermLoops::template write<T>;
    if constexpr (can_read<T, F>) {
      using Shape = CoarsenedTree::Shape;
      all.write_squares[f] = TermLoops::template write_squares<T>;
      all.sum_terms[f] = TermLoops::template sum<Shape, T>;
      all.sum_middling[f] = TermLoops::template sum_middling<Shape, T>;
      all.sum_rows[f] = Leaves<Shape, Plain, F>::template sum_rows<T>;
      all.leaf_moments[f] = MomentLoops<F>::template leaf_moments<Shape, T>;
      all.row_moments[f] = MomentLoops<F>::template row_moments<Shape, T>;
      all.largest_key[f] = ExtremumLoops<F>::template largest_key<T>;
      all.find_key[f] = ExtremumLoops<F>::template find_key<T>;
      all.largest_keys[f] = ExtremumLoops<F>::template largest_keys<T>;
      if constexpr (std::is_same_v<F, CarrierOf<F>>) {
        all.scan_exactly[f] = ExactScanLoops<T, F>::scan;
        all.scan_nearly[f] = NearScanLoops<T, F>::scan;
      }
    }
  });
}

constexpr Kernels make() {
  Kernels all{};
  for_each_method<F, "cpu">([&]<class Operation, class Order, template <class> class A>() {
    constexpr std::size_t order = Orders::index_of<Order>(), accumulator = Accumulators::index_of<A>();
    if constexpr (std::is_same_v<Operation, Sum> && has_leaves<Order>) {
      fill<Order, A>(all.sum_leaves[order][accumulator]);
      Formats::for_each([&]<class T>() {
        if constexpr (has_batches<Operation, Order, A, T, F>)
          all.sum_columns[order][accumulator][Formats::index_of<T>()] =
              ColumnLoops<typename Order::Shape, A, F>::template sum<T>;
      });
    }
  });
  if constexpr (std::is_same_v<F, CarrierOf<F>>) {
    all.leaf_product = ProductLoops<F>::template leaf_product<CoarsenedTree::Shape>;
    all.leaf_products = ProductLoops<F>::template leaf_products<CoarsenedTree::Shape>;
  }
  all.add_exactly = ExactBlocks<F, AllElements<F>>::add;
  all.add_selected = add_selected<F>;
  [&]<std::size_t... what>(std::index_sequence<what...>) {
    ((all.sum_rows_exactly[what] = ExactRowLoops<F, ExactlySummed{what}>::sum,
      all.sum_columns_exactly[what] = ExactColumnLoops<F, ExactlySummed{what}>::sum),
     ...);
  }
  (std::make_index_sequence<exactly_summed>{});
  all.round_rows = round_rows<F>();
  fill_terms(all);
  all.keep_selected = keep_selected<F>;
  for_each_method<F, "cpu">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (std::is_same_v<Operation, Norm>)
      all.sum_squares[Orders::index_of<Order>()] =
          Leaves<typename Order::Shape, Plain, typename Squares<F>::G>::template sum<CarrierOf<F>>;
  });
  all.softmax = {softmax_loops<F, fp32>(), softmax_loops<F, fp64>()};
  for_each_method<F, "cpu">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (std::is_same_v<Operation, CumSum> && std::is_same_v<Order, Prefix>) {
      all.scan_tile[Accumulators::index_of<A>()] = ScanLoops<A, F>::scan;
      all.scan_columns[Accumulators::index_of<A>()] = ScanLoops<A, F>::scan_columns;
    }
  });
  if constexpr (std::is_same_v<F, fp64>) {
    all.largest_magnitude = GridLoops::largest;
    all.add_slices = GridLoops::add;
    all.roll_exactly = ExactScanLoops<fp64, fp64>::roll;
    all.roll_in_words = roll_in_words;
    all.round_means = RollingLoops<false>::round_means;
    all.has_special = ExactScanLoops<fp64, fp64>::has_special;
    IntegerTypes::for_each(
        [&]<class T>() { all.integers[IntegerTypes::index_of<T>()] = IntegersOf<T>::all; });
  }
  if constexpr (std::is_same_v<F, CarrierOf<F>>) {
    all.sum_units = GridLoops::sum_units<F>;
    all.round_to_grid = GridLoops::round<F>;
  }
  all.largest_bits = largest_bits<F>;
  all.sum_columns_on_grid = GridColumnLoops<F>::sum;
  all.sum_unit_rows = RowLoops<F>::sum_units;
  all.round_units = RowLoops<F>::round_units;
  all.add_unit_rows = RowLoops<F>::add_units;
  all.sum_rows_in_turn = RowLoops<F>::sum_in_turn;
  return all;
}

}  // namespace

template <> const Kernels& kernels_of<InstructionSet::SAMESUM_INSTRUCTION_SET, SAMESUM_FORMAT_INDEX>() {
  static constexpr Kernels all = make();
  return all;
}

}  // namespace samesum::cpu
