/// Sums leaves that may have fewer rows or lanes than a full one, and full ones that the fast path does not
/// sum. Each instruction set compiles its own copy, hence the anonymous namespace in a header.
#pragma once

#include "samesum/backend/cpu/loops/lane_states.hpp"

namespace samesum::cpu {
namespace {

/// The merges of the reference for a leaf of any number of elements.
template <class Shape, template <class> class A, class F> class RaggedLeaf {
  using States = LaneStates<A, F>;
  using Carrier = CarrierOf<F>;
  using One = typename States::One;
  using Many = typename States::Many;
  static constexpr std::size_t lanes = Shape::lanes, rows = Shape::rows, w = States::w, packs = lanes / w,
                               numbers = States::numbers;
  using Vector = Pack<F, States::width>;

 public:
  /// Sums a leaf of any n elements, which are first rounded to F into a buffer. Not inlined: one copy per
  /// element format.
  template <class T> [[gnu::noinline]] static One sum(const T* x, std::size_t n) {
    alignas(vector_bytes) Carrier rounded[Shape::leaf];
    const std::size_t whole = n / w * w, row_end = (n + lanes - 1) / lanes * lanes;
    for (std::size_t i = 0; i < whole; i += w) store(Vector::load(x + i), rounded + i);
    for (std::size_t i = whole; i < row_end; i += w) store(Vector::zero(), rounded + i);  // those of no lane
    if (whole < n) {
      T last[w] = {};
      std::memcpy(last, x + whole, (n - whole) * sizeof(T));
      store(Vector::load(last), rounded + whole);
    }
    return sum_rounded(rounded, n);
  }

 private:
  static void store(Vector v, Carrier* to) { std::memcpy(to, &v, sizeof v); }

  [[gnu::noinline]] static One sum_rounded(const Carrier* x, std::size_t n) {
    const std::size_t full_rows = n / lanes, longer = n % lanes;  // number of lanes with one row more
    Many lane[packs];
    for (std::size_t p = 0; p < packs && p * w < n; ++p) {
      const std::size_t mine = longer < p * w ? 0 : longer - p * w;
      if (mine == 0)
        lane[p] = column(x + p * w, full_rows);
      else if (mine >= w || full_rows == 0)
        lane[p] = column(x + p * w, full_rows + 1);
      else
        lane[p] = joined(mine, column(x + p * w, full_rows + 1), column(x + p * w, full_rows));
    }
    return halve(lane, n < lanes ? n : lanes);
  }

  /// Sums `count` >= 1 rows of a pack of lanes.
  static Many column(const Carrier* x, std::size_t count) {
    const auto row = [x](std::size_t r) {
      Vector v;
      std::memcpy(&v, x + r * lanes, sizeof v);
      return v;
    };
    if constexpr (Shape::in_turn) {
      Many sum{};
      for (std::size_t r = 0; r < count; ++r) sum.add(row(r));
      return sum;
    } else {
      // waiting[i] is the sum of the preceding 2^i rows if bit i of the number of rows is set.
      Many waiting[ceil_log2(rows) + 1];
      for (std::size_t r = 0; r < count; ++r) {
        Many sum{row(r)};
        std::size_t level = 0;
        for (; r >> level & 1; ++level) sum = merged(waiting[level], sum);
        waiting[level] = sum;
      }
      std::size_t level = 0;
      while (!(count >> level & 1)) ++level;
      Many sum = waiting[level];
      while (count >> ++level)
        if (count >> level & 1) sum = merged(waiting[level], sum);
      return sum;
    }
  }
  static Many merged(Many a, const Many& b) {
    a.merge(b);
    return a;
  }

  /// The first `count` lanes of a, and the remaining lanes of b.
  static Many joined(std::size_t count, const Many& a, const Many& b) {
    Carrier numbers_of_a[numbers * w], numbers_of_b[numbers * w];
    std::memcpy(numbers_of_a, &a, sizeof a);
    std::memcpy(numbers_of_b, &b, sizeof b);
    for (std::size_t i = 0; i < numbers * w; ++i)
      numbers_of_a[i] = i % w < count ? numbers_of_a[i] : numbers_of_b[i];
    Many both;
    std::memcpy(&both, numbers_of_a, sizeof both);
    return both;
  }

  /// Halves the lanes if only the first n have an element.
  static One halve(Many (&lane)[packs], std::size_t n) {
    for (std::size_t half = packs / 2; half > 0; half /= 2) {
      for (std::size_t p = 0; p < half && (p + half) * w < n; ++p) {
        const std::size_t both = n - (p + half) * w;  // number of lanes of this pack with a partner
        const Many sum = merged(lane[p], lane[p + half]);
        lane[p] = both >= w ? sum : joined(both, sum, lane[p]);
      }
      if (n > half * w) n = half * w;
    }
    if (n >= w) return States::template halve_pack<States::width>(lane[0]);
    One state[w];
    for (std::size_t l = 0; l < n; ++l) state[l] = extract(lane[0], l);
    for (std::size_t half = w / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half && l + half < n; ++l) state[l].merge(state[l + half]);
    return state[0];
  }
  /// The state of lane l.
  static One extract(const Many& pack, std::size_t l) {
    Carrier number[numbers * w], one[numbers];
    std::memcpy(number, &pack, sizeof pack);
    for (std::size_t f = 0; f < numbers; ++f) one[f] = number[f * w + l];
    One state;
    std::memcpy(&state, one, sizeof state);
    return state;
  }
};

}  // namespace
}  // namespace samesum::cpu
