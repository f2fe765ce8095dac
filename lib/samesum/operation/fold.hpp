/// What a schedule runs: how an element becomes a state, how states grow and meet, what they end as. The same
/// text is the literal reading, a loop of a CPU and a thread of a GPU.
#pragma once

#include "samesum/format/fp16_wide.hpp"
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

/// One element of each input, rounded to the format, and its index in the reduction: `base`, which the
/// elements of a leaf share, and how far on it is.
template <class F> struct Read {
  Scalar<F> x, y;  ///< y is 0 where there is one input
  std::uint64_t base;
  std::uint32_t offset;
};

/// A value as a type, so that what depends on it is decided when compiling.
template <auto constant> struct Constant {
  SAMESUM_HD constexpr operator decltype(constant)() const { return constant; }
};

/// What all folds have: `Item`, what is added of an element; start(item), the `State` of one; add(state,
/// item, k) to a state of k items; merge; and finish(state, n, at, out), which writes result `at`. Here a
/// state adds items itself, and the fresh one is empty.
template <class S, class X> struct StateFold {
  using State = S;
  using Item = X;
  SAMESUM_HD State start(const Item& x) const {
    State state;
    add(state, x, 0);
    return state;
  }
  SAMESUM_HD void add(State& state, const Item& x, [[maybe_unused]] std::size_t k) const {
    if constexpr (requires { state.add(x, k); })
      state.add(x, k);
    else
      state.add(x);
  }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
};

/// Most elements need less than a fold must be ready for. A quick fold is for whole rows of lanes: where it
/// may try, and says afterwards that it did, its states are those that the fold itself would have had; else
/// all is done again. Each has may_do(), does(state) unless it always does, and state(quick, base, rows) of a
/// lane of so many elements; without merge() it is for orders alone whose lanes take elements in turn.
/// Elements that are not there count as zeros for what it notes of all.

/// Sums of elements, without asking for each which term it is.
template <template <class> class A, class F>
struct ElementFold : StateFold<TermSum<A, Scalar<F>>, TwoWords<Scalar<F>>> {
  using State = TermSum<A, Scalar<F>>;
  static constexpr int inputs = 1;
  static constexpr bool is_light = !State::two_words;
  Term term;
  SAMESUM_HD bool may_do() const { return term == Term::element; }
  SAMESUM_HD TwoWords<Scalar<F>> item(const Read<F>& e) const { return {e.x, Scalar<F>::zero()}; }
  SAMESUM_HD State state(const State& quick, std::uint64_t, int) const { return quick; }
};

/// The mean of fp16 elements whose sum overflows in fp16, in numbers of fp16's precision with the exponents
/// of fp32. It replaces a mean that is not finite; elements that are not finite leave it as it is. A quotient
/// that rounds beyond the largest number of fp16, as no mean of such numbers is, becomes that number.
template <template <class> class A> struct WideMeanFold : StateFold<A<Scalar<fp16_wide>>, Scalar<fp16_wide>> {
  using Format = fp16;
  using State = A<Scalar<fp16_wide>>;
  SAMESUM_HD static bool is_wanted(std::size_t at, const void* out) {
    return !is_finite(Scalar<fp16>{convert<float>(static_cast<const fp16*>(out)[at])});
  }
  SAMESUM_HD Scalar<fp16_wide> item(const Read<fp16>& e) const { return {e.x.v}; }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    const Scalar<fp16_wide> sum = state.result();
    if (n == 0 || !is_wanted(at, out) || !is_finite(sum)) return;
    constexpr double most = samesum::Format<fp16>::max_finite;
    const double mean = static_cast<double>(sum.v) / static_cast<double>(n);
    static_cast<fp16*>(out)[at] = to_format<fp16>(Scalar<fp16>::of(mean > most    ? most
                                                                   : mean < -most ? -most
                                                                                  : mean));
  }
};

/// Sums of terms, and their means. A mean of fp16 that is not finite is computed once more, by `again`.
template <template <class> class A, class F>
struct TermFold : StateFold<TermSum<A, Scalar<F>>, TwoWords<Scalar<F>>> {
  using Format = F;
  using State = TermSum<A, Scalar<F>>;
  using Item = TwoWords<Scalar<F>>;
  using Quick = ElementFold<A, F>;
  Term term;
  bool mean;

  SAMESUM_HD Quick quick() const { return {{}, term}; }
  WideMeanFold<A> again() const requires std::is_same_v<F, fp16> { return {}; }

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
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    const Scalar<F> sum = n == 0 ? Scalar<F>::zero() : state.result();
    static_cast<F*>(out)[at] =
        mean ? to_format<F>(Scalar<F>::of(static_cast<double>(sum.v) / static_cast<double>(n)))
             : to_format<F>(sum);
  }
};

/// What has a state of its own, of elements as they are.
template <class S, class F> struct OwnFold : StateFold<S, Scalar<F>> {
  using Format = F;
  SAMESUM_HD Scalar<F> item(const Read<F>& e) const { return e.x; }
};

/// Squares of middling elements and zeros. A thread has one of these: it sees all elements.
template <class F> struct MiddlingFold {
  using Of = Squares<F>;
  using C = CarrierOf<F>;
  using Item = Scalar<typename Of::G>;
  struct State {
    Item sum;
  };
  static constexpr int inputs = 1;
  mutable C largest = 0, smallest = 1;  ///< of all magnitudes, and of those that are not 0
  SAMESUM_HD bool may_do() const { return true; }
  SAMESUM_HD Item item(const Read<F>& e) const {
    const C size = magnitude(e.x).v;
    largest = std::fmax(largest, size);
    if (size > 0) smallest = std::fmin(smallest, size);
    return Item{e.x.v} * Item{e.x.v};
  }
  SAMESUM_HD State start(Item x) const { return {x}; }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const { state.sum = state.sum + x; }
  SAMESUM_HD void merge(State& state, const State& other) const { state.sum = state.sum + other.sum; }
  SAMESUM_HD bool does(const State&) const {
    return !Of::is_big(Item{largest}) && !Of::is_small(Item{smallest});
  }
  SAMESUM_HD ScaledSquares<F> state(const State& quick, std::uint64_t, int) const {
    ScaledSquares<F> all;
    all.middling = quick.sum;
    return all;
  }
};

/// √Σx²; +0 of nothing.
template <class F> struct NormFold : OwnFold<ScaledSquares<F>, F> {
  using Quick = MiddlingFold<F>;
  SAMESUM_HD Quick quick() const { return {}; }
  SAMESUM_HD void finish(const ScaledSquares<F>& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = root<F>(state);
  }
};

/// log Σe^x, from the largest x and the sum of e^(x - largest), which are found in one pass: largest +
/// log(sum), each of the two rounded to fp32. -inf of nothing.
struct LogSumExpFold : OwnFold<OnlineSoftmax<Scalar<fp32>>, fp32> {
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

/// Moments of lanes that are equally long: their count need not be kept.
template <class F> struct CountlessFold {
  using Item = Scalar<F>;
  struct State {
    Scalar<F> mean, variance;
  };
  static constexpr int inputs = 1;
  SAMESUM_HD bool may_do() const { return true; }
  SAMESUM_HD Item item(const Read<F>& e) const { return e.x; }
  SAMESUM_HD State start(Item x) const {
    Moments<F> one;
    one.add(x, 0);
    return {one.mean, one.variance};
  }
  SAMESUM_HD void add(State& state, Item x, std::size_t k) const {
    Moments<F> all{state.mean, state.variance, 0};
    all.add(x, k);
    state = {all.mean, all.variance};
  }
  SAMESUM_HD Moments<F> state(const State& quick, std::uint64_t, int rows) const {
    return {quick.mean, quick.variance, static_cast<std::uint64_t>(rows)};
  }
};

/// Two numbers: the mean and the variance, Σ(x - mean)² / (n - ddof). NaN where that divides by nothing.
template <class F> struct MomentsFold : OwnFold<Moments<F>, F> {
  using Quick = CountlessFold<F>;
  double ddof;
  SAMESUM_HD Quick quick() const { return {}; }
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

/// The first extremum of elements without a NaN, which compare as numbers do.
template <class F> struct NumberFold {
  using C = CarrierOf<F>;
  struct Item {
    C value;  ///< negated for the smallest
    std::uint32_t offset;
  };
  struct State {
    C value;  ///< NaN if there is one
    std::uint32_t offset;
  };
  static constexpr int inputs = 1;
  bool smallest;
  SAMESUM_HD bool may_do() const { return true; }
  SAMESUM_HD Item item(const Read<F>& e) const { return {smallest ? -e.x.v : e.x.v, e.offset}; }
  SAMESUM_HD State start(Item x) const { return {x.value, x.offset}; }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const {
    state.offset = x.value > state.value ? x.offset : state.offset;
    state.value = larger(x.value, state.value);
  }
  SAMESUM_HD bool does(const State& state) const { return state.value == state.value; }
  SAMESUM_HD FirstExtremum<F> state(const State& quick, std::uint64_t base, int) const {
    return {KeyOf<F>::of_number(smallest ? -quick.value : quick.value, smallest), quick.offset, base};
  }

 private:
  /// NaN where one is.
  SAMESUM_HD static C larger(C a, C b) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(C) == 4) {
      C larger;
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
      return larger;
    }
#endif
    return a > b || a != a ? a : b;
  }
};

/// Its first index as a std::int64_t; of nothing -1.
template <class F> struct FirstExtremumFold {
  using Format = F;
  using State = FirstExtremum<F>;
  using Quick = NumberFold<F>;
  bool smallest;

  SAMESUM_HD Quick quick() const { return {smallest}; }

  using Item = State;
  SAMESUM_HD Item item(const Read<F>& e) const {
    return {KeyOf<F>::of_number(e.x.v, smallest), e.offset, e.base};
  }
  SAMESUM_HD State start(const Item& x) const { return x; }
  /// Elements come in the order of their indices, with one base.
  SAMESUM_HD void add(State& state, const Item& x, std::size_t) const {
    const bool better = x.key > state.key;
    state.key = better ? x.key : state.key;
    state.offset = better ? x.offset : state.offset;
  }
  SAMESUM_HD void merge(State& state, const State& other) const { state.merge(other); }
  SAMESUM_HD void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<std::int64_t*>(out)[at] = static_cast<std::int64_t>(state.index());
  }
};

}  // namespace samesum
