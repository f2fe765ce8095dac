/// Sums the leaves of a tree: the merges of the reference, for a pack of neighbouring lanes at a time. Each
/// instruction set compiles its own copy, hence the anonymous namespace in a header.
#pragma once

#include "samesum/backend/cpu/loops/vectors.hpp"

namespace samesum::cpu {
namespace {

/// A source of packs for leaves: elements as they are, or the terms of a sum (terms.hpp). load(i) returns the
/// pack from element i on; prefetch(i, count) prefetches data that are read later than elements i … i + count
/// - 1.
template <class V, class T> struct Elements {
  static constexpr bool narrow = sizeof(T) == 2;  ///< then loops are bound by computation, not by memory
  static constexpr bool one_stream = false;       ///< whether one stream is read as fast as several
  const T* x;
  V load(std::size_t i) const { return V::load(x + i); }
  [[gnu::always_inline]] void prefetch(std::size_t i, std::size_t count) const {
    prefetch_bytes(x + i, count * sizeof(T), 16384);
  }
};

template <class Shape, template <class> class A, class F> class Leaves {
  static constexpr std::size_t lanes = Shape::lanes, rows = Shape::rows, leaf = Shape::leaf;
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width, packs = lanes / w;
  using Vector = Pack<F, width>;
  using One = A<Scalar<F>>;
  using Many = A<Vector>;
  using Fast = A<Unchecked<Vector>>;
  static_assert(Accumulator<Many, Vector>);

  static constexpr std::size_t numbers = sizeof(One) / sizeof(Carrier);
  static_assert(sizeof(Many) == sizeof(Fast) && sizeof(Many) == w * sizeof(One));
  /// Leaves summed side by side: several streams get more bandwidth from DRAM than one. States of several
  /// numbers are bound by computation, so one stream suffices. Two streams keep their sums in the 32
  /// registers of AVX-512 where four do not.
  static constexpr std::size_t streams = numbers > 1 || !Shape::in_turn         ? 1
                                         : vector_bytes == 64 && 4 * packs > 32 ? 2
                                                                                : 4;

 public:
  /// See SumLeaves.
  template <class T> static void sum(const void* data, std::size_t n, void* states) {
    const T* x = static_cast<const T*>(data);
    One* out = static_cast<One*>(states);
    const std::size_t done = sum_whole(Elements<Vector, T>{x}, n, out);
    if (done < n) out[done / leaf] = sum_ragged(x + done, n - done);
  }

  /// Writes the states of all whole leaves, and returns the number of elements in them.
  template <class Source>
  [[gnu::always_inline]] static std::size_t sum_whole(const Source& source, std::size_t n, One* out) {
    constexpr std::size_t together = Source::one_stream ? 1 : streams;
    std::size_t done = 0;
    for (std::size_t apart = n / leaf / together, k = 0; k < apart; ++k, done += together)
      sum_full<together>(source, k * leaf, apart * leaf, out + k, apart);
    for (; (done + 1) * leaf <= n; ++done) sum_full<1>(source, done * leaf, 0, out + done, 0);
    return done * leaf;
  }

  /// See SumRows. Rows of whole packs are added without a copy.
  template <class T>
  static void sum_rows(const void* data, std::size_t pitch, std::size_t n, std::size_t count, void* states) {
    static_assert(Shape::in_turn);
    const T* x = static_cast<const T*>(data);
    One* out = static_cast<One*>(states);
    std::size_t o = 0;
    if (n == leaf)
      for (; o + streams <= count; o += streams)
        sum_full<streams>(Elements<Vector, T>{x}, o * pitch, pitch, out + o, 1);
    if (n <= lanes && n % w == 0 && (n / w & (n / w - 1)) == 0)
      return fold_rows<packs>(x, pitch, n / w, count, out);
    const std::size_t of_lanes = (n < lanes ? n : lanes) / w, ahead = rows_ahead<T>(n) * pitch;
    for (; o < count; ++o) {
      if (n % w != 0) {
        out[o] = sum_ragged(x + o * pitch, n);
        continue;
      }
      const T* row = x + o * pitch;
      Many lane[packs];
      prefetch_bytes(row, of_lanes * vector_bytes, ahead * sizeof(T));
      for (std::size_t p = 0; p < of_lanes; ++p) lane[p] = Many{Vector::load(row + p * w)};
      std::size_t i = lanes;
      for (; i + lanes <= n; i += lanes) {
        for (std::size_t p = 0; p < packs; ++p) {  // a line before each vector is faster than all at once
          if (p * w * sizeof(T) % 64 == 0) prefetch_bytes(row + i + p * w, 64, ahead * sizeof(T));
          lane[p].add(Vector::load(row + i + p * w));
        }
      }
      for (std::size_t p = 0; i + p * w < n; ++p) lane[p].add(Vector::load(row + i + p * w));
      for (std::size_t half = packs / 2; half > 0; half /= 2)
        for (std::size_t p = 0; p < half && p + half < of_lanes; ++p) lane[p].merge(lane[p + half]);
      out[o] = halve_pack<width>(lane[0]);
    }
  }

 private:
  /// Sums rows of one element per lane, of `row_packs` packs, a power of two up to `size`.
  template <std::size_t size, class T>
  static void fold_rows(const T* x, std::size_t pitch, std::size_t row_packs, std::size_t count, One* out) {
    if constexpr (size > 1)
      if (row_packs < size) return fold_rows<size / 2>(x, pitch, row_packs, count, out);
    const std::size_t ahead = rows_ahead<T>(size * w) * pitch;
    for (std::size_t o = 0; o < count; ++o) {
      Many lane[size];
      prefetch_bytes(x + o * pitch, size * w * sizeof(T), ahead * sizeof(T));
      for (std::size_t p = 0; p < size; ++p) lane[p] = Many{Vector::load(x + o * pitch + p * w)};
      for (std::size_t half = size / 2; half > 0; half /= 2)
        for (std::size_t p = 0; p < half; ++p) lane[p].merge(lane[p + half]);
      out[o] = halve_pack<width>(lane[0]);
    }
  }

  /// Sums `count` full leaves that lie `apart` elements apart. A rolled loop reads each leaf from first to
  /// last: hardware prefetchers detect this pattern.
  template <std::size_t count, class Source>
  static void sum_full(const Source& x, std::size_t from, std::size_t apart, One* out,
                       std::size_t out_apart) {
    Fast lane[count][packs];
    if constexpr (Shape::in_turn) {
      for (auto& leaf_lane : lane)
        for (Fast& pack : leaf_lane) pack = Fast{};
      const auto add_rows = [&](auto ahead) __attribute__((always_inline)) {
#pragma GCC unroll 1
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t k = 0; k < count; ++k) {
            const std::size_t row = from + k * apart + r * lanes;
            if constexpr (ahead) x.prefetch(row, lanes);
            for (std::size_t p = 0; p < packs; ++p) lane[k][p].add({x.load(row + p * w)});
          }
      };
      // States of several numbers gain from prefetches on every processor that was measured. A loop that
      // tests `ahead` for each row takes up to one and a half times as long.
      if constexpr (numbers > 1)
        add_rows(std::true_type{});
      else if (prefetches<Source>())
        add_rows(std::bool_constant<Source::narrow>{});
      else
        add_rows(std::false_type{});
    } else {
      static_assert(count == 1);
      sum_by_pairs(x, from, lane[0]);
    }
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t half = packs / 2; half > 0; half /= 2)
        for (std::size_t p = 0; p < half; ++p) lane[k][p].merge(lane[k][p + half]);
      const One state = halve_pack<width>(same_bits<Many>(lane[k][0]));
      if constexpr (numbers > 1) {
        const auto* first = x.x + from + k * apart;
        out[k * out_apart] = is_doubtful(state, first) ? sum_ragged(first, leaf) : state;
      } else {
        out[k * out_apart] = state;
      }
    }
  }

  template <class Source> static void sum_by_pairs(const Source& x, std::size_t from, Fast (&lane)[packs]) {
    // waiting[i] is the sum of the preceding 2^i rows if bit i of the number of rows is set.
    constexpr std::size_t levels = ceil_log2(rows) + 1;
    Fast waiting[levels][packs];
    const bool ahead = prefetches<Source>();
#pragma GCC unroll 1
    for (std::size_t r = 0; r < rows; ++r) {
      if (ahead) x.prefetch(from + r * lanes, lanes);
      Unchecked<Vector> row[packs];
      for (std::size_t p = 0; p < packs; ++p) row[p] = {x.load(from + r * lanes + p * w)};
      Fast sum[packs];
      std::size_t level = 0;
      if (r % 2 == 0) {
        for (std::size_t p = 0; p < packs; ++p) sum[p] = Fast{row[p]};
      } else {
        for (std::size_t p = 0; p < packs; ++p) sum[p] = pair(waiting[0][p], row[p]);
#pragma GCC unroll 1
        for (level = 1; r >> level & 1; ++level)
          for (std::size_t p = 0; p < packs; ++p) {
            Fast earlier = waiting[level][p];
            earlier.merge(sum[p]);
            sum[p] = earlier;
          }
      }
      for (std::size_t p = 0; p < packs; ++p) waiting[level][p] = sum[p];
    }
    for (std::size_t p = 0; p < packs; ++p) lane[p] = waiting[levels - 1][p];
  }

  /// Whether the loop computes enough for prefetches to pay off.
  template <class Source> static bool prefetches() {
    return (numbers > 1 || Source::narrow) && wants_prefetch();
  }

  static Fast pair(Fast sum, Unchecked<Vector> x) {
    if constexpr (Fast::adds_as_it_merges)
      sum.add(x);
    else
      sum.merge(Fast{x});
    return sum;
  }

  /// Whether a state computed by Unchecked may be wrong. A number that is not finite never becomes finite
  /// again, so the state shows it; the sign of a zero matters only if all elements are -0.
  template <class T> static bool is_doubtful(const One& state, const T* x) {
    Carrier number[numbers];
    std::memcpy(number, &state, sizeof state);
    bool finite = true;
    for (const Carrier v : number) finite = finite && is_finite(Scalar<F>{v});
    return !finite || (number[0] == 0 && to_bits(Scalar<F>::of(*x).v) == samesum::Format<Carrier>::sign_bit);
  }

  /// Sums a leaf of any n elements, which are first rounded to F into a buffer. Not inlined: one copy per
  /// element format.
  template <class T> [[gnu::noinline]] static One sum_ragged(const T* x, std::size_t n) {
    alignas(vector_bytes) Carrier rounded[leaf];
    const std::size_t whole = n / w * w, row_end = (n + lanes - 1) / lanes * lanes;
    for (std::size_t i = 0; i < whole; i += w) store(Vector::load(x + i), rounded + i);
    for (std::size_t i = whole; i < row_end; i += w) store(Vector::zero(), rounded + i);  // in no lane
    if (whole < n) {
      T last[w] = {};
      std::memcpy(last, x + whole, (n - whole) * sizeof(T));
      store(Vector::load(last), rounded + whole);
    }
    return sum_rounded(rounded, n);
  }
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
    // A pack of states is stored as a state of packs: number f of lane l is at f * width + l.
    Carrier of_a[numbers * w], of_b[numbers * w];
    std::memcpy(of_a, &a, sizeof a);
    std::memcpy(of_b, &b, sizeof b);
    for (std::size_t i = 0; i < numbers * w; ++i) of_a[i] = i % w < count ? of_a[i] : of_b[i];
    Many all;
    std::memcpy(&all, of_a, sizeof all);
    return all;
  }

  /// Halves the lanes: lane l merges lane l + half until one lane is left.
  template <int count> static One halve_pack(const A<Pack<F, count>>& lane) {
    if constexpr (count == 1) {
      return lane;
    } else {
      auto low = half_of<0>(lane);
      low.merge(half_of<1>(lane));
      return halve_pack<count / 2>(low);
    }
  }
  template <int which, int count> static A<Pack<F, count / 2>> half_of(const A<Pack<F, count>>& lane) {
    // A state of packs consists of one pack per number.
    Register<Carrier, count> whole[numbers];
    Register<Carrier, count / 2> part[numbers];
    std::memcpy(whole, &lane, sizeof lane);
    for (std::size_t f = 0; f < numbers; ++f) part[f] = half_of_register<which, count>(whole[f]);
    A<Pack<F, count / 2>> state;
    std::memcpy(&state, part, sizeof state);
    return state;
  }
  template <int which, int count>
  static Register<Carrier, count / 2> half_of_register(Register<Carrier, count> v) {
    if constexpr (count == 2)
      return v[which];
    else
      return [&]<int... i>(std::integer_sequence<int, i...>) {
        return __builtin_shufflevector(v, v, which * (count / 2) + i...);
      }
    (std::make_integer_sequence<int, count / 2>{});
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
    if (n >= w) return halve_pack<width>(lane[0]);
    One of_pack[w];
    for (std::size_t l = 0; l < n; ++l) of_pack[l] = extract(lane[0], l);
    for (std::size_t half = w / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half && l + half < n; ++l) of_pack[l].merge(of_pack[l + half]);
    return of_pack[0];
  }
  static One extract(const Many& pack, std::size_t l) {
    Carrier number[numbers * w], one[numbers];
    std::memcpy(number, &pack, sizeof pack);
    for (std::size_t f = 0; f < numbers; ++f) one[f] = number[f * w + l];
    One state;
    std::memcpy(&state, one, sizeof state);
    return state;
  }
};

/// The textbook loop: one lane, one leaf.
template <class RowOrder, template <class> class A, class F>
class Leaves<Tree<1, unbounded, RowOrder>, A, F> {
 public:
  template <class T> static void sum(const void* data, std::size_t n, void* state) {
    const T* x = static_cast<const T*>(data);
    A<Scalar<F>> sum;
    for (std::size_t i = 0; i < n; ++i) sum.add(Scalar<F>::of(x[i]));
    *static_cast<A<Scalar<F>>*>(state) = sum;
  }
};

}  // namespace
}  // namespace samesum::cpu
