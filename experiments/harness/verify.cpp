#include "harness/verify.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace samesum::harness {
namespace {

using Extended = long double;

constexpr Extended infinity = std::numeric_limits<Extended>::infinity();

/// A result, and the distance from it that is accepted.
struct Expected {
  Extended value, tolerance;
};

/// What rounding to the format of the results may do.
struct Rounding {
  Extended relative;  ///< 4u
  Extended least;     ///< the smallest normal number: a smaller one may be flushed to 0
  Extended most;      ///< the largest number

  explicit Rounding(const FormatInfo& f)
      : relative{4 * Extended{f.unit_roundoff}},
        least{Extended{f.smallest_subnormal} / (2 * Extended{f.unit_roundoff})},
        most{f.max_finite} {}
};

/// The arithmetic of sums of elements of F. That of long double is several times as slow.
template <class F> using Wider = std::conditional_t<sizeof(F) < sizeof(double), double, Extended>;

/// A sum of terms, and what its tolerance depends on.
template <class W> struct TermSum {
  W count = 0, sum = 0, magnitudes = 0, farthest = 0;

  void add(W term) {
    ++count;
    sum += term;
    magnitudes += std::fabs(term);
    farthest = std::max(farthest, std::fabs(sum));
  }
  Expected expected(const Rounding& r) const {
    if (!(magnitudes <= r.most)) return {sum, infinity};  // also for NaN
    return {sum, r.relative * (std::sqrt(count) * farthest + magnitudes) + count * r.least};
  }
};

/// The elements of one result.
template <class F> struct Vector {
  using W = Wider<F>;

  const F *x, *y;
  std::size_t n, stride;

  static W wide(F element) {
    if constexpr (std::is_floating_point_v<F>)
      return element;
    else
      return convert<double>(element);
  }
  W operator[](std::size_t k) const { return wide(x[k * stride]); }
  W product(std::size_t k) const { return (*this)[k] * wide(y[k * stride]); }
  template <class Term> TermSum<W> terms(Term term) const {
    TermSum<W> all;
    for (std::size_t k = 0; k < n; ++k) all.add(term(k));
    return all;
  }
  TermSum<W> terms() const {
    return terms([this](std::size_t k) { return (*this)[k]; });
  }
};

class Verifier {
 public:
  explicit Verifier(const Call& done)
      : c_{done}, layout_{done.layout}, rounding_{*done.out.format}, operation_{done.method->operation} {}

  /// Compares the results of the vectors from `begin` to `end`; of sums by key all.
  Verification found(std::size_t begin, std::size_t end) {
    with_format(*c_.x.format, [&]<class F>() {
      if (c_.method->takes_keys) return by_key<F>();
      for (std::size_t at = begin; at < end; ++at) {
        const std::size_t o = at / layout_.inner, i = at % layout_.inner, first = layout_.first(o) + i;
        const F *x = static_cast<const F*>(c_.x.data), *y = static_cast<const F*>(c_.y.data);
        const Vector<F> v{x + first, y ? y + first : nullptr, layout_.n, layout_.stride};
        if (c_.method->has_result_per_element)
          per_element(v, o * c_.out.stride_of(layout_) + i);
        else
          per_vector(v, at * static_cast<std::size_t>(c_.method->results));
      }
    });
    return found_;
  }

 private:
  template <class F> void by_key() {
    if (operation_ != "scatter_add") refuse();
    std::vector<TermSum<Wider<F>>> all(c_.out.size);
    with_key_format(c_.keys.format, [&]<class K>() {
      const auto* const keys = static_cast<const K*>(c_.keys.data);
      const auto* x = static_cast<const F*>(c_.x.data);
      for (std::size_t k = 0; k < c_.keys.size; ++k)
        for (std::size_t i = 0; i < layout_.inner; ++i)
          all[static_cast<std::size_t>(keys[k]) * layout_.inner + i].add(Vector<F>::wide(*x++));
    });
    for (std::size_t i = 0; i < all.size(); ++i) compare(i, all[i].expected(rounding_));
  }

  template <class F> void per_vector(const Vector<F>& v, std::size_t at) {
    if (operation_ == "sum") return compare(at, v.terms().expected(rounding_));
    if (operation_ == "sum_of_magnitudes")
      return compare(at, v.terms([&](std::size_t k) { return std::fabs(v[k]); }).expected(rounding_));
    if (operation_ == "dot")
      return compare(at, v.terms([&](std::size_t k) { return v.product(k); }).expected(rounding_));
    if (operation_ == "norm") return compare(at, norm(v));
    if (operation_ == "prod") return compare(at, product(v));
    if (operation_ == "max") return compare(at, maximum(v));
    if (operation_ == "mean") return compare(at, mean(v));
    if (operation_ != "moments") refuse();
    compare(at, mean(v));
    compare(at + 1, variance(v));
  }

  template <class F> void per_element(const Vector<F>& v, std::size_t at) {
    if (operation_ == "softmax") return softmax(v, at);
    if (operation_ != "cumsum") refuse();
    TermSum<Wider<F>> all;
    for (std::size_t k = 0; k < v.n; ++k) {
      all.add(v[k]);
      compare(at + k * layout_.inner, all.expected(rounding_));
    }
  }

  template <class F> Expected norm(const Vector<F>& v) const {
    const auto [squares, tolerance] = v.terms([&](std::size_t k) { return v[k] * v[k]; }).expected(rounding_);
    const Extended root = std::sqrt(squares);
    if (tolerance == infinity) return {root, infinity};
    return {root, squares == 0 ? 0 : tolerance / root};
  }

  /// Any product of some elements lies between those of the small and of the large ones.
  template <class F> Expected product(const Vector<F>& v) const {
    Extended product = 1, small = 1, large = 1;
    for (std::size_t k = 0; k < v.n; ++k) {
      const Extended x = v[k], magnitude = std::fabs(x);
      product *= x;
      (magnitude < 1 ? small : large) *= magnitude;
    }
    const bool in_range = small >= rounding_.least && large <= rounding_.most;
    const Extended error = rounding_.relative * std::sqrt(static_cast<Extended>(v.n));
    return {product, in_range ? error * std::fabs(product) : infinity};
  }

  template <class F> Expected maximum(const Vector<F>& v) const {
    auto most = static_cast<Wider<F>>(-infinity);
    for (std::size_t k = 0; k < v.n; ++k) {
      if (std::isnan(v[k])) return {v[k], infinity};
      most = std::max(most, v[k]);
    }
    return {most, 0};
  }

  template <class F> Expected mean(const Vector<F>& v) const {
    const auto [sum, tolerance] = v.terms().expected(rounding_);
    const auto n = static_cast<Extended>(v.n);
    return {sum / n, v.n == 0 ? 0 : tolerance / n};
  }

  /// nκu + (nκu)² of the variance, with n + 3 for n, which covers the roundings of a square and of the
  /// division.
  template <class F> Expected variance(const Vector<F>& v) const {
    const auto n = static_cast<Extended>(v.n);
    const auto mean = v.terms().sum / static_cast<Wider<F>>(v.n);
    const Extended squares = v.terms([&](std::size_t k) { return (v[k] - mean) * (v[k] - mean); }).magnitudes;
    const Extended variance = squares / n, mean_square = variance + Extended{mean} * mean;
    const Extended error = (n + 3) * rounding_.relative / 4 * std::sqrt(mean_square);  // nκu √variance
    if (v.n == 0) return {variance, 0};
    if (!(n * mean_square <= rounding_.most)) return {variance, infinity};
    return {variance, error * (std::sqrt(variance) + error) + n * rounding_.least};
  }

  /// The error of an exponential is relative to that of its argument.
  template <class F> void softmax(const Vector<F>& v, std::size_t at) {
    const auto largest = static_cast<Wider<F>>(maximum(v).value);
    std::vector<Wider<F>> exponentials(v.n);
    for (std::size_t k = 0; k < v.n; ++k) exponentials[k] = std::exp(v[k] - largest);
    const Extended total = v.terms([&](std::size_t k) { return exponentials[k]; }).sum,
                   root = std::sqrt(static_cast<Extended>(v.n));
    for (std::size_t k = 0; k < v.n; ++k) {
      const Extended value = exponentials[k] / total;
      const Extended error = rounding_.relative * (root + 2 + largest - v[k]) * value + rounding_.least;
      compare(at + k * layout_.inner, {value, std::isfinite(error) ? error : infinity});
    }
  }

  void compare(std::size_t at, const Expected& expected) {
    const Extended result = with_format(*c_.out.format, [&]<class F>() -> Extended {
      return Vector<F>::wide(static_cast<const F*>(c_.out.data)[at]);
    });
    const auto& [value, tolerance] = expected;
    const bool right = tolerance == infinity || (std::isnan(value) && std::isnan(result)) ||
                       result == value || std::fabs(result - value) <= tolerance;
    found_.significant += tolerance != infinity && tolerance <= std::fabs(value) / 2;
    if (right || !found_.wrong.empty()) return;
    std::ostringstream text;
    text.precision(10);
    text << "result " << at << " is " << result << " instead of " << value << ", with a tolerance of "
         << tolerance;
    found_.wrong = text.str();
  }

  [[noreturn]] void refuse() const {
    throw std::invalid_argument{"samesum: results of " + operation_ + " cannot be verified"};
  }

  const Call& c_;
  const Layout& layout_;
  Rounding rounding_;
  const std::string& operation_;
  Verification found_;
};

}  // namespace

Verification verify(const Call& done) {
  const std::size_t vectors = done.layout.outer * done.layout.inner,
                    processors = std::thread::hardware_concurrency();
  const std::size_t threads =
      done.method->takes_keys ? 1 : std::max<std::size_t>(std::min(vectors, processors), 1);
  std::vector<std::future<Verification>> parts;
  for (std::size_t t = 0; t < threads; ++t)
    parts.push_back(std::async(std::launch::async,
                               [&done, begin = vectors * t / threads, end = vectors * (t + 1) / threads] {
                                 return Verifier{done}.found(begin, end);
                               }));
  Verification all;
  for (std::future<Verification>& part : parts) {
    const Verification found = part.get();
    if (all.wrong.empty()) all.wrong = found.wrong;
    all.significant += found.significant;
  }
  return all;
}

}  // namespace samesum::harness
