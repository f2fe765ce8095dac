/// Sums the leaves of a tree: the merges of the reference, for a pack of neighbouring lanes at a time. Full
/// leaves have a fast path, all others are for ragged_leaf.hpp. Each instruction set compiles its own copy,
/// hence the anonymous namespace in a header.
#pragma once

#include <bit>

#include "samesum/accumulator/plain.hpp"
#include "samesum/backend/cpu/loops/lane_states.hpp"
#include "samesum/backend/cpu/loops/ragged_leaf.hpp"

namespace samesum::cpu {
namespace {

/// A source of packs for leaves: elements as they are. (Another source is that of terms in terms.hpp.)
/// load(i) returns the pack from element i on; prefetch(i, count) prefetches data that are read after the
/// elements i … i + count - 1.
template <class V, class T> struct PacksOfElements {
  static constexpr bool narrow = sizeof(T) == 2;  ///< then loops are bound by computation, not by memory
  static constexpr bool one_stream = false;       ///< whether one stream is read as fast as several
  const T* x;
  V load(std::size_t i) const { return V::load(x + i); }
  [[gnu::always_inline]] void prefetch(std::size_t i, std::size_t count) const {
    prefetch_bytes(x + i, count * sizeof(T), 16384);
  }
};

/// The loops of leaves of a tree with accumulator A in format F.
template <class Shape, template <class> class A, class F> class Leaves {
  static constexpr std::size_t lanes = Shape::lanes, rows = Shape::rows, leaf = Shape::leaf;
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width, packs = lanes / w;
  using Vector = Pack<F, width>;
  using States = LaneStates<A, F>;
  using One = typename States::One;
  using Many = typename States::Many;
  using Fast = A<Unchecked<Vector>>;
  static_assert(Accumulator<Many, Vector>);

  static constexpr std::size_t numbers = States::numbers;
  static_assert(sizeof(Many) == sizeof(Fast));
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
    const std::size_t done = sum_whole(PacksOfElements<Vector, T>{x}, n, out);
    if (done < n) out[done / leaf] = RaggedLeaf<Shape, A, F>::sum(x + done, n - done);
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

  /// See SumRows. What is missing of a last pack is -0, which changes no plain sum.
  template <class T>
  static void sum_rows(const void* data, std::size_t pitch, std::size_t n, std::size_t count, void* states) {
    static_assert(Shape::in_turn && std::is_same_v<One, Plain<Scalar<F>>>);
    const T* x = static_cast<const T*>(data);
    One* out = static_cast<One*>(states);
    std::size_t o = 0;
    if (n == leaf)
      for (; o + streams <= count; o += streams)
        sum_full<streams>(PacksOfElements<Vector, T>{x}, o * pitch, pitch, out + o, 1);
    if (n <= lanes && n % w == 0 && std::has_single_bit(n / w))
      return fold_rows<packs, true>(x, pitch, n, count, out);
    if (n <= lanes) return fold_rows<packs, false>(x, pitch, n, count, out);
    const RowEnd<T> end{pitch, n, count};
    const std::size_t ahead = rows_ahead<T>(n) * pitch;
    for (; o < count; ++o) {
      const T* row = x + o * pitch;
      Many lane[packs];
      prefetch_bytes(row, packs * vector_bytes, ahead * sizeof(T));
      for (std::size_t p = 0; p < packs; ++p) lane[p] = Many{Vector::load(row + p * w)};
      std::size_t i = lanes;
      for (; i + lanes <= n; i += lanes) {
        for (std::size_t p = 0; p < packs; ++p) {  // a line before each vector is faster than all at once
          if (p * w * sizeof(T) % 64 == 0) prefetch_bytes(row + i + p * w, 64, ahead * sizeof(T));
          lane[p].add(Vector::load(row + i + p * w));
        }
      }
      std::size_t p = 0;
      for (; i + (p + 1) * w <= n; ++p) lane[p].add(Vector::load(row + i + p * w));
      if (end.exists()) lane[p].add(end.load(row + i + p * w, o));
      for (std::size_t half = packs / 2; half > 0; half /= 2)
        for (std::size_t q = 0; q < half; ++q) lane[q].merge(lane[q + half]);
      out[o] = States::template halve_pack<width>(lane[0]);
    }
  }

 private:
  /// The last elements of rows whose length is no multiple of a pack, with -0 in the lanes of no element.
  template <class T> class RowEnd {
    using Bits = Register<BitsOf<T>, width>;

   public:
    /// The ends of `count` rows, which have n elements each and begin `pitch` elements apart.
    RowEnd(std::size_t pitch, std::size_t n, std::size_t count) : elements_{n % w} {
      for (std::size_t l = 0; l < w; ++l)
        (l < elements_ ? present_ : absent_)[l] =
            l < elements_ ? BitsOf<T>(~BitsOf<T>{0}) : samesum::Format<T>::sign_bit;
      const std::size_t beyond = w - elements_;  // elements that a whole pack reads behind a row
      if (pitch > 0) readable_ = count - std::min(count, (beyond + pitch - 1) / pitch);
    }
    bool exists() const { return elements_ > 0; }
    /// The end of row `o`, which begins at x. Whole packs are read where rows follow: they are faster.
    Vector load(const T* x, std::size_t o) const {
      Bits bits;
      if (o < readable_) {
        std::memcpy(&bits, x, sizeof bits);
        bits &= present_;
      } else {
        bits = load_first<width>(x, elements_);
      }
      bits |= absent_;
      T element[w];
      std::memcpy(static_cast<void*>(element), &bits, sizeof bits);
      return Vector::load(element);
    }

   private:
    std::size_t elements_, readable_ = 0;
    Bits present_{}, absent_{};
  };

  /// Sums rows of at most one element per lane, in up to `size` packs. Rows of a power of two of whole packs
  /// have a loop of their own.
  template <std::size_t size, bool whole, class T>
  static void fold_rows(const T* x, std::size_t pitch, std::size_t n, std::size_t count, One* out) {
    if constexpr (size > 1)
      if (n <= size / 2 * w) return fold_rows<size / 2, whole>(x, pitch, n, count, out);
    if constexpr (whole) {
      fold_packs<size>(x, pitch, count, out,
                       [](const T* at, std::size_t, std::size_t) { return Vector::load(at); });
    } else {
      const RowEnd<T> end{pitch, n, count};
      const std::size_t last = n / w;
      fold_packs<size>(x, pitch, count, out, [&](const T* at, std::size_t p, std::size_t o) {
        return p < last                    ? Vector::load(at)
               : p == last && end.exists() ? end.load(at, o)
                                           : Vector::minus_zero();
      });
    }
  }
  /// load(at, p, o) returns pack p of row o, which begins at `at`.
  template <std::size_t size, class T, class Load>
  [[gnu::always_inline]] static void fold_packs(const T* x, std::size_t pitch, std::size_t count, One* out,
                                                Load load) {
    const std::size_t ahead = rows_ahead<T>(size * w) * pitch;
    for (std::size_t o = 0; o < count; ++o) {
      const T* const row = x + o * pitch;
      Many lane[size];
      prefetch_bytes(row, size * w * sizeof(T), ahead * sizeof(T));
      for (std::size_t p = 0; p < size; ++p) lane[p] = Many{load(row + p * w, p, o)};
      for (std::size_t half = size / 2; half > 0; half /= 2)
        for (std::size_t p = 0; p < half; ++p) lane[p].merge(lane[p + half]);
      out[o] = States::template halve_pack<width>(lane[0]);
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
      const One state = States::template halve_pack<width>(same_bits<Many>(lane[k][0]));
      if constexpr (numbers > 1) {
        const auto* first = x.x + from + k * apart;
        out[k * out_apart] = is_doubtful(state, first) ? RaggedLeaf<Shape, A, F>::sum(first, leaf) : state;
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
