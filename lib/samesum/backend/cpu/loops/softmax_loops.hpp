/// The inner loops of softmax. Each instruction set compiles its own copy, hence the anonymous namespace in a
/// header.
#pragma once

#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/operation/online_softmax.hpp"

namespace samesum::cpu {
namespace {

/// Rounds numbers to T and returns their bits; NaN becomes the canonical one.
template <class T, int W> SAMESUM_HD inline Register<BitsOf<T>, W> narrow_lanes(Pack<fp64, W> y) {
  using Bits = Register<BitsOf<T>, W>;
  const Register<T, W> rounded = convert_lanes<T, W>(y.v);
  const Bits canonical = Bits{} + Format<T>::canonical_nan;
  return rounded == rounded ? same_bits<Bits>(rounded) : canonical;
}
template <class T, int W> SAMESUM_HD inline Register<BitsOf<T>, W> narrow_lanes(Pack<fp32, W> y) {
  using Words = Register<std::uint32_t, W>;
  const Register<float, W> rounded = round_lanes<T, float, W>(y.v);
  const Words bits = same_bits<Words>(rounded);
  constexpr int excess = Format<fp32>::precision - Format<T>::precision,
                bias = Format<fp32>::max_exponent - Format<T>::max_exponent;
  Words narrow;
  if constexpr (bias == 0) {
    narrow = bits >> excess;
  } else {
    // Normal numbers change the bias of the exponent; subnormal ones become multiples of the smallest.
    const Words magnitude = bits & 0x7fffffffu, sign = (bits & 0x80000000u) >> 16;
    constexpr std::uint32_t smallest_normal = std::uint32_t{bias + 1} << 23,
                            rebias = std::uint32_t{bias} << 23;
    constexpr float subnormals = static_cast<float>(power_of_two(-Format<T>::min_quantum));
    const Words tiny = convert_lanes<std::uint32_t, W>(
        same_bits<Register<float, W>>(Words(magnitude < smallest_normal ? magnitude : Words{})) * subnormals);
    const Words finite = magnitude < smallest_normal ? tiny : (magnitude - rebias) >> excess;
    narrow = (magnitude == 0x7f800000u ? Words{} + std::uint32_t{Format<T>::infinity} : finite) | sign;
  }
  const Words with_nan = y.v == y.v ? narrow : Words{} + std::uint32_t{Format<T>::canonical_nan};
  return convert_lanes<BitsOf<T>, W>(with_nan);
}

/// Rows of elements of format T that are computed in format C, fp32 or fp64.
template <class T, class C> class SoftmaxRow {
  static constexpr int width = vector_bytes / int{sizeof(C)};
  static constexpr std::size_t w = width;
  using V = Pack<C, width>;
  using One = Scalar<C>;
  using Shape = CoarsenedTree::Shape;

 public:
  /// Returns the largest element m. It may skip a NaN, whose e^(x - m) is NaN whatever m is.
  static C largest(const void* x, std::size_t n) {
    constexpr std::size_t chains = 4;
    V chain[chains];
    for (V& c : chain) c = absent();
    const auto see = [](V& m, V v) SAMESUM_HD { m = select(v.v > m.v, v, m); };
    const T* at = static_cast<const T*>(x);
    std::size_t i = 0;
    for (; i + chains * w <= n; i += chains * w)
      for (std::size_t c = 0; c < chains; ++c) see(chain[c], V::load(at + i + c * w));
    for_each_pack(at + i, n - i, [&](V v, std::size_t, std::size_t) SAMESUM_HD { see(chain[0], v); });
    for (std::size_t c = 1; c < chains; ++c) see(chain[0], chain[c]);
    C lane[w];
    std::memcpy(lane, &chain[0], sizeof lane);
    for (std::size_t l = 1; l < w; ++l) lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    return lane[0];
  }

  static void exponentials(const void* x, std::size_t n, C largest, C* e) {
    const V m = V::broadcast(largest);
    for_each_pack(x, n, [&](V v, std::size_t i, std::size_t count) SAMESUM_HD {
      const V power = exp_of_nonpositive(v - m);
      std::memcpy(e + i, &power, count * sizeof(C));
    });
  }

  /// Writes the exponentials of one leaf, and returns their plain sum. Lanes without an element count as
  /// +0, which leaves a nonnegative sum unchanged.
  static C sum_exponentials(const void* x, std::size_t n, C largest, C* e) {
    constexpr std::size_t lanes = Shape::lanes, packs = lanes / w;
    const V m = V::broadcast(largest);
    V lane[packs];
    for (V& l : lane) l = V::zero();
    const T* at = static_cast<const T*>(x);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (std::size_t p = 0; p < packs; ++p) {
        const V power = exp_of_nonpositive(V::load(at + i + p * w) - m);
        std::memcpy(e + i + p * w, &power, sizeof power);
        lane[p] = lane[p] + power;
      }
    std::size_t p = 0;
    for_each_pack(at + i, n - i, [&](V v, std::size_t first, std::size_t count) SAMESUM_HD {
      const V power = exp_of_nonpositive(v - m);
      std::memcpy(e + i + first, &power, count * sizeof(C));
      lane[p] = lane[p] + power;
      ++p;
    });
    for (std::size_t half = packs / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
    return halved<width>(lane[0].v);
  }

  static void scale(const C* e, std::size_t n, C factor, void* y) {
    const V f = V::broadcast(factor);
    SoftmaxRow<C, C>::for_each_pack(
        e, n, [&](V v, std::size_t i, std::size_t count) SAMESUM_HD { store(v * f, y, i, count); });
  }

  static void scaled_exponentials(const void* x, std::size_t n, C largest, C factor, void* y) {
    const V m = V::broadcast(largest), f = V::broadcast(factor);
    for_each_pack(x, n, [&](V v, std::size_t i, std::size_t count) SAMESUM_HD {
      store(exp_of_nonpositive(v - m) * f, y, i, count);
    });
  }

  static void shift(const void* x, std::size_t n, C largest, C log_sum, void* y) {
    const V m = V::broadcast(largest), s = V::broadcast(log_sum);
    for_each_pack(x, n,
                  [&](V v, std::size_t i, std::size_t count) SAMESUM_HD { store((v - m) - s, y, i, count); });
  }

  /// See SoftmaxLoops.
  static void online_leaves(const void* x, std::size_t n, OnlineSoftmax<One>* states) {
    const T* at = static_cast<const T*>(x);
    for (std::size_t i = 0; i < n; i += Shape::leaf)
      *states++ = online_leaf(at + i, n - i < Shape::leaf ? n - i : Shape::leaf);
  }

  /// Calls visit(pack, index of its first element, number of its elements); the other lanes are -inf.
  template <class Visit> static void for_each_pack(const void* x, std::size_t n, Visit visit) {
    const T* at = static_cast<const T*>(x);
    std::size_t i = 0;
    for (; i + w <= n; i += w) visit(V::load(at + i), i, w);
    if (i == n) return;
    T last[w];
    for (T& element : last) element = minus_infinity;
    std::memcpy(last, at + i, (n - i) * sizeof(T));
    visit(V::load(last), i, n - i);
  }

 private:
  static constexpr T minus_infinity = from_bits<T>(BitsOf<T>(Format<T>::sign_bit | Format<T>::infinity));

  using Many = OnlineSoftmax<V>;

  /// The state of one leaf. Packs without an element are left out, since merging fresh states changes no bit.
  static OnlineSoftmax<One> online_leaf(const T* at, std::size_t n) {
    constexpr std::size_t lanes = Shape::lanes, packs = lanes / w;
    Many lane[packs];
    const std::size_t used = n < lanes ? (n + w - 1) / w : packs;
    for_each_pack(at, n < lanes ? n : lanes,
                  [&](V v, std::size_t i, std::size_t) SAMESUM_HD { lane[i / w] = started(v); });
    for (std::size_t i = lanes; i < n; i += lanes)
      for_each_pack(at + i, n - i < lanes ? n - i : lanes,
                    [&](V v, std::size_t l, std::size_t) SAMESUM_HD { lane[l / w].add(v); });
    for (std::size_t half = packs / 2; half > 0; half /= 2)
      for (std::size_t p = 0; p < half && p + half < used; ++p) lane[p].merge(lane[p + half]);
    return halved_states<width / 2>(lane[0]);
  }

  /// Returns the states of x alone: no exponential is needed.
  static Many started(V x) {
    const V number = select(x == x, V::broadcast(1), V::broadcast(std::numeric_limits<C>::quiet_NaN()));
    return {select(x.v > absent().v, x, absent()), number};
  }

  /// Halves the lanes: lane l merges lane l + half until one lane is left. The other lanes of the pack, which
  /// do not count, are computed with them.
  template <int half> static OnlineSoftmax<One> halved_states(Many lane) {
    if constexpr (half == 0) {
      return {One{lane.largest.v[0]}, One{lane.sum.v[0]}};
    } else {
      lane.merge({V{shifted_lanes<half>(lane.largest.v)}, V{shifted_lanes<half>(lane.sum.v)}});
      return halved_states<half / 2>(lane);
    }
  }

  /// Halves the lanes: lane l merges lane l + half until one lane is left.
  template <int count> static C halved(Register<C, count> v) {
    if constexpr (count == 1) {
      return v;
    } else if constexpr (count == 2) {
      return v[0] + v[1];
    } else {
      constexpr int half = count / 2;
      return [&]<int... l>(std::integer_sequence<int, l...>) {
        return halved<half>(__builtin_shufflevector(v, v, l...) +
                            __builtin_shufflevector(v, v, (half + l)...));
      }
      (std::make_integer_sequence<int, half>{});
    }
  }
  static V absent() { return V::broadcast(-std::numeric_limits<C>::infinity()); }
  [[gnu::always_inline]] static void store(V v, void* y, std::size_t i, std::size_t count) {
    const auto bits = narrow_lanes<T>(v);
    std::memcpy(static_cast<BitsOf<T>*>(y) + i, &bits, count * sizeof(T));
  }
};

template <class T, class C> constexpr SoftmaxLoops<C> softmax_loops() {
  if constexpr (can_read<T, C>) {
    using Row = SoftmaxRow<T, C>;
    return {Row::largest, Row::exponentials, Row::sum_exponentials, Row::scale, Row::scaled_exponentials,
            Row::shift,   Row::online_leaves};
  } else {
    return {};
  }
}

}  // namespace
}  // namespace samesum::cpu
