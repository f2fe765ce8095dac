/// What a schedule runs: how an element becomes a state, how states grow and meet, what they end as. The same
/// text is the literal reading, a loop of a CPU and a thread of a GPU.
#pragma once

#include "samesum/operation/extremum.hpp"
#include "samesum/operation/moments.hpp"
#include "samesum/operation/online_softmax.hpp"
#include "samesum/operation/product.hpp"
#include "samesum/operation/scaled_squares.hpp"
#include "samesum/operation/term.hpp"

namespace samesum {

/// What a fold may be told when it is called.
struct FoldOptions {
  double ddof = 0;  ///< of a variance: the sum of squares is divided by n - ddof
};

/// One element of each input, rounded to the format, and its index in the reduction.
template <class F> struct Read {
  Scalar<F> x, y;  ///< y is 0 where there is one input
  std::uint64_t index;
};

/// A value as a type, so that what depends on it is decided when compiling.
template <auto constant> struct Constant {
  SAMESUM_HD constexpr operator decltype(constant)() const { return constant; }
};

/// Sums of terms, and their means.
///
/// What all folds have: `Item`, what is added of an element; start(item), the state of one; add(state, item,
/// k) to a state of k items; merge; and finish(state, n, at, out), which writes result `at`.
template <template <class> class A, class F> struct TermFold {
  using Format = F;
  using State = TermSum<A, Scalar<F>>;
  Term term;
  bool mean;

  using Item = TwoWords<Scalar<F>>;
  SAMESUM_HD Item item(const Read<F>& e) const { return term_of<State::two_words>(term, e.x, e.y); }
  /// The items of some elements: which term it is, is asked once.
  template <int count> SAMESUM_HD void items(const Read<F> (&e)[count], Item (&x)[count]) const {
    const auto all = [&](auto t) {
      for (int i = 0; i < count; ++i) x[i] = term_of<State::two_words>(t, e[i].x, e[i].y);
    };
    if (term == Term::element) return all(Constant<Term::element>{});
    if (term == Term::magnitude) return all(Constant<Term::magnitude>{});
    if (term == Term::square) return all(Constant<Term::square>{});
    all(Constant<Term::product>{});
  }
  SAMESUM_HD State start(const Item& x) const {
    State state;
    state.add(x);
    return state;
  }
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const { state.add(x); }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    const Scalar<F> sum = n == 0 ? Scalar<F>::zero() : state.result();
    static_cast<F*>(out)[at] =
        mean ? to_format<F>(Scalar<F>::of(static_cast<double>(sum.v) / static_cast<double>(n)))
             : to_format<F>(sum);
  }
};

/// What has a state of its own, with add(x, k): the fresh state is empty.
template <class S, class F> struct OwnFold {
  using Format = F;
  using State = S;
  using Item = Scalar<F>;
  SAMESUM_HD Item item(const Read<F>& e) const { return e.x; }
  SAMESUM_HD State start(Item x) const {
    State state;
    state.add(x, 0);
    return state;
  }
  SAMESUM_HD void add(State& state, Item x, std::size_t k) const { state.add(x, k); }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
};

/// √Σx²; +0 of nothing.
template <class F> struct NormFold : OwnFold<ScaledSquares<F>, F> {
  SAMESUM_HD void finish(const ScaledSquares<F>& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = root<F>(state);
  }
};

/// log Σe^x, from the largest x and the sum of e^(x - largest), which are found in one pass: largest +
/// log(sum), each of the two rounded to fp32. -inf of nothing.
struct LogSumExpFold {
  using Format = fp32;
  using State = OnlineSoftmax<Scalar<fp32>>;
  using Item = Scalar<fp32>;
  SAMESUM_HD Item item(const Read<fp32>& e) const { return e.x; }
  SAMESUM_HD State start(Item x) const {
    State state;
    state.add(x);
    return state;
  }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const { state.add(x); }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    static_cast<fp32*>(out)[at] = to_format<fp32>(n == 0 ? state.largest : state.largest + log(state.sum));
  }
};

/// Πx; 1 of nothing.
template <class F> struct ProductFold : OwnFold<Product<F>, F> {
  SAMESUM_HD void finish(const Product<F>& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = state.result();
  }
};

/// Two numbers: the mean and the variance, Σ(x - mean)² / (n - ddof). NaN where that divides by nothing.
template <class F> struct MomentsFold : OwnFold<Moments<F>, F> {
  double ddof;
  SAMESUM_HD void finish(const Moments<F>& state, std::uint64_t n, std::size_t at, void* out) const {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const double count = static_cast<double>(n), left = count - ddof;
    const double variance = left > 0 ? static_cast<double>(state.variance.v) * (count / left) : nan;
    F* two = static_cast<F*>(out) + 2 * at;
    two[0] = to_format<F>(n == 0 ? Scalar<F>::of(nan) : state.mean);
    two[1] = to_format<F>(Scalar<F>::of(variance));
  }
};

/// The extremum; of nothing the infinity that every number replaces.
template <class F> struct ExtremumFold {
  using Format = F;
  using State = Extremum<F>;
  bool smallest;

  using Item = State;
  SAMESUM_HD Item item(const Read<F>& e) const { return {KeyOf<F>::of(e.x.v, smallest)}; }
  SAMESUM_HD State start(const Item& x) const { return x; }
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const { state.merge(x); }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = KeyOf<F>::number(state.key, smallest);
  }
};

/// Its first index as a std::int64_t; of nothing -1.
template <class F> struct FirstExtremumFold {
  using Format = F;
  using State = FirstExtremum<F>;
  bool smallest;

  using Item = State;
  SAMESUM_HD Item item(const Read<F>& e) const {
    return {KeyOf<F>::of(e.x.v == 0 ? CarrierOf<F>{0} : e.x.v, smallest), 0, e.index};
  }
  SAMESUM_HD State start(const Item& x) const { return x; }
  /// Elements come in the order of their indices.
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const {
    const bool better = x.key > state.key;
    state.key = better ? x.key : state.key;
    state.index = better ? x.index : state.index;
  }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<std::int64_t*>(out)[at] = static_cast<std::int64_t>(state.index);
  }
};

}  // namespace samesum
