/// Quotients of exact sums, each rounded once, and where they are written.
#pragma once

#include <cmath>
#include <cstring>

#include "product_sums.hpp"

namespace samesum::python {

/// Results in memory, in one format.
class Numbers {
 public:
  Numbers(std::string_view format, std::uintptr_t address)
      : format_{format_named(format)}, to_{reinterpret_cast<std::byte*>(address)} {}

  const FormatInfo& format() const { return format_; }
  Number nan() const { return {&format_, format_.canonical_nan}; }
  void write(std::size_t i, Number x) { std::memcpy(to_ + i * format_.bytes, &x.bits, format_.bytes); }

 private:
  const FormatInfo& format_;
  std::byte* to_;
};

/// Returns a / b as in IEEE arithmetic, rounded once.
inline Number quotient(const SumOfProducts& a, const SumOfProducts& b, const Numbers& out) {
  if (!a.is_special() && !b.is_special() && !a.is_zero() && !b.is_zero())
    return a.value.rounded_quotient(out.format(), b.value);
  return with_format(out.format(), [&]<class F>() {
    const double x = a.representative() / b.representative();
    return std::isnan(x) ? out.nan() : Number::of(convert<F>(x));
  });
}

/// Returns Σw·(Σw - correction·squares/Σw). `squares` is Σw for frequencies, Σw² for reliabilities.
inline Dyadic divisor_of(const Dyadic& total, const Dyadic& correction, const Dyadic& squares) {
  return total * total - correction * squares;
}

/// Returns the moment Σw·Σwxy - Σwx·Σwy over a divisor; NaN if that is not positive.
inline Number divided(const Dyadic& moment, const Dyadic& divisor, const Numbers& out) {
  return divisor.is_positive() ? moment.rounded_quotient(out.format(), divisor) : out.nan();
}

/// Whether no sum has a NaN or an infinity.
template <class... Sums> bool are_finite(const Sums&... sums) { return !(sums.is_special() || ...); }

}  // namespace samesum::python
