/// Reducers for sums of terms, with any accumulator.
#pragma once

#include "samesum/operation/term.hpp"
#include "samesum/operation/wide_mean.hpp"

namespace samesum {

/// Fast path of TermReducer for sums of elements: does not select the term for each element.
template <template <class> class A, class F>
struct ElementFastPath : StateReducer<TermSum<A, Scalar<F>>, TwoWords<Scalar<F>>> {
  using State = TermSum<A, Scalar<F>>;
  static constexpr int inputs = 1;
  static constexpr bool is_light = !State::two_words;
  Term term;
  SAMESUM_HD bool applies() const { return term == Term::element; }
  SAMESUM_HD TwoWords<Scalar<F>> item(const InputElement<F>& e) const { return {e.x, Scalar<F>::zero()}; }
  SAMESUM_HD State state(const State& fast, std::uint64_t, int) const { return fast; }
};

/// Computes sums of terms, and their means. If a mean of fp16 is not finite, it is recomputed by the reducer
/// that `replacement` returns.
template <template <class> class A, class F>
struct TermReducer : StateReducer<TermSum<A, Scalar<F>>, TwoWords<Scalar<F>>> {
  using Format = F;
  using State = TermSum<A, Scalar<F>>;
  using Item = TwoWords<Scalar<F>>;
  using FastPath = ElementFastPath<A, F>;
  Term term;
  bool mean;

  SAMESUM_HD FastPath fast_path() const { return {{}, term}; }
  WideMeanReducer<A> replacement() const requires std::is_same_v<F, fp16> { return {}; }

  SAMESUM_HD Item item(const InputElement<F>& e) const { return term_of<State::two_words>(term, e.x, e.y); }
  /// Maps several elements, selecting the term once for all of them.
  template <int count> SAMESUM_HD void items(const InputElement<F> (&e)[count], Item (&x)[count]) const {
    with_term(term, [&](auto t) {
      for (int i = 0; i < count; ++i) x[i] = term_of<State::two_words>(t, e[i].x, e[i].y);
    });
  }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    const Scalar<F> sum = n == 0 ? Scalar<F>::zero() : state.result();
    static_cast<F*>(out)[at] =
        mean ? to_format<F>(Scalar<F>::of(static_cast<double>(sum.v) / static_cast<double>(n)))
             : to_format<F>(sum);
  }
};

}  // namespace samesum
