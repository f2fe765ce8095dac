/// Scans on a grid on a CPU.
#pragma once

#include <atomic>
#include <vector>

#include "samesum/operation/grid_reduction.hpp"

namespace samesum::cpu {

/// A column of elements of format T whose prefixes are added on one grid, and rounded once to F.
template <class T, class F> class GridColumn {
 public:
  /// `grids` has the grid of each result. `overflowed` is set if a sum overflows its grid.
  GridColumn(bool exclusive, const std::vector<int>& grids, std::atomic<bool>& overflowed)
      : exclusive_{exclusive}, grids_{&grids}, overflowed_{&overflowed} {}

  /// Restarts, for result `at`.
  void restart(std::size_t at) { restart(at, {}, 0); }
  /// Restarts after `count` elements with the sum `before`.
  void restart(std::size_t at, const GridSum& before, std::size_t count) {
    grid_ = GridOfDoubles{(*grids_)[at]};
    sum_ = before;
    count_ = count;
  }
  /// Takes the next elements, and writes their results. `out` may be the elements themselves.
  void take(const std::byte* data, std::size_t n, F* out) {
    const T* x = reinterpret_cast<const T*>(data);
    for (std::size_t i = 0; i < n; ++i) {
      const T element = x[i];
      if (exclusive_) write(i, out);
      grid_.add(sum_, element);
      ++count_;
      if (!exclusive_) write(i, out);
    }
  }

 private:
  void write(std::size_t i, F* out) {
    if (!finish_on_grid<F>(sum_, false, count_, grid_.exponent(), i, out)) *overflowed_ = true;
  }

  bool exclusive_;
  const std::vector<int>* grids_;
  std::atomic<bool>* overflowed_;
  GridOfDoubles grid_;
  GridSum sum_;
  std::size_t count_ = 0;
};

}  // namespace samesum::cpu
