/// Sums the leaves of neighbouring columns, a matrix row at a time: each lane of the tree is a row of packs
/// of columns. Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"

namespace samesum::cpu {
namespace {

template <class Shape, template <class> class A, class F> class ColumnLoops {
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width, lanes = Shape::lanes;
  using Vector = Pack<F, width>;
  using One = TermSum<A, Scalar<F>>;
  using Many = TermSum<A, Vector>;
  static constexpr std::size_t ahead = 16;      ///< distance of the prefetch in rows
  static constexpr std::size_t cached = 16384;  ///< bytes of states that rows are added to in turn
  static constexpr std::size_t numbers = sizeof(One) / sizeof(Carrier);
  static_assert(sizeof(Many) == w * sizeof(One));
  static_assert(w <= ColumnLeaf::least,
                "samesum: the last pack of columns would begin before the first column");

 public:
  /// See SumColumns.
  template <class T> static void sum(Term term, const ColumnLeaf& leaf, void* scratch, void* states) {
    const T *const x = static_cast<const T*>(leaf.x), *const y = static_cast<const T*>(leaf.y);
    One* const out = static_cast<One*>(states);
    if (term == Term::element)
      ColumnLoops{leaf, scratch}.run(ElementsOf<T>{x}, out);
    else
      ColumnLoops{leaf, scratch}.run(TermsOf<T>{x, term == Term::product ? y : x, term}, out);
  }

 private:
  /// Source of the terms: add(sum, i) adds those of the pack whose first element is at place i.
  template <class T> struct ElementsOf {
    const T* x;
    void add(Many& sum, std::size_t i) const { sum.sum.add(Vector::load(x + i)); }
    [[gnu::always_inline]] void prefetch(std::size_t i, std::size_t count) const {
      prefetch_row(x, count * sizeof(T), i * sizeof(T));
    }
  };
  template <class T> struct TermsOf {
    const T *x, *y;
    Term term;
    void add(Many& sum, std::size_t i) const {
      const Vector v = Vector::load(x + i);
      if (is_product(term))
        sum.add(product_of(v, Vector::load(y + i)));
      else
        sum.add({element_term(term, v), Vector::zero()});
    }
    [[gnu::always_inline]] void prefetch(std::size_t i, std::size_t count) const {
      prefetch_row(x, count * sizeof(T), i * sizeof(T));
      if (y != x) prefetch_row(y, count * sizeof(T), i * sizeof(T));
    }
  };

  ColumnLoops(const ColumnLeaf& leaf, void* scratch)
      : leaf_{leaf}, packs_{(leaf.count - 1) / w + 1}, state_{static_cast<Many*>(scratch)} {}

  static TwoWords<Vector> product_of(Vector a, Vector b) {
    if constexpr (One::two_words)
      return two_product(a, b);
    else
      return {a * b, Vector::zero()};
  }

  template <class Source> [[gnu::always_inline]] void run(Source source, One* out) const {
    if constexpr (Shape::in_turn)
      add_in_turn(source);
    else
      add_by_pairs(source);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half && l + half < used_lanes(); ++l)
        for (std::size_t p = 0; p < packs_; ++p) at(0, l)[p].merge(at(0, l + half)[p]);
    for (std::size_t p = 0; p < packs_; ++p) {
      Carrier number[numbers * w], one[numbers];
      std::memcpy(number, &at(0, 0)[p], sizeof number);
      for (std::size_t c = 0; c < w; ++c) {
        for (std::size_t f = 0; f < numbers; ++f) one[f] = number[f * w + c];
        std::memcpy(out + first_of(p) + c, one, sizeof one);
      }
    }
  }
  /// Adds the rows of some neighbouring lanes, whose states fit into the first-level cache, before those of
  /// the next lanes. Contiguous rows are added as they come. A group has at least `ahead` lanes, so that no
  /// prefetch skips one.
  template <class Source> [[gnu::always_inline]] void add_in_turn(Source source) const {
    if (leaf_.is_contiguous()) {
      for (std::size_t begin = 0; begin < leaf_.n; begin += lanes) add_rows(source, begin, lanes, 0);
      return;
    }
    std::size_t together = lanes;
    while (together > ahead && together * packs_ * sizeof(Many) > cached) together /= 2;
    for (std::size_t first = 0; first < used_lanes(); first += together)
      for (std::size_t begin = first; begin < leaf_.n; begin += lanes)
        add_rows(source, begin, together,
                 begin + lanes < leaf_.n           ? begin + lanes
                 : first + together < used_lanes() ? first + together
                                                   : leaf_.n);
  }
  /// Adds up to `count` rows to one lane each, and prefetches the first of the rows that follow from `next`
  /// on.
  template <class Source>
  [[gnu::always_inline]] void add_rows(Source source, std::size_t begin, std::size_t count,
                                       std::size_t next) const {
    const std::size_t end = begin + count < leaf_.n ? begin + count : leaf_.n;
    for (std::size_t r = begin; r < end; ++r) {
      Many* const lane = at(0, r % lanes);
      if (r < lanes)
        for (std::size_t p = 0; p < packs_; ++p) lane[p] = Many{};
      prefetch(source, r + ahead < end ? r + ahead : next + (r + ahead - end));
      for (std::size_t p = 0; p + 1 < packs_; ++p) source.add(lane[p], r * leaf_.pitch + p * w);
      source.add(lane[packs_ - 1], r * leaf_.pitch + first_of(packs_ - 1));
    }
  }
  /// Level i holds the sum of the preceding 2^i rows of a lane if bit i of their number is set.
  template <class Source> [[gnu::always_inline]] void add_by_pairs(Source source) const {
    for (std::size_t r = 0; r < leaf_.n; ++r) {
      prefetch(source, r + ahead);
      const std::size_t before = r / lanes;
      for (std::size_t p = 0; p < packs_; ++p) {
        Many sum{};
        source.add(sum, r * leaf_.pitch + first_of(p));
        std::size_t level = 0;
        for (; before >> level & 1; ++level) sum = merged(at(level, r % lanes)[p], sum);
        at(level, r % lanes)[p] = sum;
      }
    }
    for (std::size_t l = 0; l < used_lanes(); ++l)
      for (std::size_t p = 0; p < packs_; ++p) {
        const std::size_t count = (leaf_.n - 1 - l) / lanes + 1;
        std::size_t level = 0;
        while (!(count >> level & 1)) ++level;
        Many sum = at(level, l)[p];
        while (count >> ++level)
          if (count >> level & 1) sum = merged(at(level, l)[p], sum);
        at(0, l)[p] = sum;
      }
  }
  /// Prefetches row r, unless the rows are contiguous.
  template <class Source> [[gnu::always_inline]] void prefetch(Source source, std::size_t r) const {
    if (!leaf_.is_contiguous()) source.prefetch(r * leaf_.pitch, leaf_.count);
  }
  static Many merged(Many a, const Many& b) {
    a.merge(b);
    return a;
  }

  Many* at(std::size_t level, std::size_t lane) const { return state_ + (level * lanes + lane) * packs_; }
  std::size_t used_lanes() const { return leaf_.n < lanes ? leaf_.n : lanes; }
  /// The first column of a pack. The last pack may overlap the one before it.
  std::size_t first_of(std::size_t pack) const {
    return (pack + 1) * w <= leaf_.count ? pack * w : leaf_.count - w;
  }

  const ColumnLeaf& leaf_;
  std::size_t packs_;
  Many* state_;  ///< by level, lane and pack
};

}  // namespace
}  // namespace samesum::cpu
