/// The exact results of the operations other than sums.
#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>

#include "harness/truth.hpp"

namespace samesum::harness {
namespace {

using boost::multiprecision::msb;
using Real = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<400, boost::multiprecision::digit_base_2, void, std::int64_t>,
    boost::multiprecision::et_off>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The unit of a product, and one that is so much finer that a truncated quotient or root keeps some 60 bits
/// more than a product.
constexpr int product_unit = 2 * exact_unit, fine_unit = product_unit - 64;

/// Elements as doubles, which represent all formats.
std::vector<double> elements_of(Values x) {
  std::vector<double> all(x.size);
  with_format(*x.format, [&]<class F>() {
    std::ranges::transform(x.as<F>(), all.begin(), [](F e) { return convert<double>(e); });
  });
  return all;
}

BigInteger exact(double finite) { return exact_value(Number::of(finite)); }

/// Exact sums of the positive and of the negative products of finite numbers. Products with the same exponent
/// are added as integers of 128 bits.
class ProductSums {
 public:
  void add(double x, double y) {
    const Decomposed a = decompose<double>(to_bits(x)), b = decompose<double>(to_bits(y));
    sums_[a.negative != b.negative][a.exponent + b.exponent] +=
        static_cast<unsigned __int128>(a.significand) * b.significand;
    if (++count_ % most_products == 0) carry();
  }
  BigInteger positive() { return carry().total_[0]; }
  BigInteger negative() { return carry().total_[1]; }

 private:
  /// Products of 106 bits whose sum has at most 128 bits.
  static constexpr std::size_t most_products = std::size_t{1} << 22;

  /// Adds the integers of all exponents to the totals.
  ProductSums& carry() {
    for (int sign = 0; sign < 2; ++sign) {
      for (const auto& [exponent, sum] : sums_[sign])
        total_[sign] += BigInteger{sum} << (exponent - product_unit);
      sums_[sign].clear();
    }
    return *this;
  }

  std::map<int, unsigned __int128> sums_[2];
  BigInteger total_[2];
  std::size_t count_ = 0;
};

/// The fraction, truncated towards 0; its last bit is set if something was cut off.
BigInteger truncated(const BigInteger& numerator, const BigInteger& denominator) {
  BigInteger q, rest;
  divide_qr(BigInteger{abs(numerator)}, denominator, q, rest);
  if (rest != 0) bit_set(q, 0);
  return numerator < 0 ? BigInteger{-q} : q;
}

BigInteger truncated_root(const BigInteger& x) {
  BigInteger rest, root = sqrt(x, rest);
  if (rest != 0) bit_set(root, 0);
  return root;
}

/// In multiples of 2^fine_unit. A number beyond the range of every format becomes another one beyond it.
BigInteger truncated(const Real& x) {
  if (x == 0) return 0;
  constexpr int beyond = 4000;  // more than the 1024 bits of the largest number
  const Real magnitude = std::min<Real>(abs(x), ldexp(Real{1}, beyond));
  const Real scaled = ldexp(magnitude, -fine_unit), whole = floor(scaled);
  BigInteger integer{whole};
  if (whole != scaled) bit_set(integer, 0);
  return x < 0 ? BigInteger{-integer} : integer;
}

}  // namespace

/// Computes the truth of each operation.
struct OperationTruth {
  const std::string& operation;
  Values values;
  std::optional<Values> other;
  std::size_t result_index;
  std::vector<double> x = elements_of(values);
  Truth t{};

  using Compute = void (OperationTruth::*)();
  struct Named {
    const char* name;
    Compute compute;
  };
  static const std::vector<Named>& all() {
    static const std::vector<Named> table{{"sum", &OperationTruth::sum},
                                          {"mean", &OperationTruth::mean},
                                          {"sum_of_magnitudes", &OperationTruth::sum_of_magnitudes},
                                          {"squared_norm", &OperationTruth::squared_norm},
                                          {"norm", &OperationTruth::norm},
                                          {"dot", &OperationTruth::dot},
                                          {"prod", &OperationTruth::prod},
                                          {"min", &OperationTruth::min},
                                          {"max", &OperationTruth::max},
                                          {"logsumexp", &OperationTruth::logsumexp},
                                          {"softmax", &OperationTruth::softmax},
                                          {"moments", &OperationTruth::moments}};
    return table;
  }

  bool any_nan() const {
    return std::ranges::any_of(x, [](double e) { return std::isnan(e); });
  }
  bool any_infinity() const {
    return std::ranges::any_of(x, [](double e) { return std::isinf(e); });
  }
  /// The truth is a zero, an infinity or NaN.
  void is_special(double value) {
    t.nans_ = std::isnan(value);
    t.plus_infinities_ = value == infinity;
    t.minus_infinities_ = value == -infinity;
    t.only_minus_zero_ = std::signbit(value);
  }
  void is(const BigInteger& value, int unit, double condition) {
    t.value_ = value;
    t.unit_ = unit;
    t.only_minus_zero_ = false;
    t.magnitudes_ = abs(value);
    t.condition_ = value == 0 || !t.finite() ? not_a_number : condition;
  }

  void sum() { t = Truth{values}; }

  void mean() {
    if (x.empty()) return is_special(not_a_number);
    t = Truth{values};
    t.condition_ = t.condition();
    t.unit_ = fine_unit;
    t.value_ = truncated(t.value_ << (exact_unit - fine_unit), x.size());
    t.magnitudes_ <<= exact_unit - fine_unit;
  }

  void sum_of_magnitudes() {
    if (any_nan() || any_infinity()) return is_special(any_nan() ? not_a_number : infinity);
    is(Truth{values}.magnitudes(), exact_unit, 1);
  }

  BigInteger squares() const {
    ProductSums all;
    for (const double e : x) all.add(e, e);
    return all.positive();
  }
  void squared_norm() {
    if (any_nan() || any_infinity()) return is_special(any_nan() ? not_a_number : infinity);
    is(squares(), product_unit, 2);
  }
  void norm() {
    if (any_nan() || any_infinity()) return is_special(any_nan() ? not_a_number : infinity);
    is(truncated_root(squares() << (product_unit - 2 * fine_unit)), fine_unit,
       1);  // the root halves the unit
  }

  void dot() {
    const std::vector<double> y = elements_of(other.value());
    t.unit_ = product_unit;
    ProductSums sums;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double product = x[i] * y[i];
      t.only_minus_zero_ &= std::signbit(x[i]) != std::signbit(y[i]) && (x[i] == 0 || y[i] == 0);
      if (std::isfinite(x[i]) && std::isfinite(y[i])) {
        sums.add(x[i], y[i]);
      } else {
        t.nans_ += std::isnan(product);
        t.plus_infinities_ += product == infinity;
        t.minus_infinities_ += product == -infinity;
      }
    }
    t.value_ = sums.positive() - sums.negative();
    t.magnitudes_ = sums.positive() + sums.negative();
  }

  void prod() {
    bool negative = false, any_zero = false;
    for (const double e : x) negative ^= std::signbit(e), any_zero |= e == 0;
    if (any_nan() || (any_infinity() && any_zero)) return is_special(not_a_number);
    if (any_infinity()) return is_special(negative ? -infinity : infinity);
    Real product = 1;
    for (const double e : x) product *= e;
    is(truncated(product), fine_unit, static_cast<double>(x.size()));
    t.only_minus_zero_ = negative;
  }

  /// The extremum that is before the others in the order of `before`.
  template <class Before> void extremum(double of_nothing, Before before) {
    if (any_nan()) return is_special(not_a_number);
    double first = of_nothing;
    for (const double e : x)
      if (before(e, first) || (e == 0 && first == 0 && before(std::signbit(first), std::signbit(e))))
        first = e;
    is_special(first);
    if (!std::isfinite(first)) return;
    is(exact(first), exact_unit, 1);
    t.only_minus_zero_ = std::signbit(first);
  }
  void min() { extremum(infinity, std::less<>{}); }
  void max() { extremum(-infinity, std::greater<>{}); }

  /// Sums of terms exp(x - largest).
  struct Exponentials {
    Real total, weighted;  ///< of the terms, and of |x| times the terms
  };
  static Exponentials exponentials(std::span<const double> x, double largest) {
    Exponentials sums{0, 0};
    for (const double e : x) {
      if (e - largest < -2000) continue;  // below 2^-2000 of the total, far below its last bit in any format
      const Real term = exp(Real{e} - Real{largest});
      sums.total += term;
      sums.weighted += std::abs(e) * term;
    }
    return sums;
  }
  /// Adds up to 16 parts in as many threads, since each exponential takes some ten microseconds.
  Exponentials exponentials(double largest) const {
    const std::size_t part = std::max(std::size_t{4096}, x.size() / 16 + 1);
    std::vector<std::future<Exponentials>> parts;
    for (std::size_t i = 0; i < x.size(); i += part)
      parts.push_back(std::async(x.size() > part ? std::launch::async : std::launch::deferred, [=, this] {
        return exponentials(std::span{x}.subspan(i, std::min(part, x.size() - i)), largest);
      }));
    Exponentials sums{0, 0};
    for (auto& found : parts) {
      const auto [total, weighted] = found.get();
      sums.total += total;
      sums.weighted += weighted;
    }
    return sums;
  }

  void logsumexp() {
    if (any_nan()) return is_special(not_a_number);
    const double largest = x.empty() ? -infinity : std::ranges::max(x);
    if (std::isinf(largest)) return is_special(largest);
    const auto [total, weighted] = exponentials(largest);
    const Real value = log(total) + largest;
    is(truncated(value), fine_unit,
       value == 0 ? 0 : Real{weighted / (total * abs(value))}.convert_to<double>());
  }

  void softmax() {
    if (any_nan() || x.empty()) return is_special(not_a_number);
    const auto [smallest, largest] = std::ranges::minmax(x);
    if (std::isinf(largest)) return is_special(not_a_number);
    const double element = x.at(result_index);
    const auto [total, weighted] = exponentials(largest);
    const Real value = exp(Real{element} - Real{largest}) / total;
    const Real condition = weighted / total + std::abs(element) * (1 - 2 * value);
    is(truncated(value), fine_unit, condition.convert_to<double>());
    t.magnitudes_ = (exact(largest) - exact(std::max(smallest, -std::numeric_limits<double>::max())))
                    << (exact_unit - fine_unit);
  }

  void moments() {
    if (result_index == 0) return mean();
    if (x.empty() || any_nan() || any_infinity()) return is_special(not_a_number);
    const Truth sum{values};
    const BigInteger n = x.size(), squares = n * this->squares(),
                     spread = squares - sum.value() * sum.value();
    is(truncated(spread << (product_unit - fine_unit), n * n), fine_unit,
       spread == 0 ? infinity : std::sqrt(quotient(squares, spread)));
    t.magnitudes_ = sum.magnitudes() << (exact_unit - fine_unit);
  }
};

Truth Truth::of(const std::string& operation, Values x, std::optional<Values> y, std::size_t result_index) {
  if (operation == "sum") return Truth{x};  // any length, without a copy
  for (const auto& [name, compute] : OperationTruth::all())
    if (name == operation) {
      OperationTruth o{operation, x, y, result_index};
      (o.*compute)();
      o.t.size_ = x.size;
      return o.t;
    }
  throw std::invalid_argument{"samesum: there is no exact result for " + operation};
}

std::vector<std::string> Truth::operations() {
  std::vector<std::string> names;
  for (const auto& o : OperationTruth::all()) names.push_back(o.name);
  return names;
}

}  // namespace samesum::harness
