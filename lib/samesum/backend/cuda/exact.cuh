/// Exact sums on a GPU: fp64 bins on a fixed grid of exponents (of fp64 itself: expansions), folded into one
/// wide integer. Integer addition is associative, so nothing here depends on who comes when.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/backend/cuda/digits.cuh"
#include "samesum/backend/cuda/tree.cuh"

namespace samesum::gpu {

inline constexpr int exact_threads = 256;

/// 16 bytes of elements.
template <class T> struct alignas(16) Vector {
  static constexpr int size = 16 / sizeof(T);
  T element[size];
};

template <class T> __device__ bool is_special(T x) {
  return (to_bits(x) & Format<T>::infinity) == Format<T>::infinity;
}
template <class T> __device__ unsigned special_flags(T x) {
  if (is_nan_bits<T>(to_bits(x))) return Exact::seen_nan;
  return to_bits(x) & Format<T>::sign_bit ? Exact::seen_minus_infinity : Exact::seen_plus_infinity;
}

/// Bin b holds the elements whose exponent field e has (e + offset) / span = b, as multiples of one unit. A
/// thread may put `most` elements into it: their sum is below 2^51 units, so fp64 loses nothing.
template <class T> struct Grid;
template <> struct Grid<fp16> {
  static constexpr int span = 32, offset = 0, bins = 1;
  static constexpr std::size_t most = 1 << 11;
};
template <> struct Grid<bf16> {
  static constexpr int span = 32, offset = 16, bins = 9;
  static constexpr std::size_t most = 1 << 12;
};
template <> struct Grid<fp32> {
  static constexpr int span = 16, offset = 8, bins = 17;
  static constexpr std::size_t most = 1 << 12;
};
template <> struct Grid<fp64> {
  static constexpr std::size_t most = 1 << 16;  // digits of a block: 256 times that of less than 2^32 each
};

template <class T> class Bins {
  static constexpr int fraction = Format<T>::precision - 1, bias = Format<T>::max_exponent;
  static constexpr int span = Grid<T>::span, offset = Grid<T>::offset, bins = Grid<T>::bins;
  static constexpr int key_bits = fraction + std::countr_zero(unsigned{span});  // below them: within a bin
  static constexpr unsigned special_key = Format<T>::infinity + (unsigned{offset} << fraction);

 public:
  struct Shared {
    double bin[bins][exact_threads];
    std::int64_t total[bins];
  };

  __device__ Bins(Shared& shared, Digits&) : mine_{&shared.bin[0][threadIdx.x]} {
    for (int b = 0; b < bins; ++b) mine_[b * exact_threads] = 0;
  }

  /// Elements that share a bin cost one access to it. Returns the flags of special values, which are kept out
  /// of the bins.
  __device__ unsigned add(const Vector<T>& x) {
    constexpr int size = Vector<T>::size;
    const Keys key{x};
    if (key.most() >= special_key) {
      unsigned flags = 0;
      for (int i = 0; i < size; ++i) flags |= add(x.element[i]);
      return flags;
    }
    if constexpr (bins == 1) {
      single_ += tree_sum(x);
    } else if (key.share_a_bin()) {
      mine_[key.bin(0) * exact_threads] += tree_sum(x);
    } else {
      for (int i = 0; i < size; ++i) mine_[key.bin(i) * exact_threads] += scaled(x.element[i]);
    }
    return 0;
  }

  __device__ unsigned add(T x) {
    const unsigned key = key_of(x);
    if (key >= special_key) return special_flags(x);
    if constexpr (bins == 1)
      single_ += scaled(x);
    else
      mine_[(key >> key_bits) * exact_threads] += scaled(x);
    return 0;
  }

  /// The block's sum as digits. To be called by the whole block; the first warp may read them afterwards.
  __device__ void finish(Shared& shared, Digits& digits) {
    if constexpr (bins == 1) mine_[0] = single_;
    __syncthreads();  // the columns of all threads
    for (int b = warp_index(); b < bins; b += exact_threads / warp) {
      double column[exact_threads / warp];
      bool any = false;
      for (int i = 0; i < exact_threads / warp; ++i) {
        column[i] = shared.bin[b][i * warp + thread()];
        any = any || column[i] != 0;
      }
      std::int64_t total = 0;
      if (__any_sync(whole_warp, any)) {  // few bins are in use, as a rule
        // Beside 1.5·2^52 units, fewer than 2^51 of them are counted by the last bits.
        const double anchor = 1.5 * power_of_two(52 + unit(b) + bias - 1023);
        for (const double sum : column)
          total += __double_as_longlong(sum + anchor) - __double_as_longlong(anchor);
        for (int delta = warp / 2; delta > 0; delta /= 2) total += shuffle_down(total, delta);
      }
      if (thread() == 0) shared.total[b] = total;
    }
    __syncthreads();  // the totals of all bins
    if (warp_index() == 0) gather(shared.total, digits);
  }

 private:
  /// What bin b counts: 2^unit. Exponent field 0 means the same exponent as field 1.
  static constexpr int unit(int b) { return max_of(b * span - offset, 1) - bias - fraction; }
  static constexpr int max_of(int a, int b) { return a > b ? a : b; }

  /// Each digit from the bins that reach into it.
  __device__ static void gather(const std::int64_t* total, Digits& digits) {
    constexpr int first = (unit(0) - Exact::lowest_exponent) / 32;
    constexpr int last = (unit(bins - 1) - Exact::lowest_exponent) / 32 + 2;
    static_assert(last - first < warp && last < Exact::digit_count);
    const int i = first + thread();
    if (i > last) return;
    std::int64_t sum = 0;
    for (int b = max((i - 3 - first) * 32 / span, 0); b < bins; ++b) {
      const int position = unit(b) - Exact::lowest_exponent, part = i - position / 32, shift = position % 32;
      if (part < 0) break;
      if (part == 0) sum += (total[b] << shift) & 0xffffffff;
      if (part == 1) sum += (total[b] >> (32 - shift)) & 0xffffffff;
      if (part == 2) sum += total[b] >> min(64 - shift, 63);
    }
    digits.digit[i] = sum;
  }

  /// The keys of a vector: magnitudes plus the grid's offset, as many to a word as elements are.
  struct Keys {
    static constexpr int per_word = 4 / sizeof(T);
    unsigned word[4];
    __device__ explicit Keys(const Vector<T>& x) {
      constexpr unsigned ones = per_word == 2 ? 0x00010001u : 1u;
      const uint4 w = reinterpret_cast<const uint4&>(x);
      const unsigned raw[4] = {w.x, w.y, w.z, w.w};
      for (int i = 0; i < 4; ++i)
        word[i] = (raw[i] & ~(Format<T>::sign_bit * ones)) + (unsigned{offset} << fraction) * ones;
    }
    __device__ unsigned most() const {
      if constexpr (per_word == 1) return max(max(word[0], word[1]), max(word[2], word[3]));
      const unsigned two = __vmaxu2(__vmaxu2(word[0], word[1]), __vmaxu2(word[2], word[3]));
      return max(two & 0xffffu, two >> 16);
    }
    __device__ bool share_a_bin() const {
      const unsigned first = per_word == 1 ? word[0] : __byte_perm(word[0], 0, 0x1010);
      const unsigned differ = (word[0] ^ first) | (word[1] ^ first) | (word[2] ^ first) | (word[3] ^ first);
      constexpr unsigned bin_bits =
          per_word == 1 ? ~0u >> key_bits << key_bits : (0xffffu >> key_bits << key_bits) * 0x00010001u;
      return (differ & bin_bits) == 0;
    }
    __device__ unsigned bin(int i) const {
      return (per_word == 1 ? word[i] : word[i / 2] >> (i % 2 * 16) & 0xffffu) >> key_bits;
    }
  };
  __device__ static unsigned key_of(T x) {
    return (to_bits(x) & ~unsigned{Format<T>::sign_bit}) + (unsigned{offset} << fraction);
  }

  /// x times 2^(bias - 1023): the fields of a narrower format are fields of a double, subnormals included.
  __device__ static double scaled(T x) {
    if constexpr (sizeof(T) == 2) {
      constexpr int up = 20 - fraction;
      const int wide = static_cast<int>(unsigned{x.bits} << 16) >> (16 - up);
      return __hiloint2double(wide & static_cast<int>(0x80000000u | 0x7fffu << up), 0);
    } else {
      const int bits = __float_as_int(x);
      return __hiloint2double((bits >> 3) & static_cast<int>(0x8fffffffu), bits << 29);
    }
  }
  __device__ static double tree_sum(const Vector<T>& x) {
    double s[Vector<T>::size];
    for (int i = 0; i < Vector<T>::size; ++i) s[i] = scaled(x.element[i]);
    for (int half = Vector<T>::size / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) s[i] += s[i + half];
    return s[0];
  }

  double* mine_;
  double single_ = 0;
};

/// fp64: expansions, sums of a few words whose errors go down from word to word (Collange et al. 2015). An
/// element that would lose anything goes to the digits.
class Expansions {
  static constexpr int words = 3, several = Vector<fp64>::size;  // one for each element of a vector
  using Expansion = std::array<double, words>;

 public:
  struct Shared {};

  __device__ Expansions(Shared&, Digits& digits) : digits_{digits} {
    for (Expansion& e : expansion_) e.fill(0);
    __syncthreads();  // the digits are zero: anybody may add to them
  }

  __device__ unsigned add(const Vector<fp64>& x) {
    // Two words will do, as a rule.
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
    if (is_special(x)) return special_flags(x);
    digits_.deposit(x);
    return 0;
  }

  /// The words of a warp as multiples of one power of two, 51 bits of the largest at a time.
  __device__ void finish(Shared&, Digits& digits) {
    for (;;) {
      double most = 0;
      for (const Expansion& e : expansion_)
        for (const double word : e) most = std::max(most, std::abs(word));
      if (!__any_sync(whole_warp, most != 0)) break;
      const int field = static_cast<int>(__reduce_max_sync(whole_warp, __double2hiint(most)) >> 20);
      const int unit = field - 1022 - 51;
      if (field == 0 || unit + 53 > Format<fp64>::max_exponent) {  // no anchor, or no room beside it
        for (const Expansion& e : expansion_) deposit_all(digits, e);
        break;
      }
      const double anchor = 1.5 * power_of_two(unit + 52);
      std::int64_t total = 0;
      for (Expansion& e : expansion_)
        for (double& word : e) {
          const double beside = word + anchor;
          total += __double_as_longlong(beside) - __double_as_longlong(anchor);
          word -= beside - anchor;
        }
      for (int delta = warp / 2; delta > 0; delta /= 2) total += shuffle_down(total, delta);
      if (thread() == 0) digits.deposit(total, unit);
    }
    __syncthreads();  // the digits are complete
  }

 private:
  /// Adds x to the first words and returns what is lost; NaN where x is not finite.
  template <int count> __device__ static double grow(Expansion& e, double x) {
    Scalar<fp64> rest{x};
    for (int i = 0; i < count; ++i) {
      const auto [sum, error] = two_sum(Scalar<fp64>{e[i]}, rest);
      e[i] = sum.v;
      rest = error;
    }
    return rest.v;
  }

  /// By value: what has an address is not in registers.
  __device__ __noinline__ static void deposit_all(Digits& digits, Expansion e) {
    for (const double word : e) digits.deposit(word);
  }

  Digits& digits_;
  std::array<Expansion, several> expansion_;
};

template <class T> using Summer = std::conditional_t<sizeof(T) == 8, Expansions, Bins<T>>;

/// Vectors that a thread loads before it adds the ones it loaded before.
inline constexpr int exact_batch = 4;

/// Any grid will do in which no thread gets more than Grid<T>::most elements.
template <class T>
__global__ void __launch_bounds__(exact_threads, sizeof(T) == 8 ? 3 : 4)
    sum_exactly(const T* __restrict__ x, std::size_t n, Header* header, ExactResult result) {
  __shared__ typename Summer<T>::Shared shared;
  __shared__ Digits digits;
  __shared__ unsigned flags_of_warp[exact_threads / warp];

  // Elements before and after the aligned vectors are added one by one.
  const std::size_t misaligned = (16 - reinterpret_cast<std::uintptr_t>(x) % 16) % 16 / sizeof(T);
  const std::size_t head = min(misaligned, n), vectors = (n - head) / Vector<T>::size;
  const std::size_t tail = head + vectors * Vector<T>::size;
  const auto* aligned = reinterpret_cast<const uint4*>(x + head);
  const std::size_t stride = std::size_t{gridDim.x} * exact_threads;
  constexpr unsigned zero = sizeof(T) == 2 ? 0x80008000u : 0x80000000u;  // -0, in the words of a vector
  constexpr uint4 minus_zero = sizeof(T) == 8 ? uint4{0, zero, 0, zero} : uint4{zero, zero, zero, zero};
  struct Batch {
    uint4 vector[exact_batch];
  };
  const auto is_whole = [&](std::size_t v) { return v + (exact_batch - 1) * stride < vectors; };
  const auto load_batch = [&](std::size_t v) {
    Batch batch;
    if (is_whole(v))
      for (int i = 0; i < exact_batch; ++i) batch.vector[i] = aligned[v + i * stride];
    else
      for (int i = 0; i < exact_batch; ++i)
        batch.vector[i] = v + i * stride < vectors ? aligned[v + i * stride] : minus_zero;
    return batch;
  };

  std::size_t v = std::size_t{blockIdx.x} * exact_threads + threadIdx.x;
  Batch next = load_batch(v);  // one batch is on its way while another is added
  digits.clear();
  Summer<T> sum{shared, digits};
  unsigned flags = n > 0 ? Exact::seen_any : 0, other = 0;
  const auto add_one = [&](T element) {
    flags |= sum.add(element);
    other |= to_bits(element) != Format<T>::sign_bit;
  };
  if (blockIdx.x == 0 && threadIdx.x < head) add_one(x[threadIdx.x]);
  if (blockIdx.x == 0 && threadIdx.x < n - tail) add_one(x[tail + threadIdx.x]);
#pragma unroll 1
  while (v < vectors) {
    const Batch batch = next;
    const bool whole = is_whole(v);
    const std::size_t first = v;
    v += exact_batch * stride;
    next = load_batch(v);
#pragma unroll
    for (int i = 0; i < exact_batch; ++i) {
      if (!whole && first + i * stride >= vectors) break;
      const uint4 w = batch.vector[i];
      other |= (w.x ^ minus_zero.x) | (w.y ^ minus_zero.y) | (w.z ^ minus_zero.z) | (w.w ^ minus_zero.w);
      flags |= sum.add(reinterpret_cast<const Vector<T>&>(w));
    }
  }
  if (other) flags |= Exact::seen_other_than_minus_zero;
  flags = __reduce_or_sync(whole_warp, flags);
  if (thread() == 0) flags_of_warp[warp_index()] = flags;
  sum.finish(shared, digits);

  if (warp_index() > 0) return;  // one warp finishes
  flags = __reduce_or_sync(whole_warp, thread() < warps() ? flags_of_warp[thread()] : 0);
  if (gridDim.x == 1 || meet(digits, flags, *header)) write(result, digits, flags);
}

}  // namespace samesum::gpu
