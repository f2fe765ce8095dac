/// Inner loops over the terms of sums, moments and the keys of extrema. Each instruction set compiles its own
/// copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"
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

  /// See LeafMoments.
  template <class Shape, class T>
  static void leaf_moments(const void* x, std::size_t n, void* of_mean, void* of_variance) {
    const T* const a = static_cast<const T*>(x);
    constexpr std::size_t lanes = Shape::lanes, packs = lanes / w;
    const std::size_t rows = n / lanes, rest = n % lanes;
    Vector mean[packs], variance[packs];
    for (std::size_t p = 0; p < (rows > 0 ? packs : (rest + w - 1) / w); ++p)
      mean[p] = variance[p] = Vector::zero();
    const auto share_of = [](std::size_t row) {
      return Vector::broadcast(reciprocal<F>(static_cast<std::uint32_t>(row + 1)));
    };
    for (std::size_t r = 0; r < rows; ++r) {
      const Vector share = share_of(r);
      for (std::size_t p = 0; p < packs; ++p)
        add_to_moments(mean[p], variance[p], Vector::load(a + r * lanes + p * w), share);
    }
    const T* const last = a + rows * lanes;
    const Vector share = share_of(rows);
    std::size_t p = 0;
    for (; (p + 1) * w <= rest; ++p) add_to_moments(mean[p], variance[p], Vector::load(last + p * w), share);
    if (p * w < rest) {
      T padded[w] = {};
      std::memcpy(static_cast<void*>(padded), last + p * w, (rest - p * w) * sizeof(T));
      const Vector before[2] = {mean[p], variance[p]};
      add_to_moments(mean[p], variance[p], Vector::load(padded), share);
      const auto has_element = lane_numbers() < static_cast<Carrier>(rest - p * w);
      mean[p] = select(has_element, mean[p], before[0]);
      variance[p] = select(has_element, variance[p], before[1]);
    }
    halve_moments<lanes / 2>(mean, variance, rows, rest);
    std::memcpy(of_mean, mean, sizeof(Carrier));
    std::memcpy(of_variance, variance, sizeof(Carrier));
  }

  /// See LeafProduct. Powers of two are left out, and only the exponents of elements are added: a product of
  /// significands is rounded as if it were normalised. 1 stands in for missing elements, and changes nothing.
  template <class Shape>
  static bool leaf_product(const void* x, std::size_t n, void* numbers, std::int64_t& exponent) {
    constexpr std::size_t lanes = Shape::lanes;
    const F* a = static_cast<const F*>(x);
    const std::size_t rows = n / lanes, rest = n % lanes, packs_of_rest = (rest + w - 1) / w;
    std::size_t used = rows > 0 ? lanes : packs_of_rest * w;
    F last[lanes], product[lanes];
    for (std::size_t l = 0; l < packs_of_rest * w; ++l) last[l] = l < rest ? a[rows * lanes + l] : F{1};
    Significands all;
    for (std::size_t lane = 0; lane < used; lane += w) {
      Vector of_lanes = Vector::broadcast(1);
      const auto multiply = [&](const F* from) { of_lanes = of_lanes * all.take_element(from); };
      for (std::size_t r = 0; r < rows; ++r) multiply(a + r * lanes + lane);
      if (lane < rest) multiply(last + lane);
      store(all.take(of_lanes), product + lane, w);
    }
    exponent = -std::int64_t{Format<F>::max_exponent} *
               static_cast<std::int64_t>(rows * lanes + packs_of_rest * w + used);
    for (std::size_t l = 0; l < w; ++l) exponent += static_cast<std::int64_t>(all.fields[l]);
    for (std::size_t half = lanes / 2; half > 1; half /= 2) {  // products stay below 2^64
      for (std::size_t l = 0; l < half && l + half < used; ++l) product[l] *= product[l + half];
      used = used < half ? used : half;
    }
    std::memcpy(numbers, product, 2 * sizeof(F));
    return !any(all.others);
  }

  /// See LeafProducts. Row r of the leaf belongs to lane r mod lanes.
  template <class Shape>
  static void leaf_products(const ColumnLeaf& leaf, void* scratch, ColumnProduct* out) {
    constexpr std::size_t lanes = Shape::lanes, ahead = 16;
    const std::size_t packs = (leaf.count - 1) / w + 1, used = leaf.n < lanes ? leaf.n : lanes;
    const F* const x = static_cast<const F*>(leaf.x);
    auto* const lane = static_cast<Vector*>(scratch);
    Significands of_pack[ColumnLeaf::most / w];
    const auto first_of = [&](std::size_t p) {  // the last pack may overlap the one before it
      return (p + 1) * w <= leaf.count ? p * w : leaf.count - w;
    };
    for (std::size_t r = 0; r < leaf.n; ++r) {
      Vector* const product = lane + r % lanes * packs;
      if (!leaf.is_contiguous())
        prefetch_row(x + r * leaf.pitch, leaf.count * sizeof(F), ahead * leaf.pitch * sizeof(F));
      for (std::size_t p = 0; p < packs; ++p) {
        const Vector element = of_pack[p].take_element(x + r * leaf.pitch + first_of(p));
        product[p] = r < lanes ? element : product[p] * element;
      }
    }
    for (std::size_t l = 0; l < used; ++l)
      for (std::size_t p = 0; p < packs; ++p) lane[l * packs + p] = of_pack[p].take(lane[l * packs + p]);
    for (std::size_t half = lanes / 2; half > 1; half /= 2)  // products stay below 2^64
      for (std::size_t l = 0; l < half && l + half < used; ++l)
        for (std::size_t p = 0; p < packs; ++p)
          lane[l * packs + p] = lane[l * packs + p] * lane[(l + half) * packs + p];
    for (std::size_t p = 0; p < packs; ++p)
      for (std::size_t c = 0; c < w; ++c)
        out[first_of(p) + c] = {
            {double{lane[p].v[c]}, used > 1 ? double{lane[packs + p].v[c]} : 1.0},
            static_cast<std::int64_t>(of_pack[p].fields[c]) -
                std::int64_t{Format<F>::max_exponent} * static_cast<std::int64_t>(leaf.n + used),
            of_pack[p].others[c] == 0};
  }

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
          if (i < n) {  // to see an element again changes nothing
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
        if (any(found)) break;
      }
      while (i < n && !is(Scalar<F>::of(a[i]).v)) ++i;
      return i;
    };
    if (key == KeyOf<F>::nan) return find([](auto v) { return v != v; });
    return find([number](auto v) { return v == number; });
  }

 private:
  /// The best numbers of each lane, compared as numbers. That is the largest key but for NaN and the sign of
  /// zero.
  template <bool smallest, bool skips> struct Best {
    using Word = WordOf<Carrier>;
    using Words = Register<Word, width>;
    /// The infinity that every number replaces.
    static constexpr Carrier none =
        smallest ? std::numeric_limits<Carrier>::infinity() : -std::numeric_limits<Carrier>::infinity();
    Vector best = Vector::broadcast(none);
    Vector unordered = Vector::zero();  ///< NaN if one was seen and is not skipped
    Words signs =
        Words{} - Word{smallest ? 0 : 1};  ///< their bits, joined by "or" for the smallest, else by "and"

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
    /// Lane 0 of the result is that of all lanes.
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
    /// The largest key of a lane. has_number() tells whether there are other elements than NaN.
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

  /// Cuts numbers into a significand and an exponent.
  struct Significands {
    using Bits = BitsOf<F>;
    using Words = Register<Bits, width>;
    static constexpr int fraction_bits = Format<F>::precision - 1;
    static constexpr Bits exponent_bits = Format<F>::infinity, one = Bits(Format<F>::max_exponent)
                                                                     << fraction_bits;
    Words fields{};  ///< sums of the fields of the exponents
    Words others{};  ///< not 0 in lanes that had numbers which are 0, subnormal, infinite or NaN

    /// The significands, in [1, 2), with the signs.
    [[gnu::always_inline]] Vector take(Vector v) { return take(same_bits<Words>(v.v)); }
    [[gnu::always_inline]] Vector take_element(const F* x) {
      Words bits;
      std::memcpy(&bits, x, sizeof bits);
      const Words field = bits & exponent_bits;
      others |= same_bits<Words>((field == Words{}) | (field == exponent_bits));
      return take(bits);
    }
    [[gnu::always_inline]] Vector take(Words bits) {
      fields += Words(bits & exponent_bits) >> fraction_bits;
      return Vector{same_bits<typename Vector::Storage>(Words((bits & ~exponent_bits) | one))};
    }
  };

  /// A source (see Elements) of the terms of elements, or of pairs of elements.
  template <class T, class Of> struct Source {
    static constexpr bool narrow = true;  // terms make loops bound by computation
    static constexpr bool one_stream = true;
    const T *x, *y;
    Of of;
    auto load(std::size_t i) const { return of(Vector::load(x + i), y == nullptr ? y : y + i); }
    /// Prefetches one input only; two are read as fast without.
    [[gnu::always_inline]] void prefetch(std::size_t i, std::size_t count) const {
      if (y == nullptr) Elements<Vector, T>{x}.prefetch(i, count);
    }
  };

  static Register<Carrier, width> lane_numbers() {
    Register<Carrier, width> numbers;
    for (int l = 0; l < width; ++l) numbers[l] = static_cast<Carrier>(l);
    return numbers;
  }
  /// Merges lane l + half into lane l, for halves down to 1: Moments::merge. The first `longer` of the 2·half
  /// lanes, fewer than all, have count + 1 elements, the others `count`.
  template <std::size_t half>
  [[gnu::always_inline]] static void halve_moments(Vector* mean, Vector* variance, std::size_t count,
                                                   std::size_t longer) {
    // A longer lane l has a partner that is longer too if l < both.
    const std::size_t both = longer > half ? longer - half : 0,
                      end = count > 0 ? half : both;  // beyond, partners have no elements
    const auto number = [](std::size_t k) { return static_cast<Carrier>(k); };
    const auto share = [&](std::size_t of) {
      return Vector::broadcast(round_lanes<F, Carrier, 1>(number(of) / number(2 * count + 1)));
    };
    // The lanes from `first` to `last` - 1 have one element more than their partners.
    const std::size_t first = both, last = longer < half ? longer : half;
    const bool any_differ = count > 0 && first < last;  // otherwise no division is needed
    const Vector equal = Vector::broadcast(Carrier(0.5)), larger = any_differ ? share(count + 1) : equal,
                 smaller = any_differ ? share(count) : equal;
    for (std::size_t p = 0; p * w < end; ++p) {
      const std::size_t l = p * w;
      Vector mine = equal, others = equal;
      if (any_differ && first < l + w && last > l) {
        const auto lane = lane_numbers();
        const auto differs = (lane >= number(first) - number(l)) & (lane < number(last) - number(l));
        mine = select(differs, larger, equal);
        others = select(differs, smaller, equal);
      }
      Vector next_mean = mean[p], next_variance = variance[p];
      merge_moments(next_mean, next_variance, partner<half>(mean, p), partner<half>(variance, p), mine,
                    others);
      if (end < l + w && end < half) {
        const auto merges = lane_numbers() < number(end - l);
        next_mean = select(merges, next_mean, mean[p]);
        next_variance = select(merges, next_variance, variance[p]);
      }
      mean[p] = next_mean;
      variance[p] = next_variance;
    }
    if constexpr (half > 1) {
      const std::size_t sum = 2 * count + (both > 0 || longer == half ? 1 : 0);
      halve_moments<half / 2>(mean, variance, sum, longer == half ? 0 : both > 0 ? both : longer);
    }
  }
  static void merge_moments(Vector& mean, Vector& variance, Vector other_mean, Vector other_variance,
                            Vector mine, Vector others) {
    const Vector apart = other_mean - mean;
    variance = (variance * mine + other_variance * others) + (apart * mine) * (apart * others);
    mean = mean + apart * others;
  }
  /// The lanes from `half` lanes behind those of pack p on.
  template <std::size_t half> [[gnu::always_inline]] static Vector partner(const Vector* of, std::size_t p) {
    if constexpr (half >= w)
      return of[p + half / w];
    else
      return Vector{shifted_lanes<int{half}>(of[0].v)};
  }

  template <class Mask> [[gnu::always_inline]] static bool any(Mask mask) {
    const auto words = same_bits<Register<std::uint64_t, int{sizeof mask / 8}>>(mask);
    std::uint64_t all = 0;
    for (std::size_t l = 0; l < sizeof mask / 8; ++l) all |= words[l];
    return all != 0;
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
  template <class V> [[gnu::always_inline]] static void store(V v, Carrier* to, std::size_t count) {
    if (count == w)
      std::memcpy(to, &v, sizeof v);
    else
      std::memcpy(to, &v, count * sizeof(Carrier));
  }
};

}  // namespace
}  // namespace samesum::cpu
