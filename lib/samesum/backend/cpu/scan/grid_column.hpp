/// Scans on a grid on a CPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "samesum/backend/cpu/exact/window.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/operation/grid_reduction.hpp"
#include "samesum/window/anchor.hpp"

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
    for (std::size_t count; n > 0; x += count, out += count, n -= count) {
      count = std::min(n, at_once);
      const std::size_t done = take_in_words(x, count, out);
      if (done < count) take_in_integers(x + done, count - done, out + done);
    }
  }

 private:
  static constexpr std::size_t at_once = 1024;  ///< elements; stay in the first-level cache
  /// Whether sums in words are rounded to F, and numbers of F hold elements of T.
  static constexpr bool has_words = std::is_same_v<F, CarrierOf<F>> && can_read<T, F>;

  /// Takes elements, rounded to the grid, as long as two doubles hold their sums. Returns their number.
  std::size_t take_in_words(const T* x, std::size_t n, F* out) {
    if constexpr (has_words) {
      const int grid = grid_.exponent();
      // Then no result is subnormal or too large, and scales are normal.
      constexpr int least = std::max(Format<F>::min_exponent, -900),
                    most = std::min(Format<F>::max_exponent - grid_word_bits<F>, 900);
      if (grid < least || grid > most || sum_.flags != 0) return 0;
      const auto bits = static_cast<BitsOf<T>>(kernels(Formats::index_of<T>()).largest_bits(x, n));
      if (bits >= Format<T>::infinity) return 0;
      const std::int32_t largest = std::max(to_grid(from_bits<T>(bits), grid).bits, sum_.bits);
      if (largest + bits_for_terms(count_ + n) > grid_word_bits<F>) return 0;
      double sum[2] = {};
      if (!in_two_words(static_cast<__int128>(sum_.units.wide()), power_of_two(grid), sum)) return 0;
      const Kernels& loops = kernels(Formats::index_of<F>());
      F numbers[at_once];
      if constexpr (std::is_same_v<T, F>)
        std::copy_n(x, n, numbers);
      else
        loops.write_terms[Formats::index_of<T>()](Term::element, x, nullptr, n, numbers, nullptr);
      loops.round_to_grid(numbers, n, grid);
      const std::size_t done =
          loops.scan_exactly[Formats::index_of<F>()](numbers, n, exclusive_, false, sum, out);
      sum_.units = {};
      for (const double word : sum) sum_.add({to_grid(word, grid).units, largest});
      count_ += done;
      return done;
    }
    return 0;
  }
  void take_in_integers(const T* x, std::size_t n, F* out) {
    if constexpr (std::is_same_v<F, fp32>)
      if (fits(x, n)) return take_fast(x, n, out);
    for (std::size_t i = 0; i < n; ++i) {
      const T element = x[i];
      if (exclusive_) write(i, out);
      grid_.add(sum_, element);
      ++count_;
      if (!exclusive_) write(i, out);
    }
  }

  /// Whether integers of 64 bits hold all sums of these at most 2^12 elements, each of up to 2^48 units.
  bool fits(const T* x, std::size_t n) {
    constexpr std::int64_t most = std::int64_t{1} << 61;
    const auto sum = static_cast<std::int64_t>(sum_.units.word[0]);
    if (sum_.flags != 0 || sum_.bits > 62 || sum_.units != Int128::of(sum) || sum > most || sum < -most)
      return false;
    // Then 2^-grid and all results are normal numbers, or too large.
    if (grid_.exponent() < Format<fp32>::min_exponent || grid_.exponent() > 100) return false;
    const auto bits = static_cast<BitsOf<T>>(kernels(Formats::index_of<T>()).largest_bits(x, n));
    if (bits >= Format<T>::infinity) return false;
    const GridTerm largest = to_grid(from_bits<T>(bits), grid_.exponent());
    if (largest.bits > 48) return false;
    sum_.bits = std::max(sum_.bits, largest.bits);
    return true;
  }
  /// Converting an integer rounds it once to fp32.
  void take_fast(const T* x, std::size_t n, fp32* out) {
    const double scale = power_of_two(-grid_.exponent());
    const auto unit = static_cast<float>(power_of_two(grid_.exponent()));
    auto sum = static_cast<std::int64_t>(sum_.units.word[0]);
    float before = static_cast<float>(sum) * unit;
    for (std::size_t i = 0; i < n; ++i) {
      sum += units_above(whole_anchor, convert<double>(x[i]) * scale + whole_anchor);
      const float after = static_cast<float>(sum) * unit;
      out[i] = exclusive_ ? before : after;
      before = after;
    }
    sum_.units = Int128::of(sum);
    count_ += n;
  }

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
