/// Partial exact sums of a thread: fp64 bins on a fixed grid of exponents, or expansions for elements of
/// fp64. Their contents become digits of one wide integer.
#pragma once

#include "samesum/backend/cuda/exact/digits.cuh"

namespace samesum::gpu {

inline constexpr int exact_threads = 256;
/// Vectors per batch: a thread loads the next batch before it adds the previous one.
inline constexpr int exact_batch = 4;

/// 16 bytes of elements.
template <class T> struct alignas(16) Vector {
  static constexpr int size = 16 / sizeof(T);
  T element[size];
};

template <class T> __device__ bool is_special(T x) {
  return (to_bits(x) & Format<T>::infinity) == Format<T>::infinity;
}

/// Bin b holds elements whose exponent field e satisfies (e + offset) / span = b, as multiples of one unit,
/// and sums of neighbours whose smallest is such an element. A thread may add `most` elements to a bin: their
/// sum is below 2^51 units, so fp64 does not round.
template <class T> struct Grid;
template <> struct Grid<fp16> { static constexpr int span = 32, offset = 0, bins = 1, most = 1 << 11; };
template <> struct Grid<bf16> { static constexpr int span = 16, offset = 8, bins = 17, most = 1 << 15; };
template <> struct Grid<fp32> { static constexpr int span = 16, offset = 8, bins = 17, most = 1 << 12; };

template <class T> class Bins {
  template <class> friend class Bins;
  static constexpr int fraction = Format<T>::precision - 1, bias = Format<T>::max_exponent;
  static constexpr int span = Grid<T>::span, offset = Grid<T>::offset, bins = Grid<T>::bins;
  static constexpr int size = Vector<T>::size;
  static constexpr bool narrow = sizeof(T) == 2;
  /// A word holds two 16-bit elements, so the words that it is compared with hold two copies.
  static constexpr unsigned copies = narrow ? 0x00010001u : 1u;

  /// Bin b counts units of 2^unit(b). Exponent field 0 means the same exponent as field 1.
  static constexpr int unit(int b) {
    const int field = b * span - offset;
    return (field > 1 ? field : 1) - bias - fraction;
  }

 public:
  struct Shared {
    double bin[bins][exact_threads];
  };
  /// Batches after which the bins must be emptied; one is reserved for elements outside of vectors.
  static constexpr int batches = Grid<T>::most / (exact_batch * size) - 1;
  static constexpr int first_digit = (unit(0) - Exact::lowest_exponent) / 32;
  static constexpr int last_digit =
      (unit(bins - 1) - Exact::lowest_exponent) / 32 + 3;  // the last one for a carry
  static_assert(last_digit < Exact::digit_count);

  __device__ Bins(Shared& shared, Digits&) : mine_{&shared.bin[0][threadIdx.x]} {
    for (int b = 0; b < bins; ++b) mine_[b * exact_threads] = 0;
  }

  /// Adds a vector. Elements of similar magnitude, and those that share a bin, cost one access to a bin.
  /// Returns the flags of special values, which are not added to bins.
  __device__ unsigned add(const Vector<T>& x) {
    const WithoutSigns magnitude{x};
    const unsigned most = magnitude.most();
    if constexpr (narrow) {
      // Elements within `binades` binades are multiples of one unit and together below 2^24 units: fp32 adds
      // them without rounding. A bin of bf16 holds most / 8 such sums.
      constexpr int binades =
          Format<fp32>::precision - Format<T>::precision - std::countr_zero(unsigned{size});
      constexpr int to_spare = Format<T>::max_exponent < Format<fp32>::max_exponent ? 0 : 3;
      const unsigned least = magnitude.least();
      if (most - least <= (unsigned{binades} << fraction) * copies &&
          most < (unsigned{Format<T>::infinity} - (unsigned{to_spare} << fraction)) * copies) {
        bin(least >> 16) += narrow_sum(x);
        return 0;
      }
    }
    if (most >= unsigned{Format<T>::infinity} * copies) return add_each(mine_, x);
    if (magnitude.share_a_bin())
      bin(magnitude.of(0)) += wide_sum(x);
    else
      for (int i = 0; i < size; ++i) bin(magnitude.of(i)) += scaled(x.element[i]);
    return 0;
  }

  __device__ unsigned add(T x) { return add_one(mine_, x); }

  /// Empties the bins into the digits of the block. The whole block calls it; afterwards the digits are
  /// complete.
  __device__ void finish(Shared& shared, Digits& digits) {
    if constexpr (bins == 1) {
      mine_[0] += single_;
      single_ = 0;
    }
    __syncthreads();  // all threads have written their columns
    for (int b = warp_index(); b < bins; b += exact_threads / warp) {
      double column[exact_threads / warp];
      bool any = false;
      for (int i = 0; i < exact_threads / warp; ++i) {
        column[i] = shared.bin[b][i * warp + thread()];
        any = any || column[i] != 0;
      }
      if (!__any_sync(whole_warp, any)) continue;  // usually few bins are in use
      // A bin has fewer than 2^51 units.
      const double anchor = unit_anchor(unit(b) + bias - 1023);
      std::int64_t total = 0;
      for (int i = 0; i < exact_threads / warp; ++i) {
        total += units_above(anchor, column[i] + anchor);
        shared.bin[b][i * warp + thread()] = 0;
      }
      for (int delta = warp / 2; delta > 0; delta /= 2) total += shuffle_down(total, delta);
      if (thread() == 0) deposit(digits, total, unit(b));
    }
    __syncthreads();  // all warps have added their bins to the digits
  }

 private:
  __device__ static int bin_of(unsigned magnitude) {
    return static_cast<int>((magnitude + (unsigned{offset} << fraction)) >> fraction) / span;
  }
  __device__ double& bin(unsigned magnitude) {
    if constexpr (bins == 1) return single_;
    return mine_[bin_of(magnitude) * exact_threads];
  }

  /// Fallback, not inlined, so that it costs the caller no registers.
  __device__ __noinline__ static unsigned add_each(double* mine, Vector<T> x) {
    unsigned flags = 0;
#pragma unroll 1
    for (int i = 0; i < size; ++i) flags |= add_one(mine, x.element[i]);
    return flags;
  }
  __device__ static unsigned add_one(double* mine, T x) {
    if (is_special(x)) return special_flags_of(x);
    mine[bin_of(to_bits(x) & ~unsigned{Format<T>::sign_bit}) * exact_threads] += scaled(x);
    return 0;
  }

  /// The magnitudes of a vector.
  struct WithoutSigns {
    unsigned word[4];
    __device__ explicit WithoutSigns(const Vector<T>& x) {
      const auto raw = std::bit_cast<std::array<unsigned, 4>>(x);
      for (int i = 0; i < 4; ++i) word[i] = raw[i] & ~(Format<T>::sign_bit * copies);
    }
    /// The largest magnitude, with as many copies as a word has elements.
    __device__ unsigned most() const {
      if constexpr (!narrow) return max(max(word[0], word[1]), max(word[2], word[3]));
      const unsigned two = __vmaxu2(__vmaxu2(word[0], word[1]), __vmaxu2(word[2], word[3]));
      return __vmaxu2(two, __byte_perm(two, 0, 0x1032));
    }
    __device__ unsigned least() const {
      const unsigned two = __vminu2(__vminu2(word[0], word[1]), __vminu2(word[2], word[3]));
      return __vminu2(two, __byte_perm(two, 0, 0x1032));
    }
    __device__ bool share_a_bin() const {
      if constexpr (bins == 1) return true;
      if constexpr (narrow) return false;  // rare for elements of different magnitude
      unsigned differ = 0;
      for (int i = 1; i < 4; ++i) differ |= (word[0] + shift) ^ (word[i] + shift);
      return differ < unsigned{span} << fraction;
    }
    __device__ unsigned of(int i) const { return narrow ? word[i / 2] >> (i % 2 * 16) & 0xffffu : word[i]; }

   private:
    static constexpr unsigned shift = unsigned{offset} << fraction;
  };

  /// x·2^(bias - 1023): copies the fields of the narrower format into those of a double, subnormals included.
  __device__ static double scaled(T x) {
    if constexpr (narrow) {
      constexpr int up = 20 - fraction;
      const int wide = static_cast<int>(unsigned{x.bits} << 16) >> (16 - up);
      return __hiloint2double(wide & static_cast<int>(0x80000000u | 0x7fffu << up), 0);
    } else {
      const int bits = __float_as_int(x);
      return __hiloint2double((bits >> 3) & static_cast<int>(0x8fffffffu), bits << 29);
    }
  }
  template <class C> __device__ static C add_up(std::array<C, size> x) {
    for (int half = size / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) x[i] += x[i + half];
    return x[0];
  }
  __device__ static double wide_sum(const Vector<T>& x) {
    std::array<double, size> s;
    for (int i = 0; i < size; ++i) s[i] = scaled(x.element[i]);
    return add_up(s);
  }
  /// Returns the sum that wide_sum returns, added in fp32. `scale` is the power of two between the scales of
  /// T and fp32.
  __device__ static double narrow_sum(const Vector<T>& x) {
    std::array<float, size> s;
    const auto word = std::bit_cast<std::array<unsigned, 4>>(x);
    for (int i = 0; i < 4; ++i) {
      s[i] = widen(from_bits<T>(static_cast<std::uint16_t>(word[i])));
      if constexpr (std::is_same_v<T, bf16>)
        s[i + 4] = __uint_as_float(word[i] & 0xffff0000u);
      else
        s[i + 4] = widen(from_bits<T>(static_cast<std::uint16_t>(word[i] >> 16)));
    }
    constexpr float scale = static_cast<float>(power_of_two(bias - Format<fp32>::max_exponent));
    return Bins<fp32>::scaled(scale == 1 ? add_up(s) : scale * add_up(s));
  }

  double* mine_;
  double single_ = 0;
};

/// Sums of fp64 as expansions of a few words, each of which takes the rounding errors of the previous one
/// (Collange et al. 2015). An element that the words cannot hold goes to the digits.
class ThreadExpansions {
  static constexpr int words = 3, several = Vector<fp64>::size;  // one expansion per element of a vector
  using Expansion = std::array<double, words>;

 public:
  struct Shared {};
  static constexpr int batches = std::numeric_limits<int>::max();
  static constexpr int first_digit = 0, last_digit = Exact::digit_count - 1;

  __device__ ThreadExpansions(Shared&, Digits& digits) : digits_{digits} {
    for (Expansion& e : expansion_) e.fill(0);
    __syncthreads();  // the digits are zero before any thread adds to them
  }

  __device__ unsigned add(const Vector<fp64>& x) {
    // Two words usually suffice.
    std::array<Expansion, several> grown = expansion_;
    bool lost = false;
    for (int i = 0; i < several; ++i) lost |= grow<2>(grown[i], x.element[i]) != 0;
    if (!lost) {
      expansion_ = grown;
      return 0;
    }
    unsigned flags = 0;
    for (int i = 0; i < several; ++i) {
      Expansion all = expansion_[i];
      if (grow<words>(all, x.element[i]) == 0)
        expansion_[i] = all;
      else
        flags |= add(x.element[i]);
    }
    return flags;
  }
  __device__ unsigned add(fp64 x) {
    if (is_special(x)) return special_flags_of(x);
    deposit(digits_, x);
    return 0;
  }

  __device__ void finish(Shared&, Digits& digits) {
    std::array<double, several * words> all;
    for (int i = 0; i < several; ++i)
      for (int w = 0; w < words; ++w) all[i * words + w] = expansion_[i][w];
    deposit_of_warp(digits, all);
    __syncthreads();  // all warps have added to the digits
  }

 private:
  /// Adds x to the first `count` words and returns what they cannot hold; NaN if x is not finite.
  template <int count> __device__ static double grow(Expansion& e, double x) {
    Scalar<fp64> rest{x};
    for (int i = 0; i < count; ++i) {
      const auto [sum, error] = two_sum(Scalar<fp64>{e[i]}, rest);
      e[i] = sum.v;
      rest = error;
    }
    return rest.v;
  }

  Digits& digits_;
  std::array<Expansion, several> expansion_;
};

}  // namespace samesum::gpu
