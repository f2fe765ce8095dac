/// Sums by key in integers: how an element becomes units of a grid, and how units are added to cells.
///
/// A cell is an integer in words of 32 bits (shared memory) or of 64 bits (global memory). Integers do not
/// depend on the order of additions, so neither do the results. An element that does not fit the window is
/// recorded in KeyEvents, and special elements in flags. The kernels of by_key_add.cuh, by_key_partitions.cuh
/// and by_key_rows.cuh add to cells, those of by_key_finish.cuh read them.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cuda/by_key.cuh"

namespace samesum::gpu {

/// The integers of a sum by key: multiples of 2^grid, with a grid that follows from the largest element.
struct Window {
  int grid;      ///< used as it is if `given`
  bool given;    ///< otherwise the grid follows from KeyEvents::largest
  bool exact;    ///< whether an element between two multiples is a miss; otherwise it is rounded
  int headroom;  ///< an element may exceed the largest that was looked at by this many binades
  int bits;      ///< |element| < 2^(grid + bits)
  int lowest;  ///< exponent of the smallest number of the elements; a grid that is not given is at least that
  int words;   ///< words of 32 bits per cell
  int min_exponent;  ///< exponent of the smallest normal element

  /// The grid, once the largest element is known.
  __device__ int placed(const KeyEvents& events) const {
    if (given || events.largest == 0) return given ? grid : lowest;
    const int exponent = static_cast<int>(events.largest) - 1 + lowest;
    return max(exponent + headroom + 1 - bits, lowest);
  }
};

/// (-1)^negative · magnitude · 2^(grid + shift).
struct Units {
  std::uint64_t magnitude;
  int shift;
  bool negative;
};

/// Says that an element does not fit the window.
__device__ inline void miss(KeyEvents* events) {
  if (*static_cast<volatile std::uint32_t*>(&events->missed) == 0) atomicOr(&events->missed, 1u);
}

/// Elements of format T on a grid.
template <class T> class Gridded {
 public:
  using Bits = BitsOf<T>;

  __device__ Gridded(const Window& w, const KeyedElements& all)
      : all_{all},
        exact_{w.exact},
        grid_{w.placed(*all.events)},
        highest_{min(grid_ + w.bits - w.min_exponent, 2 * Format<T>::max_exponent)} {}

  /// Converts x to units. Returns false if there is nothing to add; an element that does not fit the window
  /// is recorded. flag(which) is called with what finish_sums has to know of the element.
  template <class Flag> __device__ bool units(Bits x, Units& u, Flag flag) const {
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
    if (field > highest_) {
      miss(all_.events);
      return false;
    }
    if (u.shift < 0) {
      const int below = min(-u.shift, fraction_bits + 2);  // bits below the grid
      const Wide half = Wide{1} << (below - 1), kept = significand >> below,
                 lost = significand & (half + half - 1);
      if (exact_ && lost != 0) {
        miss(all_.events);
        return false;
      }
      significand = kept + (lost > half || (lost == half && (kept & 1)));
      u.shift = 0;
      if (significand == 0) return false;
    }
    u.magnitude = significand;
    return true;
  }
  /// Converts x as the other form does, and records its flags for a result in global memory.
  __device__ bool units(Bits x, std::uint64_t result, Units& u) const {
    return units(x, u, [&](unsigned which) { flag(all_.flags, result, which); });
  }

 protected:
  using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int fraction_bits = Format<T>::precision - 1;
  static constexpr Wide hidden = Wide{1} << fraction_bits;

  const KeyedElements& all_;
  bool exact_;
  int grid_, highest_;  ///< an element whose exponent field is above `highest_` does not fit
};

/// Bits of a cell of so many words below the units of common elements.
template <int words> constexpr int skipped_bits = words == 3 ? 32 : 0;

/// Elements of up to 32 bits, most of which one instruction converts to a number of 64 bits.
///
/// That number counts units of 2^(grid + skipped). Elements are rounded to them; in an exact sum only those
/// are common that are whole numbers of such units.
template <class T, int skipped> class FastGridded : public Gridded<T> {
 public:
  using typename Gridded<T>::Bits;

  __device__ FastGridded(const Window& w, const KeyedElements& all) : Gridded<T>{w, all} {
    constexpr int coarsest = 252;  // every element rounds to 0, and both factors are normal numbers
    const int unit = min(this->grid_ + skipped, coarsest);
    // In two steps, since 2^-unit may be beyond the largest number.
    first_ = scale_of<fp32>(-unit / 2);
    second_ = scale_of<fp32>(-unit - -unit / 2);
    const int lowest = w.exact ? max(unit - Format<T>::min_quantum + 1, 1) : 0;  // exponent field
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

/// Elements for cells of so many words.
template <class T, int words>
using GriddedFor = std::conditional_t<(words < 4), FastGridded<T, skipped_bits<words>>, Gridded<T>>;

/// Adds units to a cell in shared memory. The carry comes from the old value of a word; most carries end
/// after the first or the second word.
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
/// first carry is needed.
template <int count> __device__ void add_to_cells(CellAndNumber (&x)[count], std::uint32_t stride) {
#pragma unroll
  for (CellAndNumber& own : x)
    if (own.low != 0) own.high += atomicAdd(own.cell, own.low) > ~own.low;
#pragma unroll
  for (CellAndNumber& own : x)
    if (own.high != 0) atomicAdd(own.cell + stride, own.high);
}

/// The integer in a cell in shared memory.
template <int words> __device__ Int128 cell_sum(std::uint32_t cell, std::uint32_t stride) {
  const auto at = [&](int i) {
    return std::uint64_t{shared_words[cell + static_cast<std::uint32_t>(i) * stride]};
  };
  const std::uint64_t low = at(0) | at(1) << 32;
  if constexpr (words == 2)
    return Int128::of(static_cast<std::int64_t>(low));
  else if constexpr (words == 3)
    return {low, static_cast<std::int32_t>(at(2))};
  else
    return {low, static_cast<std::int64_t>(at(2) | at(3) << 32)};
}

/// Words of 64 bits of a cell in global memory that is the sum of cells of so many words of 32 bits.
SAMESUM_HD constexpr std::uint64_t words_of_total(int words) { return words == 2 ? 1 : 2; }

/// Adds a signed integer of 128 bits to a cell in global memory, of one or two words of 64 bits.
__device__ inline void add_to_total(unsigned long long* cell, int words, std::uint64_t low,
                                    std::uint64_t high) {
  if (words_of_total(words) == 1) {
    if (low != 0) atomicAdd(cell, static_cast<unsigned long long>(low));
    return;
  }
  if (low != 0) high += atomicAdd(cell, static_cast<unsigned long long>(low)) > ~low;
  if (high != 0) atomicAdd(cell + 1, static_cast<unsigned long long>(high));
}

/// The sum in cell i.
__device__ inline Int128 total(const unsigned long long* totals, int words, std::uint64_t i) {
  if (words_of_total(words) == 1) return Int128::of(static_cast<std::int64_t>(totals[i]));
  return {totals[2 * i], static_cast<std::int64_t>(totals[2 * i + 1])};
}

__device__ inline void add_to_total(unsigned long long* cell, int words, const Units& u) {
  const int bit = u.shift & 63;
  std::uint64_t low = u.magnitude << bit, high = bit == 0 ? 0 : u.magnitude >> (64 - bit);
  if (u.shift >= 64) {
    high = low;
    low = 0;
  }
  if (u.negative) {
    low = ~low + 1;
    high = ~high + (low == 0);
  }
  add_to_total(cell, words, low, high);
}

}  // namespace samesum::gpu
