/// The terms of a sum, written out for the loops that add. Each instruction set has a copy of its own.
#pragma once

#include "samesum/backend/cpu/kernels.hpp"
#include "samesum/backend/cpu/leaf.hpp"
#include "samesum/operation/term.hpp"

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
    if (low != nullptr && term >= Term::square)
      loop<T>(a, term == Term::square ? a : b, n, [&](Vector v, Vector w2, std::size_t i, std::size_t count) {
        const auto [h, l] = two_product(v, w2);
        store(h, out + i, count);
        store(l, rest + i, count);
      });
    else if (term >= Term::square)
      loop<T>(a, term == Term::square ? a : b, n,
              [&](Vector v, Vector w2, std::size_t i, std::size_t count) { store(v * w2, out + i, count); });
    else
      loop<T>(a, a, n, [&](Vector v, Vector, std::size_t i, std::size_t count) {
        store(term == Term::magnitude ? magnitude(v) : v, out + i, count);
      });
    if (low != nullptr && term < Term::square) std::memset(low, 0, n * sizeof(Carrier));
  }

 private:
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
  [[gnu::always_inline]] static void store(Vector v, Carrier* to, std::size_t count) {
    if (count == w)
      std::memcpy(to, &v, sizeof v);
    else
      std::memcpy(to, &v, count * sizeof(Carrier));
  }
};

}  // namespace
}  // namespace samesum::cpu
