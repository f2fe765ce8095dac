/// Prefix sums of elements of any exponents in one double, or two, with a bound of what these lack, which
/// decides nearly all roundings. Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/exact/scanned_packs.hpp"

namespace samesum::cpu {
namespace {

/// A result needs one word more than its format: fp32 one double, fp64 two.
///
/// Bounds, where u = 2^-53 and a is the sum of the magnitudes of the elements of a pack up to a lane. One
/// word: each of the at most 3 steps in a pack, the sum of the pack and of what precedes it, and the addition
/// of the bound itself err by at most u times the magnitude of what they return, and those in a pack by 3u·a
/// in all. Two words: TwoSum is exact, and only the sums of lower words err, by u times their magnitudes. In
/// a pack, these are at most k·u·a after step k, which is two additions: they err by at most 12u²·a in all.
/// Factors and `unit` are rounded up, which covers what is of higher order and the rounding of the bounds.
///
/// Scaled elements may lose bits below 2^-1074, so one that is not 0 counts at least 2^-800 in `a`, which
/// also keeps the bounds from underflow. Before the first element that is not 0, the bound is 0, and so are
/// the results. A subnormal result of doubles is exact, so scaling it back rounds nothing.
template <class T, class F> class NearScanLoops : ScannedPacks<T, F> {
  using Packs = ScannedPacks<T, F>;
  using Packs::width, Packs::w, Packs::load;
  using typename Packs::V, typename Packs::Words;
  using Results = Register<F, width>;
  using ResultBits = Register<BitsOf<F>, width>;
  static constexpr bool has_low = std::is_same_v<F, fp64>;
  static constexpr std::size_t block = 256;
  static constexpr bool is_scaled = sizeof(T) == 8;
  static constexpr double unit = 0x1.1p-53;

 public:
  /// See ScanNearly.
  static std::size_t scan(const void* data, std::size_t n, bool exclusive, const double (&before)[2],
                          int scale, void* out, std::uint16_t* unknown) {
    const T* x = static_cast<const T*>(data);
    NearScanLoops sum{before, scale};
    F* to = static_cast<F*>(out);
    std::size_t count = 0;
    for (std::size_t done = 0; done < n; done += block) {
      const std::size_t mine = n - done < block ? n - done : block;
      F upper[block];
      if (exclusive ? sum.scan_block<true>(x + done, mine, to + done, upper)
                    : sum.scan_block<false>(x + done, mine, to + done, upper))
        for (std::size_t i = 0; i < mine; ++i)
          if (to_bits(to[done + i]) != to_bits(upper[i]))
            unknown[count++] = static_cast<std::uint16_t>(done + i);
    }
    return count;
  }

 private:
  /// Without `has_low`, `low` is not used.
  struct Sum {
    V high, low;
  };

  NearScanLoops(const double (&before)[2], int scale)
      : sum_{V::broadcast(before[0]), V::broadcast(before[1])},
        scale_{V::broadcast(power_of_two(scale))},
        back_{V::broadcast(power_of_two(-scale))} {
    if constexpr (!has_low) sum_.high = sum_.high + sum_.low;
    error_ = V::broadcast(has_low ? 0x1p-104 : 2 * unit) * counted(magnitude(sum_.high), sum_.high);
  }

  /// Scans a block. Writes the results for the least and for the largest sum that the bounds allow. Returns
  /// whether any of them differ.
  template <bool exclusive> bool scan_block(const T* x, std::size_t n, F* lower, F* upper) {
    const V u = V::broadcast(unit);
    ResultBits differ{};
    for (std::size_t i = 0; i < n; i += w) {
      V element = load(x + i, n - i);
      V size = magnitude(element);
      if constexpr (is_scaled) {
        size = counted(size * scale_, element);
        element = element * scale_;
      }
      Sum prefix = scan_lanes<1>(Sum{element, V::zero()});
      size = Packs::template scan_lanes<1>(size);
      const Sum all = last_lane(prefix);
      const V all_size{Packs::last_lane(size.v)};
      if constexpr (exclusive) {
        prefix = shifted<1>(prefix);
        size = V{Packs::template shifted<1>(size.v)};
      }
      V error;
      const Sum result = sum_of(sum_, prefix, size, error);
      // The addition of the bound to the last word errs, too.
      const V last = has_low ? result.low : result.high;
      const V most = error_ + u * (error + magnitude(last) + magnitude(last));
      V low = last - most, high = last + most;
      if constexpr (has_low) low = result.high + low, high = result.high + high;
      if constexpr (is_scaled) low = low * back_, high = high * back_;
      const Results below = convert_lanes<F, width>(low.v), above = convert_lanes<F, width>(high.v);
      differ |= same_bits<ResultBits>(below) ^ same_bits<ResultBits>(above);
      store_lanes(below, lower + i, n - i < w ? n - i : w);
      store_lanes(above, upper + i, n - i < w ? n - i : w);
      sum_ = sum_of(sum_, all, all_size, error);
      error_ = error_ + u * error;
    }
    BitsOf<F> differences[w], any = 0;
    std::memcpy(differences, &differ, sizeof differ);
    for (const BitsOf<F> bits : differences) any |= bits;
    return any != 0;
  }

  /// What an element x of this scaled size counts.
  [[gnu::always_inline]] static V counted(V size, V x) {
    const V least = V::broadcast(0x1p-800);
    return select(x.v == typename V::Storage{}, V::zero(), select(size.v > least.v, size, least));
  }
  /// The sum of the elements before a pack, and of elements of the pack, whose magnitudes have the sum
  /// `size`. `error` becomes a bound of what it lacks, less what the first sum does, in units of u.
  [[gnu::always_inline]] static Sum sum_of(const Sum& before, const Sum& pack, V size, V& error) {
    const Sum sum = sum_of(before, pack);
    if constexpr (has_low)
      error = V::broadcast(16 * unit) * size + (magnitude(before.low + pack.low) + magnitude(sum.low));
    else
      error = V::broadcast(4.0) * size + magnitude(sum.high);
    return sum;
  }
  [[gnu::always_inline]] static Sum sum_of(const Sum& a, const Sum& b) {
    if constexpr (!has_low) return {a.high + b.high, V::zero()};
    const auto [sum, error] = two_sum(a.high, b.high);
    return {sum, (a.low + b.low) + error};
  }
  template <int by> [[gnu::always_inline]] static Sum shifted(const Sum& s) {
    if constexpr (!has_low) return {V{Packs::template shifted<by>(s.high.v)}, V::zero()};
    return {V{Packs::template shifted<by>(s.high.v)}, V{Packs::template shifted<by>(s.low.v)}};
  }
  [[gnu::always_inline]] static Sum last_lane(const Sum& s) {
    return {V{Packs::last_lane(s.high.v)}, V{Packs::last_lane(s.low.v)}};
  }
  template <int by> [[gnu::always_inline]] static Sum scan_lanes(const Sum& s) {
    if constexpr (by < width)
      return scan_lanes<2 * by>(sum_of(s, shifted<by>(s)));
    else
      return s;
  }

  Sum sum_;  ///< of the elements so far, in each lane
  V scale_, back_;
  V error_;  ///< a bound of what it lacks, in each lane
};

}  // namespace
}  // namespace samesum::cpu
