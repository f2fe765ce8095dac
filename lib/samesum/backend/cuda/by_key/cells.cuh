/// Sums by key in integers: how an element becomes units of a grid, and how units are added to cells.
///
/// A cell is an integer in words of 32 bits (shared memory) or of 64 bits (global memory). Integers do not
/// depend on the order of additions, so neither do the results. An element that does not fit the window goes
/// to the list of outliers, and special elements are recorded in flags. The kernels of add.cuh,
/// partitions.cuh and rows.cuh add to cells, those of finish.cuh read them.
#pragma once

#include "samesum/backend/cuda/by_key/window.cuh"
#include "samesum/window/wide_integer.hpp"

namespace samesum::gpu {

/// (-1)^negative · magnitude · 2^(grid + shift).
struct Units {
  std::uint64_t magnitude;
  int shift;
  bool negative;

  __device__ WideInteger<3> wide() const { return WideInteger<3>::of(negative, magnitude, shift); }
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

  __device__ Gridded(const CellWindows& windows, const CellWindow& w, const KeyedElements& keyed)
      : keyed_{keyed},
        exact_{windows.exact},
        grid_{w.grid},
        lowest_{exact_ ? max(grid_ - Format<T>::min_quantum + 1, 1) : 1},
        highest_{min(grid_ + w.bits - windows.min_exponent, 2 * Format<T>::max_exponent)} {}

  /// Whether common_units converts x: a normal number that fits the window, and all of whose bits are units
  /// if the sum is exact.
  __device__ bool is_common(Bits x) const {
    const int field = static_cast<int>(static_cast<Bits>(x & ~Format<T>::sign_bit) >> fraction_bits);
    return field >= lowest_ && field <= highest_;
  }
  __device__ Units common_units(Bits x) const {
    const auto magnitude = static_cast<Bits>(x & ~Format<T>::sign_bit);
    const int shift = static_cast<int>(magnitude >> fraction_bits) - 1 + Format<T>::min_quantum - grid_;
    Wide significand = static_cast<Wide>(magnitude & (hidden - 1)) | hidden;
    if (shift < 0) significand = split(significand, shift).rounded();
    return {significand, max(shift, 0), x != magnitude && significand != 0};
  }

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
      const Split at_grid = split(significand, u.shift);
      fits = fits && !(exact_ && at_grid.lost != 0);
      significand = at_grid.rounded();
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
    const auto record = [&](unsigned which) { flag(keyed_.flags, result, which); };
    return units(x, u, record, [&] {
      append(x, result);
      record(has_outliers);
    });
  }
  /// Appends x to the outliers.
  __device__ void append(Bits x, std::uint64_t result) const {
    append_outlier(keyed_, result, {x, 0, 0, false});
  }

 protected:
  using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int fraction_bits = Format<T>::precision - 1;
  static constexpr Wide hidden = Wide{1} << fraction_bits;

  /// A significand as units of the grid, and what is below them.
  struct Split {
    Wide kept, lost, half;
    __device__ Wide rounded() const { return kept + (lost > half || (lost == half && (kept & 1))); }
  };
  __device__ static Split split(Wide significand, int shift) {
    const int below = min(-shift, fraction_bits + 2);  // bits below the grid
    const Wide half = Wide{1} << (below - 1);
    return {significand >> below, significand & (half + half - 1), half};
  }

  const KeyedElements& keyed_;
  bool exact_;
  int grid_;
  int lowest_, highest_;  ///< exponent fields of common elements; an element above them does not fit
};

/// Elements of up to 32 bits, most of which one instruction converts to a number of 64 bits.
///
/// That number counts units of 2^(grid + skipped). Elements are rounded to them; in an exact sum only those
/// are converted that are whole numbers of such units.
template <class T, int skipped> class FastGridded : public Gridded<T> {
 public:
  using typename Gridded<T>::Bits;

  __device__ FastGridded(const CellWindows& windows, const CellWindow& w, const KeyedElements& keyed)
      : Gridded<T>{windows, w, keyed} {
    constexpr int coarsest = 252;  // every element rounds to 0, and both factors are normal numbers
    const int unit = min(this->grid_ + skipped, coarsest);
    // In two steps, since 2^-unit may be beyond the largest number.
    first_ = scale_of<fp32>(-unit / 2);
    second_ = scale_of<fp32>(-unit - -unit / 2);
    const int lowest = windows.exact ? max(unit - Format<T>::min_quantum + 1, 1) : 0;  // exponent field
    first_bits_ = this->highest_ < lowest ? 0 : static_cast<std::uint32_t>(lowest) << this->fraction_bits;
    span_ = this->highest_ < lowest
                ? 0
                : (static_cast<std::uint32_t>(this->highest_ + 1) << this->fraction_bits) - first_bits_;
    // Otherwise the compiler computes them again for each element, to save registers.
    asm volatile("" : "+f"(first_), "+f"(second_), "+r"(first_bits_), "+r"(span_));
  }

  __device__ bool is_convertible(Bits x) const {
    return static_cast<std::uint32_t>(x & static_cast<Bits>(~Format<T>::sign_bit)) - first_bits_ < span_;
  }
  __device__ std::int64_t converted(Bits x) const {
    return __float2ll_rn(widen(from_bits<T>(x)) * first_ * second_);
  }

 private:
  float first_, second_;
  std::uint32_t first_bits_, span_;
};

/// Elements for cells of a kind.
template <class T, Cells cells>
using GriddedFor = std::conditional_t<are_fast(cells), FastGridded<T, skipped_bits(cells)>, Gridded<T>>;

/// An integer of some words of 32 bits in two's complement, on its way to a cell.
template <int words> struct Addend {
  std::uint32_t* cell = nullptr;
  std::uint32_t word[words] = {};

  __device__ void set(std::uint32_t* to, std::int64_t x) {
    cell = to;
    word[0] = static_cast<std::uint32_t>(x);
    word[1] = static_cast<std::uint32_t>(x >> 32);
  }
  /// Sets it to (-1)^negative · magnitude · 2^bit, for 0 <= bit < 64.
  __device__ void set(std::uint32_t* to, const Units& u, int bit) {
    const std::uint64_t low = u.magnitude << bit;
    set(to, static_cast<std::int64_t>(u.negative ? ~low + 1 : low));
    if constexpr (words == 3) {
      const auto high = static_cast<std::uint32_t>(u.magnitude >> 1 >> (63 - bit));
      word[2] = u.negative ? ~high + (low == 0) : high;
    }
  }
};

/// Adds integers to cells in shared memory, and replaces their last words by the carries if `has_carries`; an
/// addition that need not return the old value is faster. All first words are in flight before the first
/// carry is needed.
template <bool has_carries, int words, int count>
__device__ void add_to_cells(Addend<words> (&x)[count], std::uint32_t stride) {
#pragma unroll
  for (int i = 0; i < words; ++i)
#pragma unroll
    for (Addend<words>& addend : x) {
      const std::uint32_t carry = i == 0 ? 0 : addend.word[i - 1], sum = addend.word[i] + carry;
      std::uint32_t* const cell = addend.cell + static_cast<std::uint32_t>(i) * stride;
      if (!has_carries && i == words - 1) {
        if (sum != 0) atomicAdd(cell, sum);
        continue;
      }
      addend.word[i] = sum < carry;
      if (sum != 0) addend.word[i] |= atomicAdd(cell, sum) > ~sum;
    }
}

/// Adds integers below 2^62 to cells that are `counted`: the third word counts the overflows of the second
/// one.
template <int count> __device__ void add_to_counted_cells(Addend<2> (&x)[count], std::uint32_t stride) {
#pragma unroll
  for (Addend<2>& addend : x)
    if (addend.word[0] != 0) addend.word[1] += atomicAdd(addend.cell, addend.word[0]) > ~addend.word[0];
#pragma unroll
  for (Addend<2>& addend : x)
    if (addend.word[1] != 0) addend.word[0] = atomicAdd(addend.cell + stride, addend.word[1]);
#pragma unroll
  for (Addend<2>& addend : x) {
    const std::uint32_t old = addend.word[0], high = addend.word[1], sum = old + high;
    if (high != 0 && (~(old ^ high) & (old ^ sum)) >> 31 != 0)
      atomicAdd(addend.cell + 2 * stride, high >> 31 != 0 ? ~0u : 1u);
  }
}

/// The integer in a cell in shared memory.
template <Cells cells> __device__ WideInteger<3> cell_sum(std::uint32_t cell, std::uint32_t stride) {
  const auto at = [&](int i) { return shared_words[cell + static_cast<std::uint32_t>(i) * stride]; };
  const auto both = [&](int i) { return std::uint64_t{at(i)} | std::uint64_t{at(i + 1)} << 32; };
  if constexpr (cells == Cells::of_192) return {{both(0), both(2), both(4)}};
  Int128 sum = Int128::of(static_cast<std::int64_t>(both(0)));
  const auto third = [&] { return static_cast<std::uint64_t>(static_cast<std::int32_t>(at(2))); };
  if constexpr (cells == Cells::counted) sum.word[1] += third();
  if constexpr (cells == Cells::of_96) sum.word[1] = third();
  if constexpr (cells == Cells::of_128) sum.word[1] = both(2);
  return WideInteger<3>::of(sum);
}

/// Adds the lowest words of an integer to a total.
__device__ inline void add_to_total(const Totals& totals, std::uint64_t result, int words,
                                    const WideInteger<3>& sum) {
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
__device__ inline WideInteger<3> total(const Totals& totals, std::uint64_t result, int words) {
  const auto at = [&](int w) { return static_cast<std::uint64_t>(*totals.at(result, w)); };
  if (words == 1) return WideInteger<3>::of(static_cast<std::int64_t>(at(0)));
  if (words == 2) return WideInteger<3>::of(Int128{{at(0), at(1)}});
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
