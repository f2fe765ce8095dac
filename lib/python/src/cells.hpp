/// Arrays of the states of states.hpp, whose kind is known at run time: what samesum.cells makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "samesum/accumulator/exact_state.hpp"
#include "samesum/accumulator/fixed_point_state.hpp"
#include "samesum/format/formats.hpp"

namespace samesum::python {

/// Cells of exact sums of elements of T.
template <class T> struct ExactCells {
  using State = ExactState<T>;
  template <class U> static constexpr bool holds = std::is_same_v<U, T>;
  template <class U> SAMESUM_HD void add(State& cell, U x) const { cell.atomic_add(x); }
  template <class F> SAMESUM_HD F finish(const State& cell) const { return cell.template finish<F>(); }
};
/// Cells of sums on a grid.
struct GridCells {
  using State = FixedPointState;
  int grid;
  template <class U> static constexpr bool holds = true;
  template <class U> SAMESUM_HD void add(State& cell, U x) const { cell.atomic_add(x, grid); }
  /// The number of elements is not known, so an element beyond 2^62 units is an overflow.
  template <class F> SAMESUM_HD F finish(const State& cell) const {
    return cell.finish<F>(grid, std::numeric_limits<std::uint64_t>::max());
  }
};

/// An array of cells.
struct CellArray {
  void* cells;
  std::size_t size;
  const FormatInfo* format;  ///< of the elements, unless there is a grid
  std::optional<int> grid;

  /// Calls visit(kind, cells) with ExactCells or GridCells, and a pointer to the first state.
  template <class Visit> decltype(auto) with_kind(Visit visit) const {
    if (grid) return visit(GridCells{*grid}, static_cast<FixedPointState*>(cells));
    return with_format(*format,
                       [&]<class T>() { return visit(ExactCells<T>{}, static_cast<ExactState<T>*>(cells)); });
  }
};

/// Elements to add: rows of `inner` elements, each with the index of a row of cells.
struct CellElements {
  const FormatInfo* format;
  const void* x;
  const std::int64_t* rows;
  std::size_t size, inner;
};

// In the memory of a GPU. Each enqueues one kernel in a stream of the current device.

void add_to_cells_on_gpu(const CellArray& cells, const CellElements& elements, std::uintptr_t stream);
/// Adds other cells of the same kind and size.
void merge_cells_on_gpu(const CellArray& cells, const void* other, std::uintptr_t stream);
void finish_cells_on_gpu(const CellArray& cells, const FormatInfo& format, void* out, std::uintptr_t stream);

}  // namespace samesum::python
