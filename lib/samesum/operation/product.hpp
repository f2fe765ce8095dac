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

/// Computes Πx. For n = 0 the result is 1.
template <class F> struct ProductReducer : OwnStateReducer<Product<F>, F> {
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
