/// Inner loops over the terms of sums: elements, magnitudes, squares and products. Each instruction set
/// compiles its own copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"

namespace samesum::cpu {
namespace {

template <class F> class Terms {
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width;
  using Vector = Pack<F, width>;

 public:
  /// See WriteTerms.
  template <class T>
  static void write(Term term, const void* x, const void* y, std::size_t n, void* high, void* low) {
    const T* a = static_cast<const T*>(x);
    const T* b = static_cast<const T*>(y == nullptr ? x : y);
    auto* out = static_cast<Carrier*>(high);
    auto* rest = static_cast<Carrier*>(low);
    if (low != nullptr && is_product(term))
      loop<T>(a, second_factor(term, a, b), n, [&](Vector v, Vector w2, std::size_t i, std::size_t count) {
        const auto [h, l] = two_product(v, w2);
        store_lanes(h, out + i, count);
        store_lanes(l, rest + i, count);
      });
    else if (is_product(term))
      loop<T>(a, second_factor(term, a, b), n, [&](Vector v, Vector w2, std::size_t i, std::size_t count) {
        store_lanes(v * w2, out + i, count);
      });
    else
      loop<T>(a, a, n, [&](Vector v, Vector, std::size_t i, std::size_t count) {
        store_lanes(element_term(term, v), out + i, count);
      });
    if (low != nullptr && !is_product(term)) std::memset(low, 0, n * sizeof(Carrier));
  }

  /// See SumTerms.
  template <class Shape, class T>
  static std::size_t sum(Term term, const void* x, const void* y, std::size_t n, void* states) {
    using Loops = Leaves<Shape, Plain, F>;
    const T* a = static_cast<const T*>(x);
    auto* out = static_cast<Plain<Scalar<F>>*>(states);
    const auto sum_of = [&](auto term_of) {
      return Loops::sum_whole(Source<T, decltype(term_of)>{a, static_cast<const T*>(y), term_of}, n, out);
    };
    if (!is_product(term)) return sum_of([term](Vector v, const T*) { return element_term(term, v); });
    if (term == Term::square) return sum_of([](Vector v, const T*) { return v * v; });
    return sum_of([](Vector v, const T* other) { return v * Vector::load(other); });
  }

  /// See SumMiddling.
  template <class Shape, class T>
  static std::size_t sum_middling(const void* x, std::size_t n, void* states) {
    using Square = Squares<F>;
    using Wide = Pack<typename Square::G, width>;
    auto others = Square::is_big(Wide::zero());
    const auto square = [&others](Vector v, const T*) {
      const Wide wide{v.v};
      others |= Square::is_big(wide) | Square::is_small(wide);
      return wide * wide;
    };
    const std::size_t done = Leaves<Shape, Plain, typename Square::G>::sum_whole(
        Source<T, decltype(square)>{static_cast<const T*>(x), nullptr, square}, n,
        static_cast<Plain<Scalar<typename Square::G>>*>(states));
    return any_lane(others) ? 0 : done;
  }

  /// See WriteSquares.
  template <class T>
  static bool write_squares(const void* x, std::size_t n, void* middling, void* big, void* small) {
    using Square = Squares<F>;
    using Wide = Pack<typename Square::G, width>;
    const T* a = static_cast<const T*>(x);
    auto others_seen = Square::is_big(Wide::zero());
    loop<T>(a, a, n, [&](Vector v, Vector, std::size_t i, std::size_t count) {
      const Wide wide{v.v};
      others_seen |= Square::is_big(wide) | Square::is_small(wide);
      store_lanes(Square::middling(wide), static_cast<Carrier*>(middling) + i, count);
    });
    const bool others = any_lane(others_seen);
    if (others)
      loop<T>(a, a, n, [&](Vector v, Vector, std::size_t i, std::size_t count) {
        store_lanes(Square::big(Wide{v.v}), static_cast<Carrier*>(big) + i, count);
        store_lanes(Square::small(Wide{v.v}), static_cast<Carrier*>(small) + i, count);
      });
    return others;
  }

 private:
  /// A source (see PacksOfElements) of the terms of elements, or of pairs of elements.
  template <class T, class TermOf> struct Source {
    static constexpr bool narrow = true;  // terms make loops bound by computation
    static constexpr bool one_stream = true;
    const T *x, *y;
    TermOf term_of;
    auto load(std::size_t i) const { return term_of(Vector::load(x + i), y == nullptr ? y : y + i); }
    /// Prefetches one input only; two are read as fast without.
    [[gnu::always_inline]] void prefetch(std::size_t i, std::size_t count) const {
      if (y == nullptr) PacksOfElements<Vector, T>{x}.prefetch(i, count);
    }
  };

  template <class T, class Body>
  [[gnu::always_inline]] static void loop(const T* a, const T* b, std::size_t n, Body body) {
    std::size_t i = 0;
#pragma GCC unroll 1
    for (; i + w <= n; i += w) body(Vector::load(a + i), Vector::load(b + i), i, w);
    if (i == n) return;
    T last_a[w] = {}, last_b[w] = {};
    std::memcpy(last_a, a + i, (n - i) * sizeof(T));
    std::memcpy(last_b, b + i, (n - i) * sizeof(T));
    body(Vector::load(last_a), Vector::load(last_b), i, n - i);
  }
};

}  // namespace
}  // namespace samesum::cpu
