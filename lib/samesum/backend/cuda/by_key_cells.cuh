/// Sums by key in integers: how an element becomes units of a grid, and how units are added to cells.
///
/// A cell is an integer in words of 32 bits (shared memory) or of 64 bits (global memory). Integers do not
/// depend on the order of additions, so neither do the results. An element that does not fit the window goes
/// to the list of outliers, and special elements are recorded in flags. The kernels of by_key_add.cuh,
/// by_key_partitions.cuh and by_key_rows.cuh add to cells, those of by_key_finish.cuh read them.
#pragma once

#include "samesum/backend/cuda/by_key_window.cuh"
#include "samesum/backend/cuda/int192.hpp"

namespace samesum::gpu {

/// (-1)^negative · magnitude · 2^(grid + shift).
struct Units {
  std::uint64_t magnitude;
  int shift;
  bool negative;

  __device__ Int192 wide() const { return Int192::of(negative, magnitude, shift); }
  /// As units of 2^grid, if these are below 2^63.
  __device__ std::int64_t shifted() const {
    const auto units = static_cast<std::int64_t>(magnitude << shift);
    return negative ? -units : units;
  }
};

/// Elements of format T on a grid.
template <class T> class Gridded {
 public:
  using Bits = BitsOf<T>;

  __device__ Gridded(const Windows& windows, const Window& w, const KeyedElements& all)
      : all_{all},
        exact_{windows.exact},
        grid_{w.grid},
        highest_{min(grid_ + w.bits - windows.min_exponent, 2 * Format<T>::max_exponent)} {}

  /// Converts x to units. Returns false if there is nothing to add. flag(which) is called with what
  /// finish_sums has to know of the element, and outside() if it does not fit the window.
  template <class Flag, class Outside>
  __device__ bool units(Bits x, Units& u, Flag flag, Outside outside) const {
    const auto magnitude = static_cast<Bits>(x & ~Format<T>::sign_bit);
    u.negative = x != magnitude;
    if (magnitude == 0) {
      if (exact_) flag(u.negative ? seen_minus_zero : unsigned{Exact::seen_other_than_minus_zero});
      return false;
    }
    if (magnitude >= Format<T>::infinity) {
      flag(magnitude > Format<T>::infinity ? Exact::seen_nan
           : u.negative                    ? Exact::seen_minus_infinity
                                           : Exact::seen_plus_infinity);
      return false;
    }
    const int field = static_cast<int>(magnitude >> fraction_bits);
    Wide significand = static_cast<Wide>(magnitude & (hidden - 1));
    if (field > 0) significand |= hidden;
    u.shift = max(field, 1) - 1 + Format<T>::min_quantum - grid_;
    bool fits = field <= highest_;
    if (u.shift < 0) {
      const int below = min(-u.shift, fraction_bits + 2);  // bits below the grid
      const Wide half = Wide{1} << (below - 1), kept = significand >> below,
                 lost = significand & (half + half - 1);
      fits = fits && !(exact_ && lost != 0);
      significand = kept + (lost > half || (lost == half && (kept & 1)));
      u.shift = 0;
    }
    if (!fits) {
      outside();
      return false;
    }
    if (significand == 0) return false;
    u.magnitude = significand;
    return true;
  }
  /// Converts x as the other form does, and records flags and outliers of a result in global memory.
  __device__ bool units(Bits x, std::uint64_t result, Units& u) const {
    const auto record = [&](unsigned which) { flag(all_.flags, result, which); };
    return units(x, u, record, [&] {
      append(x, result);
      record(has_outliers);
    });
  }
  /// Appends x to the outliers.
  __device__ void append(Bits x, std::uint64_t result) const {
    append_outlier(all_, result, {x, 0, 0, false});
  }

 protected:
  using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int fraction_bits = Format<T>::precision - 1;
  static constexpr Wide hidden = Wide{1} << fraction_bits;

  const KeyedElements& all_;
  bool exact_;
  int grid_, highest_;  ///< an element whose exponent field is above `highest_` does not fit
};

/// Elements of up to 32 bits, most of which one instruction converts to a number of 64 bits.
///
/// That number counts units of 2^(grid + skipped). Elements are rounded to them; in an exact sum only those
/// are common that are whole numbers of such units.
template <class T, int skipped> class FastGridded : public Gridded<T> {
 public:
  using typename Gridded<T>::Bits;

  __device__ FastGridded(const Windows& windows, const Window& w, const KeyedElements& all)
      : Gridded<T>{windows, w, all} {
    constexpr int coarsest = 252;  // every element rounds to 0, and both factors are normal numbers
    const int unit = min(this->grid_ + skipped, coarsest);
    // In two steps, since 2^-unit may be beyond the largest number.
    first_ = scale_of<fp32>(-unit / 2);
    second_ = scale_of<fp32>(-unit - -unit / 2);
    const int lowest = windows.exact ? max(unit - Format<T>::min_quantum + 1, 1) : 0;  // exponent field
    lowest_ = this->highest_ < lowest ? 0 : static_cast<std::uint32_t>(lowest) << this->fraction_bits;
    span_ = this->highest_ < lowest
                ? 0
                : (static_cast<std::uint32_t>(this->highest_ + 1) << this->fraction_bits) - lowest_;
    // Otherwise the compiler computes them again for each element, to save registers.
    asm volatile("" : "+f"(first_), "+f"(second_), "+r"(lowest_), "+r"(span_));
  }

  __device__ bool is_common(Bits x) const {
    return static_cast<std::uint32_t>(x & static_cast<Bits>(~Format<T>::sign_bit)) - lowest_ < span_;
  }
  __device__ std::int64_t converted(Bits x) const {
    return __float2ll_rn(widen(from_bits<T>(x)) * first_ * second_);
  }

 private:
  float first_, second_;
  std::uint32_t lowest_, span_;
};

/// Elements for cells of a kind.
template <class T, Cells cells>
using GriddedFor = std::conditional_t<are_fast(cells), FastGridded<T, skipped_bits(cells)>, Gridded<T>>;

/// Adds units to a cell in shared memory that is not `counted`. The carry comes from the old value of a word;
/// most carries end after the first or the second word.
template <int words, int parts>
__device__ void add_to_cell(const Units& u, std::uint32_t* cell, std::uint32_t stride) {
  const unsigned bit = u.shift & 31;
  int word = u.shift >> 5;
  const std::uint64_t low = u.magnitude << bit, signed_low = u.negative ? ~low + 1 : low;
  std::uint32_t part[parts] = {static_cast<std::uint32_t>(signed_low),
                               static_cast<std::uint32_t>(signed_low >> 32)};
  if constexpr (parts == 3) {
    const auto high = static_cast<std::uint32_t>(u.magnitude >> 1 >> (63 - bit));
    part[2] = u.negative ? ~high + (low == 0) : high;
  }
  const std::uint32_t above = u.negative ? ~0u : 0;  // all words after the parts
  cell += static_cast<std::uint32_t>(word) * stride;
  std::uint32_t carry = 0;
  const auto add = [&](std::uint32_t x) {
    const std::uint32_t sum = x + carry;
    carry = sum < carry;
    if (sum != 0) carry |= atomicAdd(cell, sum) > ~sum;
    cell += stride;
    ++word;
  };
#pragma unroll
  for (int i = 0; i < parts; ++i)
    if (word < words) add(part[i]);
  while (word < words && above + carry != 0) add(above);
}

/// A number of 64 bits in two words, on its way to a cell.
struct CellAndNumber {
  std::uint32_t* cell = nullptr;
  std::uint32_t low = 0, high = 0;
  __device__ void set(std::int64_t x, std::uint32_t* to) {
    cell = to;
    low = static_cast<std::uint32_t>(x);
    high = static_cast<std::uint32_t>(x >> 32);
  }
};

/// Adds numbers to cells, or to the upper two words of cells. All first words are on their way before the
/// first carry is needed. Cells that are `counted` count the overflows of the second word in the third one;
/// then each number is below 2^62.
template <bool counted, int count>
__device__ void add_to_cells(CellAndNumber (&x)[count], std::uint32_t stride) {
#pragma unroll
  for (CellAndNumber& own : x)
    if (own.low != 0) own.high += atomicAdd(own.cell, own.low) > ~own.low;
#pragma unroll
  for (CellAndNumber& own : x)
    if (own.high != 0) {
      const std::uint32_t old = atomicAdd(own.cell + stride, own.high);
      if (counted) own.low = old;
    }
  if constexpr (counted) {
#pragma unroll
    for (CellAndNumber& own : x) {
      const std::uint32_t sum = own.low + own.high;
      if (own.high != 0 && (~(own.low ^ own.high) & (own.low ^ sum)) >> 31 != 0)
        atomicAdd(own.cell + 2 * stride, own.high >> 31 != 0 ? ~0u : 1u);
    }
  }
}

/// The integer in a cell in shared memory.
template <Cells cells> __device__ Int192 cell_sum(std::uint32_t cell, std::uint32_t stride) {
  const auto at = [&](int i) { return shared_words[cell + static_cast<std::uint32_t>(i) * stride]; };
  const auto both = [&](int i) { return std::uint64_t{at(i)} | std::uint64_t{at(i + 1)} << 32; };
  if constexpr (cells == Cells::of_192) return {{both(0), both(2), both(4)}};
  Int128 sum = Int128::of(static_cast<std::int64_t>(both(0)));
  if constexpr (cells == Cells::counted) sum.high += static_cast<std::int32_t>(at(2));
  if constexpr (cells == Cells::of_96) sum.high = static_cast<std::int32_t>(at(2));
  if constexpr (cells == Cells::of_128) sum.high = static_cast<std::int64_t>(both(2));
  return Int192::of(sum);
}

/// Adds the lowest words of an integer to a total.
__device__ inline void add_to_total(const Totals& totals, std::uint64_t result, int words,
                                    const Int192& sum) {
  std::uint64_t carry = 0;
#pragma unroll
  for (int w = 0; w < 3; ++w) {
    if (w == words) break;
    const std::uint64_t part = sum.word[w] + carry;
    carry = part < carry;
    if (part != 0) carry |= atomicAdd(totals.at(result, w), static_cast<unsigned long long>(part)) > ~part;
  }
}

/// The total of a result.
__device__ inline Int192 total(const Totals& totals, std::uint64_t result, int words) {
  const auto at = [&](int w) { return static_cast<std::uint64_t>(*totals.at(result, w)); };
  if (words == 1) return Int192::of(Int128::of(static_cast<std::int64_t>(at(0))));
  if (words == 2) return Int192::of(Int128{at(0), static_cast<std::int64_t>(at(1))});
  return {{at(0), at(1), at(2)}};
}

/// Clears the words of totals that only the wide cells of a call use. The kernels that add to narrow cells
/// call it instead of adding if the wide ones are needed.
__device__ inline void clear_top(const Totals& totals, std::uint64_t results) {
  if (totals.top == nullptr) return;
  for (std::uint64_t i = index_in_grid(); i < results; i += std::uint64_t{gridDim.x} * blockDim.x)
    totals.top[i] = 0;
}

}  // namespace samesum::gpu
