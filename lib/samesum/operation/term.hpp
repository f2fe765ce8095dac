/// Terms of a sum: elements, magnitudes, squares or products.
#pragma once

#include <string_view>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum {

/// Terms that are products of two factors come last.
enum class Term { element, magnitude, square, product };

/// Calls visit(Constant<term>{}), so that `visit` is compiled for each term.
template <class Visit> SAMESUM_HD inline void with_term(Term term, const Visit& visit) {
  if (term == Term::element) return visit(Constant<Term::element>{});
  if (term == Term::magnitude) return visit(Constant<Term::magnitude>{});
  if (term == Term::square) return visit(Constant<Term::square>{});
  visit(Constant<Term::product>{});
}

/// Whether a term is the product of x and its second factor.
SAMESUM_HD constexpr bool is_product(Term term) { return term >= Term::square; }
/// Returns the second factor of a product.
template <class X> SAMESUM_HD constexpr X second_factor(Term term, X x, X y) {
  return term == Term::square ? x : y;
}
/// Returns a mask of the bits of x that a term other than a product keeps. A magnitude clears the sign, also
/// that of a NaN.
template <class F> SAMESUM_HD constexpr BitsOf<F> kept_bits(Term term) {
  return static_cast<BitsOf<F>>(term == Term::magnitude ? ~Format<F>::sign_bit : ~BitsOf<F>{0});
}
/// Returns the term of x, which is no product.
template <class F> SAMESUM_HD constexpr F element_term(Term term, F x) {
  return std::bit_cast<F>(static_cast<BitsOf<F>>(std::bit_cast<BitsOf<F>>(x) & kept_bits<F>(term)));
}
template <class F, int W> SAMESUM_HD inline Pack<F, W> element_term(Term term, Pack<F, W> x) {
  using C = CarrierOf<F>;
  using Words = Register<WordOf<C>, W>;
  return {same_bits<Register<C, W>>(Words(same_bits<Words>(x.v) & kept_bits<C>(term)))};
}

/// Returns |x|.
template <class F, int W> SAMESUM_HD inline Pack<F, W> magnitude(Pack<F, W> x) {
  return element_term(Term::magnitude, x);
}

/// Returns a·b - product, where `product` is a·b rounded. In 16-bit formats the carrier holds both numbers
/// exactly; other formats need a fused multiply-add.
template <class F, int W>
SAMESUM_HD inline Pack<F, W> residual(Pack<F, W> a, Pack<F, W> b, Pack<F, W> product) {
  using C = CarrierOf<F>;
  if constexpr (std::is_same_v<F, C>)
    return fma(a, b, Pack<F, W>{-product.v});
  else
    return {round_lanes<F, C, W>(a.v * b.v - product.v)};
}

/// A product in two words, the nearest number and what it lacks: high + low = a·b exactly if nothing
/// underflows (TwoProduct with a fused multiply-add: Ogita, Rump, Oishi 2005, algorithm 3.5). The low word of
/// an infinity or NaN is 0.
template <class V> struct TwoWords { V high, low; };
template <class F, int W> SAMESUM_HD inline TwoWords<Pack<F, W>> two_product(Pack<F, W> a, Pack<F, W> b) {
  using V = Pack<F, W>;
  const V high = a * b;
  const V low = residual(a, b, high);
  return {high, select(is_finite(low), low, V::zero())};
}

/// Sum of terms in two words. The accumulator adds the high words; beside it a plain sum adds the low words
/// in the same order (Ogita, Rump, Oishi 2005, algorithm 5.3, "Dot2", with any accumulator). A plain
/// accumulator adds only the high words, as every plain dot product does.
template <template <class> class A, class V> struct TermSum {
  using Sum = A<V>;
  static constexpr bool two_words = true;
  Sum sum;
  V low = V::minus_zero();
  SAMESUM_HD void add(TwoWords<V> x) {
    sum.add(x.high);
    low = low + x.low;
  }
  SAMESUM_HD void merge(const TermSum& other) {
    sum.merge(other.sum);
    low = low + other.low;
  }
  /// Returns this state with +0 for a low word -0, which backends leave if no term has a low word.
  TermSum canonical() const { return {sum, low + V::zero()}; }
  SAMESUM_HD V result() const {
    Sum all = sum;
    if (low == V::zero() || !is_finite(low)) return all.result();
    all.merge(Sum{low});
    return all.result();
  }
};
template <class V> struct TermSum<Plain, V> {
  static constexpr bool two_words = false;
  Plain<V> sum;
  SAMESUM_HD void add(TwoWords<V> x) { sum.add(x.high); }
  SAMESUM_HD void merge(const TermSum& other) { sum.merge(other.sum); }
  SAMESUM_HD V result() const { return sum.result(); }
};

/// Returns the term of one element, or of a pair of elements. Elements and magnitudes have no low word.
template <bool two_words, class AnyTerm, class V>
SAMESUM_HD inline TwoWords<V> term_of(AnyTerm term, V x, V y) {
  if (!is_product(term)) return {element_term(term, x), V::zero()};
  const V other = second_factor(term, x, y);
  if constexpr (two_words) return two_product(x, other);
  return {x * other, V::zero()};
}

}  // namespace samesum
