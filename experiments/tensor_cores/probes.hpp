/// Probes: dot products of a few powers of two whose result reveals one parameter of a matrix unit.
///
/// The method is that of Fasi, Higham, Mikaitis and Pranesh 2021; the groups are found as in FPRev (arXiv
/// 2411.00442): two large products cancel, and the small ones that are lost were added while only one of them
/// was there.
#pragma once

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tensor_cores/data.hpp"

namespace samesum::tensor_cores {

/// 2^e as bits of format E, subnormal numbers included; 0 below them, and the largest power of two above all.
template <class E> std::uint64_t power_bits(int e, bool negative = false) {
  const std::uint64_t sign = std::uint64_t(negative) << (E::width - 1);
  if (e >= E::min_exponent) return number<E>(negative, e + E::bias, 0);
  const int bit = e - E::min_exponent + E::fraction_bits;
  return bit < 0 ? sign : sign | std::uint64_t{1} << (bit + E::ignored_bits);
}

/// Fills in what executed dot products return: the hardware, or a model.
using Execute = std::function<void(std::vector<DotProduct>&)>;

/// Dot products that are built term by term and executed together.
template <class I> class Probes {
 public:
  using E = typename I::Element;
  using C = typename GeneratedAddend<typename I::Result>::type;
  static constexpr int lowest = E::min_exponent - E::fraction_bits,
                       highest = E::largest_field - (E::has_infinity ? 1 : 0) - E::bias;

  explicit Probes(Execute execute) : execute_{std::move(execute)} {}

  Probes& next() {
    dots_.emplace_back();
    return *this;
  }
  Probes& element(int side, int k, std::uint64_t bits) {
    std::uint32_t* words = side == 0 ? dots_.back().a : dots_.back().b;
    const int at = k * E::width;
    words[at / 32] |= std::uint32_t(bits) << (at % 32);
    if constexpr (E::width == 64) words[at / 32 + 1] |= std::uint32_t(bits >> 32);
    return *this;
  }
  /// Product k is ±2^e, if elements have such factors.
  Probes& product(int k, int e, bool negative = false) {
    int first = e / 2;
    if (e - first > highest) first = e - highest;
    if (e - first < lowest) first = e - lowest;
    return element(0, k, power_bits<E>(first, negative)).element(1, k, power_bits<E>(e - first));
  }
  Probes& addend(std::uint64_t bits) {
    dots_.back().c = bits;
    return *this;
  }
  Probes& addend_power(int e, bool negative = false) { return addend(power_bits<C>(e, negative)); }

  std::vector<std::uint64_t> execute() {
    execute_(dots_);
    std::vector<std::uint64_t> results;
    for (const DotProduct& d : dots_) results.push_back(d.hardware);
    dots_.clear();
    return results;
  }

 private:
  Execute execute_;
  std::vector<DotProduct> dots_;
};

/// Value of result bits as a double.
template <class R> double result_value(std::uint64_t bits) {
  return static_cast<double>(from_bits<R>(BitsOf<R>(bits)));
}

/// Text that grows as by printf.
class Text {
 public:
  [[gnu::format(printf, 2, 3)]] void operator()(const char* format, ...) {
    char part[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);
    text_ += part;
  }
  const std::string& operator*() const { return text_; }

 private:
  std::string text_;
};

/// No probes of integers, which are added exactly.
template <class I>
requires std::is_same_v<typename I::Element, Int8> std::string probe_results(const Execute&) { return {}; }

/// Results of all probes, a line each.
template <class I>
requires(!std::is_same_v<typename I::Element, Int8>) std::string probe_results(const Execute& execute) {
  Text print;
  using R = typename I::Result;
  using P = Probes<I>;
  using E = typename I::Element;
  P probes{execute};
  constexpr int n = I::n;
  constexpr int digits = Format<R>::precision - 1;
  // Exponent of the large products: cancelled, they shall not overflow the result when rounded between
  // groups.
  const int top = 2 * P::highest < 14       ? 2 * P::highest
                  : std::is_same_v<R, fp16> ? 14
                  : P::highest < 20         ? 16
                                            : 30;

  const auto last_kept = [&](const char* name, auto build) {
    constexpr int most = 70;
    int last = -1, gaps = 0;
    for (int i = 0; i < most; ++i) build(probes.next(), i);
    const std::vector<std::uint64_t> results = probes.execute();
    for (int i = 0; i < most; ++i)
      if ((results[std::size_t(i)] & ~Format<R>::sign_bit) != 0) {
        gaps += i - last - 1;
        last = i;
      }
    print("probe bits: %-64s last kept 2^-%d of the large one, %d lost before\n", name, last, gaps);
    return last;
  };
  const int kept = last_kept("products 0, 1 cancel, product 2 is small", [&](P& p, int i) {
    p.product(0, top).product(1, top, true).product(2, top - i);
  });
  last_kept("products 0, 1 cancel, product 2 is small and negative",
            [&](P& p, int i) { p.product(0, top).product(1, top, true).product(2, top - i, true); });
  last_kept("products 0, 1 cancel, the last product is small",
            [&](P& p, int i) { p.product(0, top).product(1, top, true).product(n - 1, top - i); });
  last_kept("products 0 and the last cancel, product 1 is small",
            [&](P& p, int i) { p.product(0, top).product(n - 1, top, true).product(1, top - i); });
  last_kept("products 0, 1 cancel, the addend is small",
            [&](P& p, int i) { p.product(0, top).product(1, top, true).addend_power(top - i); });
  last_kept("the addend and product 0 cancel, product 1 is small",
            [&](P& p, int i) { p.addend_power(top).product(0, top, true).product(1, top - i); });
  last_kept("the addend and the last product cancel, product 1 is small",
            [&](P& p, int i) { p.addend_power(top).product(n - 1, top, true).product(1, top - i); });
  const std::uint64_t half_fraction = std::uint64_t{1} << (E::fraction_bits - 1);
  last_kept("products 0, 1 are 2.25 and -2.25 times the large one, product 2 is small", [&](P& p, int i) {
    const int e = top / 2;
    for (int k = 0; k < 2; ++k)
      p.element(0, k, number<E>(k == 1, e + E::bias, half_fraction))
          .element(1, k, number<E>(false, e + E::bias, half_fraction));
    p.product(2, 2 * e - i);
  });

  // Cuts of 1.5, 0.5 and 2.5 units of the last bit that is kept.
  print("probe cut: units of 2^-%d that are left of", kept);
  const double unit = std::ldexp(1., top - kept);
  const int unit_exponent = top - kept;
  for (const bool negative : {false, true}) {
    for (const int halves : {1, 3, 5}) {
      probes.next().product(0, top).product(1, top, true);
      // halves / 2 units as one product: (1, 1.5 or 1.25) 2^e
      const int e = unit_exponent - 1 + (halves == 3 ? 1 : halves == 5 ? 2 : 0);
      const std::uint64_t f = halves == 1 ? 0 : halves == 3 ? half_fraction : half_fraction / 2;
      int first = e / 2;
      if (e - first < E::min_exponent) first = e - E::min_exponent;
      if (first < E::min_exponent) first = E::min_exponent;
      probes.element(0, 2, number<E>(negative, first + E::bias, f)).element(1, 2, power_bits<E>(e - first));
      print(" %s%d/2:%g", negative ? "-" : "", halves, result_value<R>(probes.execute()[0]) / unit);
    }
  }
  print("\n");

  // Rounding of the result: 1 + (odd + quarters / 4) units, from products of powers of two.
  for (const int bits : {digits, 13, 12}) {
    if (bits > digits) continue;
    print("probe rounding to %d bits: in last bits of the format, +-(1 + (odd + q/4) 2^-%d) becomes", bits,
          bits);
    for (const bool negative : {false, true})
      for (const int odd : {0, 1})
        for (int q = 1; q < 4; ++q) {
          probes.next().product(0, 0, negative);
          if (odd) probes.product(1, -bits, negative);
          if (q & 2) probes.product(2, -bits - 1, negative);
          if (q & 1) probes.product(3, -bits - 2, negative);
          const std::uint64_t one = power_bits<typename P::C>(0, negative);
          print(" %lld", (long long)(probes.execute()[0] - one));
        }
    print("\n");
  }

  // Groups: how many small products survive while products i and j cancel.
  const int small = top - 34;
  const auto survivors = [&](int i, int j) {
    probes.next();
    if (i < 0) probes.addend_power(top);
    for (int k = 0; k < n; ++k) {
      if (k == i)
        probes.product(k, top);
      else if (k == j)
        probes.product(k, top, true);
      else
        probes.product(k, small);
    }
    return result_value<R>(probes.execute()[0]) / std::ldexp(1., small);
  };
  for (const int i : {-1, 0, n - 1}) {
    print("probe groups: survivors while %s%d cancels product 0, 1, ...:", i < 0 ? "addend " : "product ", i);
    for (int j = 0; j < n; ++j) {
      if (j == i)
        print(" -");
      else
        print(" %g", survivors(i, j));
    }
    print("\n");
  }

  // Subnormal numbers, zeros, infinities and NaN.
  const auto show = [&](const char* name) {
    print("probe value: %-56s %0*llx\n", name, int(sizeof(R)) * 2, (unsigned long long)(probes.execute()[0]));
  };
  const std::uint64_t zero = 0, minus_zero = std::uint64_t{1} << (E::width - 1);
  const std::uint64_t one = power_bits<E>(0), minus_one = power_bits<E>(0, true);
  const std::uint64_t largest = number<E>(false, 1 << 20, ~std::uint64_t{0});
  const std::uint64_t c_minus_zero = Format<R>::sign_bit, c_infinity = Format<R>::infinity;
  const std::uint64_t c_largest = Format<R>::infinity - 1, c_subnormal = 1;
  const auto pair = [&](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    probes.next().element(0, 0, a).element(1, 0, b).addend(c);
  };
  pair(power_bits<E>(P::lowest), one, 0);
  show("smallest subnormal times 1");
  pair(power_bits<E>(P::lowest), power_bits<E>(P::highest), 0);
  show("smallest subnormal times the largest power of two");
  pair(zero, one, c_subnormal);
  show("addend is the smallest subnormal");
  pair(zero, one, Format<R>::sign_bit | c_subnormal);
  show("addend is minus the smallest subnormal");
  pair(power_bits<E>(E::min_exponent), power_bits<E>(-1), 0);
  show("smallest normal times 1/2");
  pair(power_bits<E>(E::min_exponent), power_bits<E>(E::min_exponent, true), 0);
  show("smallest normal times minus itself");
  probes.next().addend_power(Format<R>::min_exponent).product(0, Format<R>::min_exponent - 1, true);
  show("smallest normal addend minus half of it");
  probes.next().product(0, Format<R>::min_quantum - 1, true);
  show("minus half of the result's smallest subnormal");
  probes.next().product(0, Format<R>::min_quantum - 1).product(1, Format<R>::min_quantum - 1);
  show("twice half of the result's smallest subnormal");
  for (int k = 0; k < 1; ++k) {
    probes.next();
    for (int j = 0; j < n; ++j) probes.element(0, j, minus_zero).element(1, j, one);
    probes.addend(c_minus_zero);
    show("all products and the addend -0");
    probes.next();
    for (int j = 0; j < n; ++j) probes.element(0, j, minus_zero).element(1, j, one);
    show("all products -0, addend +0");
  }
  pair(zero, one, c_minus_zero);
  show("products +0, addend -0");
  pair(one, minus_one, power_bits<typename P::C>(0));
  show("1 - 1, addend 1");
  pair(largest, largest, 0);
  show("largest times largest");
  pair(largest, number<E>(true, 1 << 20, ~std::uint64_t{0}), c_largest);
  show("largest times minus largest, addend largest");
  pair(one, one, c_largest);
  show("addend largest, product 1");
  probes.next().addend(c_largest).product(0, Format<R>::max_exponent);
  show("addend largest, product 2^max_exponent");
  probes.next().addend(c_largest).product(0, Format<R>::max_exponent - digits - 1);
  show("addend largest, product half of its last bit");
  pair(one, one, c_infinity);
  show("addend inf");
  pair(one, one, Format<R>::sign_bit | c_infinity);
  show("addend -inf");
  pair(one, one, c_infinity | 1);
  show("addend NaN with payload 1");
  pair(one, one, Format<R>::sign_bit | Format<R>::canonical_nan | 5);
  show("addend NaN, negative, quiet, payload 5");
  if constexpr (E::has_infinity) {
    const std::uint64_t infinity = number<E>(false, E::largest_field - 1, 0) +
                                   (std::uint64_t{1} << (E::fraction_bits + E::ignored_bits));
    pair(infinity, one, 0);
    show("inf times 1");
    pair(infinity, minus_one, 0);
    show("inf times -1");
    pair(infinity, zero, 0);
    show("inf times 0");
    pair(infinity, one, Format<R>::sign_bit | c_infinity);
    show("inf times 1, addend -inf");
    pair(infinity | std::uint64_t{1} << E::ignored_bits, one, 0);
    show("NaN with payload 1 times 1");
    if (E::ignored_bits > 0) {
      pair(infinity | 1, one, 0);
      show("inf with an ignored bit times 1");
    }
    if (E::ignored_bits > 0) {
      pair(one | 0x1fff, one, 0);
      show("1 with all ignored bits times 1");
    }
  } else {
    pair(0x7f, one, 0);
    show("NaN times 1");
    pair(0xff, zero, 0);
    show("-NaN times 0");
  }
  return *print;
}

}  // namespace samesum::tensor_cores
