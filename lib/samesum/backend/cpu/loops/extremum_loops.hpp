/// The largest keys of elements and of neighbouring columns (extremum.hpp), and where they are. Each
/// instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/vectors.hpp"
#include "samesum/operation/extremum.hpp"

namespace samesum::cpu {
namespace {

template <class F> class ExtremumLoops {
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width;
  using Vector = Pack<F, width>;

 public:
  /// See LargestKey.
  template <class T> static std::uint64_t largest_key(const void* x, std::size_t n, KeyOrder order) {
    const T* const a = static_cast<const T*>(x);
    return with_order(
        order, [&]<bool smallest, bool skips>() __attribute__((always_inline)) {
          constexpr std::size_t chains = 4;
          Best<smallest, skips> best[chains];
          std::size_t i = 0;
          for (; i + chains * w <= n; i += chains * w)
            for (std::size_t c = 0; c < chains; ++c) best[c].see(Vector::load(a + i + c * w));
          for (; i + w <= n; i += w) best[0].see(Vector::load(a + i));
          if (i < n) {  // seeing an element twice changes nothing
            T last[w];
            for (std::size_t l = 0; n < w && l < w; ++l) last[l] = a[l < n ? l : 0];
            best[1].see(Vector::load(n < w ? last : a + n - w));
          }
          for (std::size_t c = 1; c < chains; ++c) best[0].merge(best[c]);
          return best[0].across().key(0, order.zeros_are_equal, [&] { return has_number(a, 1, n); });
        });
  }
  /// See LargestKeys.
  template <class T> static void largest_keys(const ColumnLeaf& leaf, KeyOrder order, std::uint64_t* keys) {
    constexpr std::size_t most_packs = vector_bytes == 64 ? 8 : 4, ahead = 16;
    const T* const a = static_cast<const T*>(leaf.x);
    with_order(order, [&]<bool smallest, bool skips>() {
      const auto strip = [&]<std::size_t packs>(std::size_t first) __attribute__((always_inline)) {
        Best<smallest, skips> best[packs];
        for (std::size_t r = 0; r < leaf.n; ++r) {
          const T* const row = a + r * leaf.pitch + first;
          prefetch_row(row, packs * w * sizeof(T), ahead * leaf.pitch * sizeof(T));
          for (std::size_t p = 0; p < packs; ++p) best[p].see(Vector::load(row + p * w));
        }
        for (std::size_t c = 0; c < packs * w; ++c)
          keys[first + c] = best[c / w].key(c % w, order.zeros_are_equal,
                                            [&] { return has_number(a + first + c, leaf.pitch, leaf.n); });
      };
      std::size_t c = 0;
      for (; c + most_packs * w <= leaf.count; c += most_packs * w) strip.template operator()<most_packs>(c);
      for (; c + w <= leaf.count; c += w) strip.template operator()<1>(c);
      if (c < leaf.count) strip.template operator()<1>(leaf.count - w);
      return std::uint64_t{0};
    });
  }
  /// See FindKey.
  template <class T>
  static std::size_t find_key(const void* x, std::size_t n, bool smallest, std::uint64_t wanted) {
    const T* const a = static_cast<const T*>(x);
    const auto key = static_cast<typename KeyOf<F>::Key>(wanted);
    const Carrier number = convert<Carrier>(KeyOf<F>::number(key, smallest));
    const auto find = [&](auto is) __attribute__((always_inline)) {
      constexpr std::size_t together = 4;
      std::size_t i = 0;
      for (; i + together * w <= n; i += together * w) {
        auto found = is(Vector::load(a + i).v);
        for (std::size_t k = 1; k < together; ++k) found |= is(Vector::load(a + i + k * w).v);
        if (any_lane(found)) break;
      }
      while (i < n && !is(Scalar<F>::of(a[i]).v)) ++i;
      return i;
    };
    if (key == KeyOf<F>::nan) return find([](auto v) { return v != v; });
    return find([number](auto v) { return v == number; });
  }

 private:
  /// The best number of each lane by comparison of numbers. Its key is the largest one, except that NaN and
  /// the signs of zeros are recorded apart.
  template <bool smallest, bool skips> struct Best {
    using Word = WordOf<Carrier>;
    using Words = Register<Word, width>;
    /// The infinity that every other number replaces.
    static constexpr Carrier none =
        smallest ? std::numeric_limits<Carrier>::infinity() : -std::numeric_limits<Carrier>::infinity();
    Vector best = Vector::broadcast(none);
    Vector unordered = Vector::zero();               ///< NaN if one was seen and is not skipped
    Words signs = Words{} - Word{smallest ? 0 : 1};  ///< their bits: "or" of all for the smallest, else "and"

    [[gnu::always_inline]] void see(Vector v) {
      const auto is_number = v.v == v.v;
      if constexpr (skips)
        v.v = is_number ? v.v : Vector::broadcast(none).v;
      else
        unordered.v = is_number ? unordered.v : v.v;
      join(best.v, v.v);
      join_signs(signs, same_bits<Words>(v.v));
    }
    [[gnu::always_inline]] void merge(const Best& other) {
      join(best.v, other.best.v);
      unordered.v = other.unordered.v == other.unordered.v ? unordered.v : other.unordered.v;
      join_signs(signs, other.signs);
    }
    /// Merges all lanes into lane 0 of the result.
    [[gnu::always_inline]] Best across() const {
      Carrier number[w], nan[w];
      Word sign[w];
      std::memcpy(number, &best, sizeof best);
      std::memcpy(nan, &unordered, sizeof unordered);
      std::memcpy(sign, &signs, sizeof signs);
      for (std::size_t half = w / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) {
          join(number[l], number[l + half]);
          nan[l] = nan[l + half] == nan[l + half] ? nan[l] : nan[l + half];
          join_signs(sign[l], sign[l + half]);
        }
      Best all;
      all.best.v[0] = number[0];
      all.unordered.v[0] = nan[0];
      all.signs[0] = sign[0];
      return all;
    }
    /// Returns the largest key of a lane. has_number() says whether the lane has an element that is not NaN.
    template <class HasNumber>
    [[gnu::always_inline]] std::uint64_t key(std::size_t l, bool zeros_are_equal,
                                             HasNumber has_number) const {
      if (!skips && unordered.v[l] != unordered.v[l]) return KeyOf<F>::nan;
      Carrier number = best.v[l];
      if (skips && number == none && !has_number()) return 0;
      if (number == 0)
        number = !zeros_are_equal && (signs[l] & KeyOf<F>::sign) != 0 ? -Carrier{0} : Carrier{0};
      return KeyOf<F>::of(number, smallest);
    }

   private:
    template <class V> [[gnu::always_inline]] static void join(V& a, V b) {
      if constexpr (smallest)
        a = b < a ? b : a;
      else
        a = b > a ? b : a;
    }
    template <class W> [[gnu::always_inline]] static void join_signs(W& a, W b) {
      if constexpr (smallest)
        a |= b;
      else
        a &= b;
    }
  };
  template <class Visit> [[gnu::always_inline]] static std::uint64_t with_order(KeyOrder order, Visit visit) {
    if (order.smallest)
      return order.skip_nan ? visit.template operator()<true, true>()
                            : visit.template operator()<true, false>();
    return order.skip_nan ? visit.template operator()<false, true>()
                          : visit.template operator()<false, false>();
  }
  template <class T>
  [[gnu::always_inline]] static bool has_number(const T* x, std::size_t stride, std::size_t n) {
    std::size_t i = 0;
    while (i < n && is_nan_bits<T>(to_bits(x[i * stride]))) ++i;
    return i < n;
  }
};

}  // namespace
}  // namespace samesum::cpu
