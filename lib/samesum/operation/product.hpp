/// The operation prod: a product that does not overflow on the way.
#pragma once

#include "samesum/operation/facts.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum {

/// A product that does not overflow on the way: a significand in [1, 2), or 0, infinity or NaN, and a
/// separate exponent. Each of the h = n - 1 multiplications for n elements rounds once, so the error is at
/// most γ_h·|result|, plus one rounding if the result is subnormal (Higham, Accuracy and Stability, §3.1).
template <class F> struct Product {
  using V = Scalar<F>;
  using C = CarrierOf<F>;

  V significand{C{1}};
  std::uint32_t empty = 1;
  std::int64_t exponent = 0;

  /// number·2^exponent.
  SAMESUM_HD static Product of(V number, std::int64_t exponent) {
    return Product{number, 0, exponent}.normalised();
  }

  SAMESUM_HD void add(V x, std::size_t) { merge(of(x, 0)); }
  SAMESUM_HD void merge(const Product& other) {
    *this =
        empty ? other : Product{significand * other.significand, 0, exponent + other.exponent}.normalised();
  }

  /// Visits what a serialised state holds.
  template <class Self, class Visit> static void visit_fields(Self& state, Visit visit) {
    visit(state.significand.v);
    visit(state.exponent);
  }
  /// Marks a state as restored from bytes. Returns whether it can be the product of these elements. Beyond
  /// element 2^51 the exponent must be 0, because exponents could overflow when states are merged.
  bool restored(std::uint64_t first, std::uint64_t elements) {
    empty = 0;
    const C size = std::abs(significand.v);
    const bool is_special = !(size > 0 && size <= std::numeric_limits<C>::max());
    constexpr std::uint64_t most = 2048;  // no element has a larger exponent
    const auto limit =
        static_cast<std::int64_t>(first + elements <= std::uint64_t{1} << 51 ? elements * most : 0);
    return is_special ? exponent == 0 : size >= 1 && size < 2 && exponent >= -limit && exponent <= limit;
  }

  /// Returns the product, rounded to F.
  SAMESUM_HD F result() const {
    const C v = significand.v;
    if (!(v == v) || v == 0 || v - v != 0) return to_format<F>(significand);
    const Decomposed d = decompose<C>(to_bits(v));
    return from_bits<F>(round_to_bits<F>(d.negative, d.significand, d.exponent + exponent));
  }

 private:
  SAMESUM_HD Product normalised() const {
    constexpr int fraction_bits = samesum::Format<C>::precision - 1, bias = samesum::Format<C>::max_exponent;
    C v = significand.v;
    std::int64_t e = exponent;
    if (v == 0 || !(v - v == 0)) return {significand, 0, 0};
    constexpr C up = static_cast<C>(power_of_two(fraction_bits + 1));
    if (std::abs(v) < std::numeric_limits<C>::min()) {  // subnormal
      v *= up;
      e -= fraction_bits + 1;
    }
    using Word = WordOf<C>;
    const Word bits = same_bits<Word>(v);
    constexpr Word exponent_bits = samesum::Format<C>::infinity, one = Word(bias) << fraction_bits;
    e += static_cast<std::int64_t>((bits & exponent_bits) >> fraction_bits) - bias;
    return {V{same_bits<C>((bits & ~exponent_bits) | one)}, 0, e};
  }
};

/// Fast path of ProductReducer: multiplies the numbers themselves, whose significands are rounded like those
/// of a Product while all products are normal numbers.
template <class F> struct NormalProductFastPath {
  using V = Scalar<F>;
  using Item = V;
  struct State {
    V product;  ///< NaN if a product is not normal
  };
  static constexpr int inputs = 1;
  static constexpr std::size_t longest_row = 256;  ///< products of more elements often leave the range
  /// Products of fp16 soon leave its range.
  SAMESUM_HD static constexpr bool applies() { return !std::is_same_v<F, fp16>; }
  SAMESUM_HD Item item(const InputElement<F>& e) const { return e.x; }
  SAMESUM_HD State start(Item x) const { return {x}; }
  SAMESUM_HD void add(State& state, Item x, std::size_t) const {
    using C = CarrierOf<F>;
    // A product that was rounded up to the least normal number may have been rounded too coarsely.
    constexpr C least = static_cast<C>(power_of_two(samesum::Format<F>::min_exponent));
    const V product = state.product * x;
    const C size = std::abs(product.v);
    state.product = size > least && size <= std::numeric_limits<C>::max()
                        ? product
                        : V{std::numeric_limits<C>::quiet_NaN()};
  }
  SAMESUM_HD void merge(State& state, const State& other) const { add(state, other.product, 0); }
  SAMESUM_HD void halve(State& state, const State& other) const { merge(state, other); }
  SAMESUM_HD bool succeeded(const State& state) const { return state.product.v == state.product.v; }
  SAMESUM_HD Product<F> state(const State& fast, std::uint64_t, int) const {
    return Product<F>::of(fast.product, 0);
  }
};

/// Computes Πx. For n = 0 the result is 1.
template <class F> struct ProductReducer : OwnStateReducer<Product<F>, F> {
  using FastPath = NormalProductFastPath<F>;
  SAMESUM_HD FastPath fast_path() const { return {}; }
  SAMESUM_HD void finish(const Product<F>& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = state.result();
  }
};

struct Prod : FactsOf<"prod"> {
  static constexpr auto bound = bound_of_product;
  template <template <class> class, class F> static constexpr ProductReducer<F> reducer(ReducerOptions) {
    return {};
  }
};

}  // namespace samesum
