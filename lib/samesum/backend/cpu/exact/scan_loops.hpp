/// Exact prefix sums and rolling sums: the prefixes of a block are exact in one double, or two, per element,
/// and a sum of these and of all elements before is rounded once. In a rolling sum the elements are
/// differences of one that enters the window and one that leaves it. Each instruction set compiles its own
/// copy.
#pragma once

#include "samesum/backend/cpu/exact/extremes.hpp"
#include "samesum/backend/cpu/exact/scanned_packs.hpp"
#include "samesum/backend/cpu/exact/stream_window.hpp"

namespace samesum::cpu {
namespace {

/// high + low, of which high is the nearest number, rounded to odd: the last bit is 1 if it is not exact.
template <int width>
[[gnu::always_inline]] inline Pack<fp64, width> to_odd(Pack<fp64, width> high, Pack<fp64, width> low) {
  using Storage = typename Pack<fp64, width>::Storage;
  using Words = Register<std::uint64_t, width>;
  const auto bits = same_bits<Words>(high.v), between = bits - ((bits ^ same_bits<Words>(low.v)) >> 63);
  return {low.v == Storage{} ? high.v : same_bits<Storage>(Words(between | 1))};
}

template <class T, class F> class ExactScanLoops : ScannedPacks<T, F> {
  using Packs = ScannedPacks<T, F>;
  using Packs::width, Packs::w, Packs::load_part, Packs::last_lane;
  using typename Packs::V, typename Packs::Storage, typename Packs::Words;
  static constexpr std::size_t block = 256;
  static constexpr int words = sizeof(T) == 8 ? 2 : 1;

 public:
  /// See ScanExactly.
  static std::size_t scan(const void* data, std::size_t n, bool exclusive, bool is_end, double (&before)[2],
                          void* out) {
    const T* x = static_cast<const T*>(data);
    F* to = static_cast<F*>(out);
    std::size_t done = 0;
    for (; done < n; done += block) {
      const std::size_t mine = n - done < block ? n - done : block;
      Extremes<T> seen;
      seen.see(x + done, mine);
      StreamWindow<words> window;
      if (!window.place(seen.range(), log2_count(mine))) break;
      if (!scan_block(x + done, mine, exclusive, is_end && done + mine == n, window, before, to + done))
        break;
    }
    return done < n ? done : n;
  }

  /// See RollExactly.
  static std::size_t roll(const double* entering, const double* leaving, std::size_t n, double (&sum)[2],
                          double* high, double* low, float* narrow) {
    std::size_t done = 0;
    for (; done < n; done += block) {
      const std::size_t mine = n - done < block ? n - done : block;
      Extremes<fp64> seen;
      seen.see(entering + done, mine);
      seen.see(leaving + done, mine);
      StreamWindow<2> window;
      if (!window.place(seen.range(), log2_count(2 * mine))) break;
      if (!roll_block(entering + done, leaving + done, mine, window, sum, high + done, low + done,
                      narrow ? narrow + done : nullptr))
        break;
    }
    return done < n ? done : n;
  }
  /// See HasSpecial.
  static bool has_special(const double* x, std::size_t n) {
    constexpr std::uint64_t sign = Format<fp64>::sign_bit, infinity = Format<fp64>::infinity;
    Words any{};
    std::size_t i = 0;
    for (; i + w <= n; i += w) {
      Words bits;
      std::memcpy(&bits, x + i, sizeof bits);
      any |= Words(bits == sign) | Words((bits & infinity) == infinity);
    }
    bool found = false;
    for (std::size_t l = 0; l < w; ++l) found = found || any[l] != 0;
    for (; i < n; ++i) found = found || to_bits(x[i]) == sign || (to_bits(x[i]) & infinity) == infinity;
    return found;
  }

 private:
  /// Moves the window over a block. Returns false if a sum does not fit; then `sum` is that before it.
  static bool roll_block(const double* entering, const double* leaving, std::size_t n,
                         const StreamWindow<2>& window, double (&sum)[2], double* high, double* low,
                         float* narrow) {
    const V anchor = V::broadcast(window.anchor[0]), first = V::broadcast(sum[0]),
            second = V::broadcast(sum[1]);
    V carry[2] = {V::zero(), V::zero()};
    Words lost{};
    double last[2] = {};
    for (std::size_t i = 0; i < n; i += w) {
      const bool whole = i + w <= n;
      const V in = whole ? V::load(entering + i) : load_numbers(entering + i, n - i),
              out = whole ? V::load(leaving + i) : load_numbers(leaving + i, n - i);
      const V in_high = (anchor + in) - anchor, out_high = (anchor + out) - anchor;
      V up_to[2] = {in_high - out_high, (in - in_high) - (out - out_high)};
      for (int k = 0; k < 2; ++k) {
        up_to[k] = Packs::template scan_lanes<1>(up_to[k]);
        const V all = carry[k] + V{last_lane(up_to[k].v)};
        up_to[k] = carry[k] + up_to[k];
        carry[k] = all;
      }
      const auto [a, after_a] = two_sum(first, up_to[0]);
      const V b = sum_of(after_a, sum_of(second, up_to[1], lost), lost);
      const auto [rounded, rest] = two_sum(a, b);
      std::memcpy(high + i, &rounded.v, sizeof rounded.v);
      std::memcpy(low + i, &rest.v, sizeof rest.v);
      if (narrow)
        store_lanes(convert_lanes<float, width>(to_odd(rounded, rest).v), narrow + i, whole ? w : n - i);
      last[0] = rounded.v[width - 1];  // lanes beyond the end repeat the last sum
      last[1] = rest.v[width - 1];
    }
    for (std::size_t l = 0; l < w; ++l)
      if (lost[l] != 0) return false;
    sum[0] = last[0];
    sum[1] = last[1];
    return true;
  }
  static V load_numbers(const double* x, std::size_t n) {
    double part[w] = {};
    for (std::size_t l = 0; l < n; ++l) part[l] = x[l];
    return V::load(part);
  }

  /// Scans a block. Returns false if a sum does not fit; then the results are not valid, nor written over the
  /// elements.
  static bool scan_block(const T* x, std::size_t n, bool exclusive, bool is_end,
                         const StreamWindow<words>& window, double (&before)[2], F* out) {
    const V anchor = V::broadcast(window.anchor[0]), first = V::broadcast(before[0]),
            second = V::broadcast(before[1]);
    V carry[words];
    for (V& c : carry) c = V::zero();
    Words lost{};
    F results[block];
    for (std::size_t i = 0; i < n; i += w) {
      V prefix[words];
      prefix[words - 1] = i + w <= n ? V::load(x + i) : load_part(x + i, n - i);
      if constexpr (words == 2) {
        prefix[0] = (anchor + prefix[1]) - anchor;
        prefix[1] = prefix[1] - prefix[0];
      }
      V up_to[words];
      for (int k = 0; k < words; ++k) {
        prefix[k] = Packs::template scan_lanes<1>(prefix[k]);
        up_to[k] = carry[k] + (exclusive ? V{Packs::template shifted<1>(prefix[k].v)} : prefix[k]);
        carry[k] = carry[k] + V{last_lane(prefix[k].v)};
      }
      const auto result = convert_lanes<F, width>(total(first, second, up_to, lost).v);
      if (i + w <= n)
        store_lanes(result, results + i, w);
      else
        store_lanes(result, results + i, n - i);
    }
    // The sum of all elements, in two words again.
    V sum[2] = {first, second};
    for (int k = 0; !is_end && k < words; ++k) {
      const auto [a, after_a] = two_sum(sum[0], carry[k]);
      const auto [b, after_b] = two_sum(sum[1], after_a);
      const auto [high, low] = two_sum(a, b);
      sum[0] = high;
      sum[1] = low;
      lost |= same_bits<Words>(after_b.v) << 1;
    }
    for (std::size_t l = 0; l < w; ++l)
      if (lost[l] != 0) return false;
    before[0] = sum[0].v[0];
    before[1] = sum[1].v[0];
    std::memcpy(static_cast<void*>(out), results, n * sizeof(F));
    return true;
  }

  /// first + second + the words of a prefix, for one rounding to F. `lost` collects bits that two words
  /// cannot hold.
  [[gnu::always_inline]] static V total(V first, V second, const V (&prefix)[words], Words& lost) {
    const auto [a, after_a] = two_sum(first, prefix[0]);
    V lower = second;
    if constexpr (words == 2) lower = sum_of(second, prefix[1], lost);
    const V b = sum_of(after_a, lower, lost);
    if constexpr (std::is_same_v<F, fp64>) return a + b;
    const auto [high, low] = two_sum(a, b);
    return to_odd(high, low);
  }
  [[gnu::always_inline]] static V sum_of(V a, V b, Words& lost) {
    const auto [sum, error] = two_sum(a, b);
    lost |= same_bits<Words>(error.v) << 1;
    return sum;
  }
};

}  // namespace
}  // namespace samesum::cpu
