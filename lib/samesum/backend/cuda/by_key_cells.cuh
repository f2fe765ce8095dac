/// Sums by key in integers: how an element becomes units of a grid, and how units are added to cells.
///
/// A cell is an integer in words of 32 bits (shared memory) or of 64 bits (global memory). Integers do not
/// depend on the order of additions, so neither do the results.
#pragma once

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cuda/digits.cuh"
#include "samesum/operation/keys.hpp"

namespace samesum::gpu {

/// What has happened to a call by key, in device memory. All zero at first.
struct KeyEvents {
  std::uint64_t bad_key;     ///< complement of the index of the first key out of range; 0 if there is none
  std::uint32_t largest;     ///< 1 + exponent field of the largest finite element that was looked at
  std::uint32_t missed;      ///< whether an element does not fit the window
  std::uint32_t ambiguous;   ///< whether the sign of a zero depends on a second look at the elements
  std::uint32_t overflowed;  ///< whether a result does not fit the word of the accumulator
};

/// What the elements of one key have been, in bits of a byte per result.
enum KeyFlag : unsigned {
  key_nan = 1,
  key_plus_infinity = 2,
  key_minus_infinity = 4,
  key_minus_zero = 8,
  key_other = 16,      ///< +0, or after a second look any element but -0
  key_question = 32,   ///< the result waits for a second look
  key_seen = 64,       ///< the second look has seen an element
};

/// The elements of a call by key. Element e has the key of index e / inner, and belongs to result
/// key·inner + e % inner.
struct KeyedElements {
  KeyFormat format;
  const void* keys;
  const void* x;  ///< null: every element is 1, for counts
  std::uint64_t elements, inner, bins;
  KeyEvents* events;
  std::uint32_t* flags;  ///< four results a word
  std::uint64_t results() const { return bins * inner; }
};

/// The integers of a sum by key: multiples of 2^grid, with grid derived from the largest element.
struct Window {
  int grid;             ///< used as it is if `given`
  bool given;           ///< otherwise the grid follows from KeyEvents::largest
  bool exact;           ///< whether an element between two multiples is a miss; otherwise it is rounded
  bool keeps_zeros;     ///< whether zeros are counted by sign
  int headroom;         ///< an element may exceed the largest that was looked at by this many binades
  int bits;             ///< |element| < 2^(grid + bits)
  int lowest;           ///< a derived grid is at least this
  int words;            ///< of 32 bits, in a cell
};

/// A window in the terms of elements of format T.
struct Place {
  int grid;          ///< exponent of the grid
  unsigned highest;  ///< highest exponent field that fits
};

/// The window after the search for the largest element.
template <class T> __device__ Place placed(const Window& w, const KeyEvents& events) {
  constexpr int of_field_0 = Format<T>::min_exponent - 1, most = 2 * Format<T>::max_exponent;
  Place p;
  p.grid = w.grid;
  if (!w.given) {
    const int field = static_cast<int>(events.largest == 0 ? 1 : events.largest - 1);
    p.grid = max(max(field, 1) + of_field_0 + w.headroom + 1 - w.bits, w.lowest);
  }
  // an element with this field is below 2^(of_field_0 + field + 1)
  const int highest = p.grid + w.bits - of_field_0 - 1;
  p.highest = static_cast<unsigned>(min(max(highest, 0), most));
  return p;
}

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

__device__ inline void flag(std::uint32_t* flags, std::uint64_t result, unsigned which) {
  std::uint32_t* const word = flags + result / 4;
  const std::uint32_t bits = which << 8 * (result % 4);
  if ((*static_cast<volatile std::uint32_t*>(word) & bits) != bits) atomicOr(word, bits);
}
__device__ inline unsigned flags_of(const std::uint32_t* flags, std::uint64_t result) {
  return flags[result / 4] >> 8 * (result % 4) & 0xff;
}

/// Rounds x to the grid. Returns false if there is nothing to add; then the flag or the miss is recorded.
template <class T>
__device__ bool to_units(BitsOf<T> bits, const Window& w, Place p, const KeyedElements& all,
                         std::uint64_t result, Units& u) {
  constexpr int fraction_bits = Format<T>::precision - 1;
  const BitsOf<T> magnitude = static_cast<BitsOf<T>>(bits & ~Format<T>::sign_bit);
  const unsigned field = static_cast<unsigned>(magnitude >> fraction_bits);
  u.negative = bits != magnitude;
  if (magnitude == 0) {
    if (w.keeps_zeros) flag(all.flags, result, u.negative ? key_minus_zero : key_other);
    return false;
  }
  if (field > p.highest) {
    if (magnitude < Format<T>::infinity)
      miss(all.events);
    else
      flag(all.flags, result,
           magnitude > Format<T>::infinity ? key_nan
           : u.negative                    ? key_minus_infinity
                                           : key_plus_infinity);
    return false;
  }
  using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  Wide significand = static_cast<Wide>(magnitude & ((BitsOf<T>{1} << fraction_bits) - 1));
  if (field != 0) significand |= Wide{1} << fraction_bits;
  u.shift = static_cast<int>(max(field, 1u)) - 1 + Format<T>::min_quantum - p.grid;
  if (u.shift < 0) {
    const int below = -u.shift;  // bits below the grid
    u.shift = 0;
    if (below > Format<T>::precision) {  // less than half a unit
      if (w.exact) miss(all.events);
      return false;
    }
    const Wide lost = significand & ((Wide{1} << below) - 1);
    if (w.exact && lost != 0) {
      miss(all.events);
      return false;
    }
    const Wide half = Wide{1} << (below - 1), kept = significand >> below;
    significand = kept + (lost > half || (lost == half && (kept & 1)));
  }
  u.magnitude = significand;
  return true;
}

/// Adds units to a cell in shared memory: words of 32 bits, `stride` words apart. The carry comes from the old
/// value of a word; most chains end after the first or the second word.
template <int parts>
__device__ void add_to_cell(std::uint32_t* cell, std::uint32_t stride, int words, const Units& u) {
  const unsigned bit = u.shift & 31;
  const std::uint64_t low = u.magnitude << bit;
  std::uint32_t part[parts];
  part[0] = static_cast<std::uint32_t>(low);
  part[1] = static_cast<std::uint32_t>(low >> 32);
  if constexpr (parts == 3) part[2] = bit == 0 ? 0 : static_cast<std::uint32_t>(u.magnitude >> (64 - bit));
  std::uint32_t above = 0;  // all words above the parts
  if (u.negative) {
    above = ~0u;
    std::uint32_t one = 1;
#pragma unroll
    for (int i = 0; i < parts; ++i) {
      part[i] = ~part[i] + one;
      one = one != 0 && part[i] == 0;
    }
  }
  int word = u.shift >> 5;
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

/// Adds a signed integer of 128 bits to a cell in global memory, of one or two words of 64 bits.
__device__ inline void add_to_total(unsigned long long* cell, int words, std::uint64_t low, std::uint64_t high) {
  if (words == 2) {
    if (low != 0) atomicAdd(cell, static_cast<unsigned long long>(low));
    return;
  }
  if (low != 0) high += atomicAdd(cell, static_cast<unsigned long long>(low)) > ~low;
  if (high != 0) atomicAdd(cell + 1, static_cast<unsigned long long>(high));
}

/// The sum in cell i.
__device__ inline Int128 total(const unsigned long long* totals, int words, std::uint64_t i) {
  if (words == 2) return Int128::of(static_cast<std::int64_t>(totals[i]));
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

__device__ inline void report_bad_key(KeyEvents* events, std::uint64_t i) {
  atomicMax(reinterpret_cast<unsigned long long*>(&events->bad_key), ~static_cast<unsigned long long>(i));
}

/// Adds (-1)^negative · magnitude · 2^exponent to digits of 32 bits; add(i, part) adds to digit i.
template <class Range, class Add>
__device__ void deposit(bool negative, std::uint64_t magnitude, int exponent, Add add) {
  const int position = exponent - Range::lowest;
  const ThreeDigits three{negative, magnitude, position % 32};
  for (int i = 0; i < 3; ++i)
    if (three.digit[i] != 0) add(position / 32 + i, three.digit[i]);
}

}  // namespace samesum::gpu
