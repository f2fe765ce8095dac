/// Rolling sums, means and variances in words that lack little, with bounds: no element is subtracted, so
/// what has left a window leaves no error. Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/exact/scan_loops.hpp"

namespace samesum::cpu {
namespace {

/// The loops for sums of elements, and of their squares (in two words each) or magnitudes (in one).
///
/// With u = 2^-53, let A be the sum of the magnitudes of the terms of a sum, h + l. Each error of a rounded h
/// that l collects is at most u·A, apart from factors of 1 + 2^-40, and each of the two roundings of l is at
/// most u·|l|. A term has |l| <= u·A, since a square has two words. After scan_lanes |l| <= 4·u·A, and the
/// errors of its 3 levels are at most 24·u²·A together. A carry has |l| <= u·|h|, as it is normalised: adding
/// a pack with terms of A' to it has an error of at most (3·A + 8·A')·u², and D packs one of (3·D + 8)·u²·A.
/// A window consists of the packs up to a result and those after it, of which these bounds hold apart, and of
/// the units between them, in three words whose errors are far smaller. Adding up the two carries and the
/// lanes has an error of at most 40·u²·A. Altogether that is less than (3·D + 100)·u²·A. A short window of n
/// terms is added in turn: |l| <= (i + 1)·u·A after term i, so the error is at most n·(n + 3)·u²·A.
template <bool squares> class RollingLoops {
  static constexpr int width = vector_bytes / 8;
  static constexpr std::size_t w = width;
  using V = Pack<fp64, width>;
  using Storage = typename V::Storage;

  struct Sums {
    V sum, low, more, more_low;
  };

 public:
  /// See RollInWords.
  static bool roll(const RolledMoves& m, RolledWindow& window, double* lower, double* upper) {
    Results results{m, lower, upper, bound(window)};
    if (window.size <= RolledWindow::short_window)
      roll_short(m, window, results);
    else
      for (std::size_t i = 0; i < m.n;) i += roll_unit(m, i, window, results);
    return results.are_sure();
  }

  /// See RoundMeans.
  static bool round_means(const RolledMoves& m, const double* high, const double* low, double* lower,
                          double* upper) {
    Results results{m, lower, upper, 0};
    for (std::size_t i = 0; i < m.n; i += w)
      results.write_mean(V::load(high + i), V::load(low + i), i, std::min(m.n - i, w));
    return results.are_sure();
  }

 private:
  /// Bounds of results, which are written.
  class Results {
   public:
    Results(const RolledMoves& moves, double* lower, double* upper, double error)
        : moves_{moves}, lower_{lower}, upper_{upper}, error_{V::broadcast(error)} {}

    bool are_wanted() const { return lower_ != nullptr; }
    bool are_sure() const { return sure_ && !any_lane(differ_); }
    /// Writes `count` results from result i on, from the sums of their windows.
    [[gnu::always_inline]] void write(const Sums& of, std::size_t i, std::size_t count) {
      const std::size_t at = moves_.vary ? i : 0;
      V first, rest, error;
      if constexpr (squares) {
        round_variance(of, at, first, rest, error);
      } else {
        const auto [sum, low] = two_sum(of.sum, of.low);
        first = sum, rest = low, error = of.more * error_;
        if (moves_.kind == RollingKind::mean) divide(sum, low, at, first, rest, error);
        rest = select(of.more.v >= V::broadcast(0x1p-900).v, rest, not_known());
      }
      write(first, rest, error, i, count);
    }
    /// Writes means likewise, from sums that are exact.
    [[gnu::always_inline]] void write_mean(V sum, V low, std::size_t i, std::size_t count) {
      V first, rest, error = V::zero();
      divide(sum, low, moves_.vary ? i : 0, first, rest, error);
      write(first, rest, error, i, count);
    }

   private:
    using Mask = decltype(Storage{} != Storage{});

    [[gnu::always_inline]] void write(V first, V rest, V error, std::size_t i, std::size_t count) {
      const V low = bounded(first, rest - error), high = bounded(first, rest + error);
      store_lanes(low.v, lower_ + i, count);
      store_lanes(high.v, upper_ + i, count);
      if (count == w) {
        differ_ |= low.v != high.v;
      } else {
        for (std::size_t l = 0; l < count; ++l) sure_ = sure_ && low.v[l] == high.v[l];
      }
    }
    static V not_known() { return V::broadcast(std::numeric_limits<double>::quiet_NaN()); }
    [[gnu::always_inline]] V bounded(V first, V rest) const {
      if (!moves_.to_odd) return first + rest;
      const auto [high, low] = two_sum(first, rest);
      return to_odd(high, low);
    }
    /// What high + low, over a divisor, is: `first`, and `rest` within `error`. Adds what `error` / divisor
    /// is.
    [[gnu::always_inline]] void divide(V high, V low, std::size_t at, V& first, V& rest, V& error) const {
      const V divisor = V::load(moves_.divisor + at), share = V::load(moves_.share + at);
      first = high * share;
      const V product = first * divisor,
              left = ((high - product) - product_error(first, divisor, product)) + low;
      rest = select(magnitude(first).v >= V::broadcast(0x1p-850).v, left * share, not_known());
      error = magnitude(rest) * V::broadcast(0x1p-50) + error * share;
    }
    /// As ExactWords::round_variance. With the errors c·u²·Σ|x| and c·u²·Σx² of both sums, that of
    /// n·Σx² - (Σx)² is below (3·c + 40)·u²·n·Σx².
    [[gnu::always_inline]] void round_variance(const Sums& of, std::size_t at, V& first, V& rest,
                                               V& error) const {
      const auto [s, s_low] = two_sum(of.sum, of.low);
      const auto [q, q_low] = two_sum(of.more, of.more_low);
      const V n = V::load(moves_.count + at), nq = n * q, ss = s * s;
      const V low = (product_error(n, q, nq) - product_error(s, s, ss)) + (n * q_low - (s + s) * s_low);
      const auto [sum, below] = two_sum(nq, V{-ss.v});
      const auto [difference, difference_low] = two_sum(sum, below + low);
      error = nq * error_;
      divide(difference, difference_low, at, first, rest, error);
      // So that what underflowed is negligible.
      rest = select(difference.v >= V::broadcast(0x1p-800).v, rest, not_known());
    }

    const RolledMoves& moves_;
    double *lower_, *upper_;
    V error_;
    Mask differ_{};
    bool sure_ = true;
  };

  static double bound(const RolledWindow& window) {
    const double n = static_cast<double>(window.size), packs = static_cast<double>((window.unit - 1) / w + 1),
                 sums = window.size <= RolledWindow::short_window ? n * (n + 3) : 3 * packs + 100;
    return 1.02 * (squares ? 3 * sums + 40 : sums) * 0x1p-106;
  }
  [[gnu::always_inline]] static V load(const double* x, std::size_t n) {
    return n >= w ? V::load(x) : V{same_bits<Storage>(load_first<width>(x, n))};
  }
  [[gnu::always_inline]] static Sums terms(V x) {
    if constexpr (!squares) return {x, V::zero(), magnitude(x), V::zero()};
    const V square = x * x;
    return {x, V::zero(), square, product_error(x, x, square)};
  }
  [[gnu::always_inline]] static void add(Sums& to, const Sums& x) {
    const auto [sum, error] = two_sum(to.sum, x.sum);
    to.sum = sum;
    to.low = (to.low + x.low) + error;
    if constexpr (squares) {
      const auto [more, more_error] = two_sum(to.more, x.more);
      to.more = more;
      to.more_low = (to.more_low + x.more_low) + more_error;
    } else {
      to.more = to.more + x.more;
    }
  }
  static Sums normalised(const Sums& x) {
    const auto [sum, low] = two_sum(x.sum, x.low);
    if constexpr (!squares) return {sum, low, x.more, x.more_low};
    const auto [more, more_low] = two_sum(x.more, x.more_low);
    return {sum, low, more, more_low};
  }
  /// The lanes moved up by so many, or down, with zeros in place of others.
  template <int by> [[gnu::always_inline]] static V shifted(V v) {
    return [&]<int... l>(std::integer_sequence<int, l...>) {
      return V{__builtin_shufflevector(v.v, Storage{}, (l >= by && l < width + by ? l - by : width)...)};
    }
    (std::make_integer_sequence<int, width>{});
  }
  template <int by> [[gnu::always_inline]] static Sums shifted(const Sums& x) {
    return {shifted<by>(x.sum), shifted<by>(x.low), shifted<by>(x.more), shifted<by>(x.more_low)};
  }
  /// The sum of the lanes from the first to each, or, for by < 0, from the last.
  template <int by> [[gnu::always_inline]] static Sums scan_lanes(Sums x) {
    if constexpr (by < width && -by < width) {
      add(x, shifted<by>(x));
      return scan_lanes<2 * by>(x);
    } else {
      return x;
    }
  }
  /// One lane in all.
  template <int lane> [[gnu::always_inline]] static V broadcast(V v) {
    return [&]<int... l>(std::integer_sequence<int, l...>) {
      return V{__builtin_shufflevector(v.v, v.v, (l * 0 + lane)...)};
    }
    (std::make_integer_sequence<int, width>{});
  }
  /// Adds one lane to all of a carry.
  template <int lane> [[gnu::always_inline]] static void carry_on(Sums& carry, const Sums& x) {
    add(carry, {broadcast<lane>(x.sum), broadcast<lane>(x.low), broadcast<lane>(x.more),
                broadcast<lane>(x.more_low)});
    carry = normalised(carry);
  }

  /// Adds x to three words.
  static void add(double (&word)[3], double x) {
    for (double& part : word) x = two_sum(part, x);
  }
  static void add(RolledSums& to, const RolledSums& x) {
    for (const double part : x.sum) add(to.sum, part);
    for (const double part : x.more) add(to.more, part);
  }
  static Sums broadcast(const RolledSums& x) {
    const auto two = [](const double(&word)[3], V& high, V& low) {
      double first = word[0], rest = word[1] + word[2];
      rest = two_sum(first, rest);
      high = V::broadcast(first), low = V::broadcast(rest);
    };
    Sums all;
    two(x.sum, all.sum, all.low);
    two(x.more, all.more, all.more_low);
    return all;
  }

  /// Makes the moves from move i on, up to the end of a unit. Returns their number.
  static std::size_t roll_unit(const RolledMoves& m, std::size_t i, RolledWindow& window, Results& results) {
    const std::size_t unit = window.place / window.unit, begin = unit * window.unit,
                      end = std::min(window.size, begin + window.unit), all = end - window.place,
                      n = std::min(m.n - i, all);
    const V scale = V::broadcast(window.scale);
    // What each window has of the elements that leave, and of those between them and those that enter.
    Sums after[RolledWindow::most_in_unit / w + 1];
    if (results.are_wanted()) {
      RolledSums between = window.chunk;
      add(between, window.units[unit]);
      Sums carry = broadcast(between);
      for (std::size_t p = (all - 1) / w + 1; p-- > 0;) {
        const Sums up_to = scan_lanes<-1>(terms(load(m.leaving + i + p * w, all - p * w) * scale));
        after[p] = carry;
        add(after[p], shifted<-1>(up_to));
        carry_on<0>(carry, up_to);
      }
    }
    Sums carry = broadcast(RolledSums{});
    for (std::size_t p = 0; p * w < n; ++p) {
      const std::size_t count = std::min(n - p * w, w);
      Sums up_to = scan_lanes<1>(terms(load(m.entering + i + p * w, count) * scale));
      if (results.are_wanted()) {
        add(after[p], carry);
        add(after[p], up_to);
        results.write(after[p], i + p * w, count);
      }
      carry_on<width - 1>(carry, up_to);
    }
    const RolledSums entered{{carry.sum.v[0], carry.low.v[0]}, {carry.more.v[0], carry.more_low.v[0]}};
    enter(window, entered, n, unit, end);
    return n;
  }
  /// Counts n elements in, with these sums, of the unit with this end.
  static void enter(RolledWindow& window, const RolledSums& sums, std::size_t n, std::size_t unit,
                    std::size_t end) {
    add(window.chunk, sums);
    add(window.of_unit, sums);
    window.place += n;
    if (window.place < end) return;
    window.units[unit] = window.of_unit;
    window.of_unit = {};
    if (window.place < window.size) return;
    RolledSums following{};
    for (std::size_t k = unit + 1; k-- > 0;) {
      const RolledSums own = window.units[k];
      window.units[k] = following;
      add(following, own);
    }
    window.chunk = {};
    window.place = 0;
  }

  static void roll_short(const RolledMoves& m, RolledWindow& window, Results& results) {
    constexpr std::size_t block = 256;
    const std::size_t size = window.size;
    for (std::size_t i = 0; i < m.n; i += block) {
      const std::size_t n = std::min(m.n - i, block);
      double x[RolledWindow::short_window + block + w] = {};
      std::copy_n(window.last, size, x);
      for (std::size_t k = 0; k < n; ++k) x[size + k] = m.entering[i + k] * window.scale;
      std::copy_n(x + n, size, window.last);
      for (std::size_t k = 0; results.are_wanted() && k < n; k += w) {
        Sums all = terms(V::load(x + k + 1));
        for (std::size_t j = 2; j <= size; ++j) add(all, terms(V::load(x + k + j)));
        results.write(all, i + k, std::min(n - k, w));
      }
    }
  }
};

/// See RollInWords.
inline bool roll_in_words(const RolledMoves& moves, RolledWindow& window, double* lower, double* upper) {
  return (moves.kind == RollingKind::variance ? RollingLoops<true>::roll : RollingLoops<false>::roll)(
      moves, window, lower, upper);
}

}  // namespace
}  // namespace samesum::cpu
