/// Terms that no window holds to their last bits: scaled so that the largest one lies at the top of a window,
/// which rounds away the bits below it, within a bound. Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/exact/term_streams.hpp"

namespace samesum::cpu {
namespace {

/// Scales the elements of each lane by a power of two. Then one window serves all data.
///
/// Elements x become x' < 2^element_top; those 2^-300 times as large as the largest one become 0. The factors
/// of products are x = m·2^e, with 1 <= |m| < 2, and y: x' is m, and y' has the exponents of both less that
/// of the largest product. So neither a product nor what it lacks overflows or underflows, whatever the
/// factors.
template <class T, ExactlySummed what> class ScaledTerms {
  using Streams = TermStreams<T, what>;
  using V = typename Streams::V;
  using Words = typename Streams::Words;
  using Integers = typename Streams::Integers;
  static constexpr bool has_products = Streams::has_products;
  static constexpr int element_top = 2, product_top = 2 * element_top, range = 300;
  static constexpr std::uint64_t exponent_bits = Format<fp64>::infinity;
  static constexpr int fraction_bits = Format<fp64>::precision - 1, bias = Format<fp64>::max_exponent;

 public:
  static constexpr int words = Streams::more;

  /// The size of a term, which orders terms by their exponents. That of a product with a factor that is 0 or
  /// subnormal may be too large.
  [[gnu::always_inline]] static V size(V x, V y) {
    if constexpr (!has_products) return magnitude(x);
    const Words a = same_bits<Words>(x.v) & exponent_bits, b = same_bits<Words>(y.v) & exponent_bits;
    return {same_bits<typename V::Storage>(Words((a >> 1) + (b >> 1)))};
  }

  [[gnu::always_inline]] static V larger(V a, V b) { return select(a.v > b.v, a, b); }

  /// Scales blocks of n terms per lane, whose largest sizes are given. All factors are below 2^top.
  ScaledTerms(V largest, int top, std::size_t n) {
    const int log2_n = log2_count(n);
    const auto place = [&](std::size_t stream, int most) {
      windows_[stream].place(ExponentRange::between(most - 1, most), log2_n);
    };
    if constexpr (Streams::adds_elements) place(0, element_top);
    if constexpr (Streams::multiplies) place(Streams::adds_elements, product_top);
    if constexpr (Streams::multiplies && Streams::is_wide) place(Streams::streams - 1, product_top - 53);
    const auto bound = [&](int most) { return V::broadcast(StreamWindow<words>::error(most, log2_n)); };
    const Words size = same_bits<Words>(largest.v);
    if constexpr (has_products) {
      const Integers field = Integers(size >> (fraction_bits - 1));
      exponent = field - std::int64_t{2 * bias};
      // Products with a subnormal factor, which become 0, are below 2^(top - bias + 1).
      const auto counts = Integers(field - std::int64_t{top + bias + range}) < Integers{};
      error = select(counts, V::broadcast(std::numeric_limits<double>::infinity()), bound(product_top));
    } else {
      Integers top_field = Integers(size >> fraction_bits) + std::int64_t{1};  // of a power of two above it
      top_field =
          top_field < std::int64_t{2 * element_top} ? Integers{} + std::int64_t{2 * element_top} : top_field;
      exponent = top_field - std::int64_t{bias + element_top};
      factor_ = Streams::power(-exponent);
      least_ = Streams::power(exponent - std::int64_t{range});
      const auto is_zero = largest.v == typename V::Storage{};
      error = select(is_zero, V::zero(), bound(element_top));
      square_error = select(is_zero, V::zero(), bound(product_top));
    }
  }

  /// The factors of a term, scaled.
  [[gnu::always_inline]] void scale(V& x, V& y) const {
    if constexpr (has_products) {
      const Words a = same_bits<Words>(x.v), b = same_bits<Words>(y.v), none{}, a_field = a & exponent_bits,
                  b_field = b & exponent_bits;
      const auto field =
          Integers((a_field >> fraction_bits) + (b_field >> fraction_bits)) - (exponent + std::int64_t{bias});
      const auto counts =
          Words(field > std::int64_t{bias - range}) & Words(a_field != none) & Words(b_field != none);
      x.v = same_bits<typename V::Storage>(Words(((a & ~exponent_bits) | to_bits(1.0)) & counts));
      y.v = same_bits<typename V::Storage>(
          Words(((b & ~exponent_bits) | Words(field) << fraction_bits) & counts));
    } else {
      x = select(magnitude(x).v >= least_.v, x, V::zero()) * factor_;
      y = x;
    }
  }
  /// Scales all lanes as lane l.
  ScaledTerms lane(std::size_t l) const {
    ScaledTerms one = *this;
    one.exponent = Integers{} + exponent[l];
    one.factor_ = V::broadcast(factor_.v[l]);
    one.least_ = V::broadcast(least_.v[l]);
    return one;
  }
  const StreamWindow<words> (&windows() const)[Streams::streams] { return windows_; }

  Integers exponent;      ///< of the units of scaled terms
  V error, square_error;  ///< bounds of what the sums of words lack

 private:
  StreamWindow<words> windows_[Streams::streams];
  V factor_, least_;
};

}  // namespace
}  // namespace samesum::cpu
