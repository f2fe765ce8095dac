/// Inner loops over the terms of sums, moments and the keys of extrema. Each instruction set compiles its own
/// copy.
#pragma once

#include "samesum/backend/cpu/kernels.hpp"
#include "samesum/backend/cpu/leaf.hpp"
#include "samesum/operation/extremum.hpp"

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
        store(h, out + i, count);
        store(l, rest + i, count);
      });
    else if (is_product(term))
      loop<T>(a, second_factor(term, a, b), n,
              [&](Vector v, Vector w2, std::size_t i, std::size_t count) { store(v * w2, out + i, count); });
    else
      loop<T>(a, a, n, [&](Vector v, Vector, std::size_t i, std::size_t count) {
        store(element_term(term, v), out + i, count);
      });
    if (low != nullptr && !is_product(term)) std::memset(low, 0, n * sizeof(Carrier));
  }

  /// See SumTerms.
  template <class Shape, class T>
  static std::size_t sum(Term term, const void* x, const void* y, std::size_t n, void* states) {
    using Loops = Leaves<Shape, Plain, F>;
    const T* a = static_cast<const T*>(x);
    auto* out = static_cast<Plain<Scalar<F>>*>(states);
    const auto of = [&](auto term_of) {
      return Loops::sum_whole(Source<T, decltype(term_of)>{a, static_cast<const T*>(y), term_of}, n, out);
    };
    if (!is_product(term)) return of([term](Vector v, const T*) { return element_term(term, v); });
    if (term == Term::square) return of([](Vector v, const T*) { return v * v; });
    return of([](Vector v, const T* other) { return v * Vector::load(other); });
  }

  /// See SumMiddling.
  template <class Shape, class T>
  static std::size_t sum_middling(const void* x, std::size_t n, void* states) {
    using Of = Squares<F>;
    using Wide = Pack<typename Of::G, width>;
    auto others = Of::is_big(Wide::zero());
    const auto square = [&others](Vector v, const T*) {
      const Wide wide{v.v};
      others |= Of::is_big(wide) | Of::is_small(wide);
      return wide * wide;
    };
    const std::size_t done = Leaves<Shape, Plain, typename Of::G>::sum_whole(
        Source<T, decltype(square)>{static_cast<const T*>(x), nullptr, square}, n,
        static_cast<Plain<Scalar<typename Of::G>>*>(states));
    return any(others) ? 0 : done;
  }

  /// See WriteSquares.
  template <class T>
  static bool write_squares(const void* x, std::size_t n, void* middling, void* big, void* small) {
    using Of = Squares<F>;
    using Wide = Pack<typename Of::G, width>;
    const T* a = static_cast<const T*>(x);
    auto of_others = Of::is_big(Wide::zero());
    loop<T>(a, a, n, [&](Vector v, Vector, std::size_t i, std::size_t count) {
      const Wide wide{v.v};
      of_others |= Of::is_big(wide) | Of::is_small(wide);
      store(Of::middling(wide), static_cast<Carrier*>(middling) + i, count);
    });
    const bool others = any(of_others);
    if (others)
      loop<T>(a, a, n, [&](Vector v, Vector, std::size_t i, std::size_t count) {
        store(Of::big(Wide{v.v}), static_cast<Carrier*>(big) + i, count);
        store(Of::small(Wide{v.v}), static_cast<Carrier*>(small) + i, count);
      });
    return others;
  }

  /// See LaneMoments.
  template <class Shape, class T> static void lane_moments(const void* x, void* means, void* variances) {
    const T* a = static_cast<const T*>(x);
    constexpr std::size_t packs = Shape::lanes / w;
    Vector mean[packs], variance[packs];
    for (std::size_t p = 0; p < packs; ++p) mean[p] = variance[p] = Vector::zero();
    for (std::size_t r = 0; r < Shape::rows; ++r) {
      const Vector share = Vector::broadcast(reciprocal<F>(static_cast<std::uint32_t>(r + 1)));
      for (std::size_t p = 0; p < packs; ++p)
        add_to_moments(mean[p], variance[p], Vector::load(a + r * Shape::lanes + p * w), share);
    }
    std::memcpy(means, mean, sizeof mean);
    std::memcpy(variances, variance, sizeof variance);
  }

  /// See LeafProduct. Powers of two are left out, and only the exponents of elements are added: a product of
  /// significands is rounded as if it were normalised. 1 stands in for missing elements, and changes nothing.
  template <class Shape>
  static bool leaf_product(const void* x, std::size_t n, void* numbers, std::int64_t& exponent) {
    using Bits = BitsOf<F>;
    using Words = Register<Bits, width>;
    constexpr std::size_t lanes = Shape::lanes;
    constexpr int fraction_bits = Format<F>::precision - 1, bias = Format<F>::max_exponent;
    constexpr Bits exponent_bits = Format<F>::infinity, one = Bits(bias) << fraction_bits;
    const F* a = static_cast<const F*>(x);
    const std::size_t rows = n / lanes, rest = n % lanes, packs_of_rest = (rest + w - 1) / w;
    std::size_t used = rows > 0 ? lanes : packs_of_rest * w;
    F last[lanes], product[lanes];
    for (std::size_t l = 0; l < packs_of_rest * w; ++l) last[l] = l < rest ? a[rows * lanes + l] : F{1};
    Words others{}, fields{};
    const auto take = [&](Words bits) {  // the significand, in [1, 2)
      fields += Words(bits & exponent_bits) >> fraction_bits;
      return Vector{same_bits<typename Vector::Storage>(Words((bits & ~exponent_bits) | one))};
    };
    for (std::size_t lane = 0; lane < used; lane += w) {
      Vector of_lanes = Vector::broadcast(1);
      const auto multiply = [&](const F* from) {
        Words bits;
        std::memcpy(&bits, from, sizeof bits);
        const Words field = bits & exponent_bits;
        others |= same_bits<Words>((field == Words{}) | (field == exponent_bits));
        of_lanes = of_lanes * take(bits);
      };
      for (std::size_t r = 0; r < rows; ++r) multiply(a + r * lanes + lane);
      if (lane < rest) multiply(last + lane);
      store(take(same_bits<Words>(of_lanes.v)), product + lane, w);
    }
    exponent = -std::int64_t{bias} * static_cast<std::int64_t>(rows * lanes + packs_of_rest * w + used);
    for (std::size_t l = 0; l < w; ++l) exponent += static_cast<std::int64_t>(fields[l]);
    for (std::size_t half = lanes / 2; half > 1; half /= 2) {  // products stay below 2^64
      for (std::size_t l = 0; l < half && l + half < used; ++l) product[l] *= product[l + half];
      used = used < half ? used : half;
    }
    std::memcpy(numbers, product, 2 * sizeof(F));
    return !any(others);
  }

  /// See LargestKey and FindKey.
  template <class T>
  static std::uint64_t largest_key(const void* x, std::size_t n, bool smallest, bool zeros_are_equal) {
    Keys best{};
    for_each_key<T>(x, n, smallest, zeros_are_equal, [&](Keys keys, std::size_t, std::size_t) {
      best = keys > best ? keys : best;
      return false;
    });
    std::uint64_t largest = 0;
    for (std::size_t l = 0; l < w; ++l) largest = best[l] > largest ? best[l] : largest;
    return largest;
  }
  template <class T>
  static std::size_t find_key(const void* x, std::size_t n, bool smallest, std::uint64_t key) {
    std::size_t found = n;
    for_each_key<T>(x, n, smallest, true, [&](Keys keys, std::size_t i, std::size_t count) {
      const auto is = keys == static_cast<WordOf<Carrier>>(key);
      for (std::size_t l = count; l-- > 0;) found = is[l] ? i + l : found;
      return found < n;
    });
    return found;
  }

 private:
  /// A source (see Elements) of the terms of elements, or of pairs of elements.
  template <class T, class Of> struct Source {
    static constexpr bool narrow = true;  // terms make loops bound by computation
    const T *x, *y;
    Of of;
    auto load(std::size_t i) const { return of(Vector::load(x + i), y == nullptr ? y : y + i); }
    [[gnu::always_inline]] void prefetch(std::size_t i, std::size_t count) const {
      Elements<Vector, T>{x}.prefetch(i, count);
      if (y != nullptr) Elements<Vector, T>{y}.prefetch(i, count);
    }
  };

  template <class Mask> static bool any(Mask mask) {
    bool any = false;
    for (std::size_t l = 0; l < w; ++l) any = any || mask[l];
    return any;
  }

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
  using Keys = Register<WordOf<Carrier>, width>;
  /// Calls body(keys, index, count) for each pack of the n elements until it returns true. Lanes beyond the
  /// last element have key 0, which no number has.
  template <class T, class Body>
  [[gnu::always_inline]] static void for_each_key(const void* x, std::size_t n, bool smallest,
                                                  bool zeros_are_equal, Body body) {
    const auto keys_of = [=](Vector v) {
      return zeros_are_equal ? KeyOf<F>::template of_number<width>(v.v, smallest)
                             : KeyOf<F>::template of<width>(v.v, smallest);
    };
    const T* a = static_cast<const T*>(x);
    std::size_t i = 0;
#pragma GCC unroll 1
    for (; i + w <= n; i += w)
      if (body(keys_of(Vector::load(a + i)), i, w)) return;
    if (i == n) return;
    T last[w] = {};
    std::memcpy(last, a + i, (n - i) * sizeof(T));
    Keys keys = keys_of(Vector::load(last));
    for (std::size_t l = n - i; l < w; ++l) keys[l] = 0;
    body(keys, i, n - i);
  }

  template <class V> [[gnu::always_inline]] static void store(V v, Carrier* to, std::size_t count) {
    if (count == w)
      std::memcpy(to, &v, sizeof v);
    else
      std::memcpy(to, &v, count * sizeof(Carrier));
  }
};

}  // namespace
}  // namespace samesum::cpu
