/// Weighted means and variances, covariances, correlations and lines: quotients of exact sums of products,
/// each rounded once.
#include <nanobind/stl/pair.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "module.hpp"
#include "samesum/accumulator/dyadic.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/window/sum_flags.hpp"

namespace samesum::python {
namespace {

/// An exact sum of elements or of products. The flags, a combination of SumFlags::Flag, tell of NaN,
/// infinities and -0.
struct Sum {
  Dyadic value;
  std::uint32_t flags = 0;

  /// Whether a NaN or an infinity was added.
  bool is_special() const { return (flags & SumFlags::special_flags) != 0; }
  bool is_zero() const { return !is_special() && value.is_zero(); }
  /// Returns NaN, an infinity or zero if the sum is one, else a number of its sign.
  double representative() const {
    if (is_special()) return from_bits<double>(special_bits<double>(flags));
    if (value.is_zero()) return flags == SumFlags::seen_any ? -0.0 : 0.0;
    return value.is_positive() ? 1 : -1;
  }
};

/// A sum of products of doubles, which are added one by one. Positive and negative products are added apart,
/// so that carries are short.
class ProductSum {
 public:
  /// Adds the product of up to three factors.
  template <std::size_t factors> void add(const std::array<double, factors>& x) {
    bool negative = false, is_finite = true, is_zero = false;
    for (const double factor : x) {
      negative = negative != std::signbit(factor);
      is_finite = is_finite && std::abs(factor) <= std::numeric_limits<double>::max();
      is_zero = is_zero || factor == 0;
    }
    if (!is_finite) {
      double product = 1;
      for (const double factor : x) product *= factor;
      flags_ |= seen_flags(product);
    } else if (is_zero) {
      flags_ |= seen_flags(negative ? -0.0 : 0.0);
    } else {
      flags_ |= SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
      std::uint64_t product[factors] = {1};
      int exponent = 0;
      for (const double factor : x) {
        const Decomposed d = decompose<double>(to_bits(factor));
        exponent += d.exponent;
        std::uint64_t carry = 0;
        for (std::uint64_t& word : product) {
          const Wide part = Wide{word} * d.significand + carry;
          word = word_of(part, 0);
          carry = word_of(part, 1);
        }
      }
      add_to(magnitude_[negative], product, exponent - 64 * place);
    }
  }
  /// Moves the sum out: then that of no products is left.
  Sum take() {
    Sum sum{of_sign(false) + of_sign(true), flags_};
    for (auto& words : magnitude_) std::fill(words + first_, words + std::max(first_, end_), 0);
    first_ = count, end_ = 0, flags_ = 0;
    return sum;
  }

 private:
  // Products are multiples of 2^-3222, and 2^64 of them are below 2^3136.
  static constexpr int place = -51;
  static constexpr std::size_t count = 104;

  static std::uint64_t word_of(Wide x, int i) { return static_cast<std::uint64_t>(x >> 64 * i); }

  template <std::size_t factors>
  void add_to(std::uint64_t* words, const std::uint64_t (&product)[factors], int shift) {
    std::size_t at = static_cast<std::size_t>(shift / 64);
    std::uint64_t carry = 0;
    const auto add = [&](Wide shifted) {
      const Wide sum = Wide{words[at]} + word_of(shifted, 0) + carry;
      words[at++] = word_of(sum, 0);
      carry = word_of(sum, 1) + word_of(shifted, 1);
    };
    first_ = std::min(first_, at);
    for (const std::uint64_t word : product) add(Wide{word} << shift % 64);
    while (carry != 0) add(0);
    end_ = std::max(end_, at);
  }
  Dyadic of_sign(bool negative) const {
    if (first_ >= end_) return {};
    return {negative, {magnitude_[negative] + first_, end_ - first_}, place + static_cast<int>(first_)};
  }

  std::uint64_t magnitude_[2][count] = {};
  std::size_t first_ = count, end_ = 0;  ///< of the words that are not 0
  std::uint32_t flags_ = 0;
};

/// Rows of elements: the address of the first row, and how many elements after it the next one begins. The
/// rows of a broadcast array have the stride 0.
using Rows = std::pair<std::uintptr_t, std::size_t>;

/// What is multiplied: up to three rows.
class Factors {
 public:
  Factors(std::initializer_list<Rows> rows) {
    for (const Rows& r : rows) add(r);
  }
  Factors(const std::optional<Rows>& weights, const Factors& others) {
    if (weights) add(*weights);
    for (const Rows& r : others) add(r);
  }
  std::size_t size() const { return size_; }
  const Rows* begin() const { return rows_.data(); }
  const Rows* end() const { return begin() + size_; }
  const Rows& operator[](std::size_t i) const { return rows_[i]; }

 private:
  void add(const Rows& row) { rows_[size_++] = row; }

  std::array<Rows, 3> rows_;
  std::size_t size_ = 0;
};

/// Sums rows of n elements, or of products of up to three of them.
class Summation {
 public:
  Summation(std::string_view format, std::size_t n, int threads)
      : format_{format_named(format)}, n_{n}, threads_{threads} {}

  std::size_t n() const { return n_; }
  /// Sets the number of elements of the rows to come.
  void resize(std::size_t n) { n_ = n; }

  /// Returns the exact sum of the products of the elements number `row` of the factors. If an element is not
  /// finite, the sum of products of three is special; which infinity or NaN it is means nothing.
  Sum sum(const Factors& factors, std::size_t row) {
    std::array<Values, 3> x;
    for (std::size_t k = 0; k < factors.size(); ++k)
      x[k] = values_at(format_, factors[k].first + row * factors[k].second * format_.bytes, n_);
    since_signals_ += n_;
    if (since_signals_ >= chunk) check_signals(), since_signals_ = 0;
    return with_format(format_, [&]<class T>() {
      return factors.size() == 1 ? sum<T, 1>(x) : factors.size() == 2 ? sum<T, 2>(x) : sum<T, 3>(x);
    });
  }

 private:
  /// Fewer elements are added one by one, and up to `many` by the loops for rows.
  static constexpr std::size_t few = 16, many = 1 << 16;
  /// Elements whose products are multiplied at a time.
  static constexpr std::size_t block = std::size_t{1} << 15;

  template <class T, std::size_t factors> Sum sum(const std::array<Values, 3>& x) {
    if (n_ < few) {
      add_one_by_one<T, factors>(x);
      return sum_.take();
    }
    std::optional<Partial> partial;
    if (n_ > many) partial.emplace(factors == 1 ? "sum/exact/fp64" : "dot/exact/fp64");
    const std::size_t step = factors == 3 ? block : chunk;
    for (std::size_t i = 0; i < n_; i += step) {
      if (i % chunk == 0 && i > 0) check_signals();
      std::array<Values, 3> part;
      for (std::size_t k = 0; k < factors; ++k) part[k] = part_of(x[k], i, std::min(step, n_ - i));
      if constexpr (factors == 3)
        add_triples<T>(partial, part);
      else
        add<T, factors>(partial, part);
    }
    const Sum rest = sum_.take();
    if (!partial) return rest;
    const Sum all = sum_of(*partial);
    return {all.value + rest.value, all.flags | rest.flags};
  }

  /// Adds elements, or products of two, to a partial, or to `sum_`.
  template <class T, std::size_t factors>
  void add(std::optional<Partial>& partial, const std::array<Values, 3>& x) {
    if (partial) return partial->add(x[0], x[1], {.threads = threads_});
    const std::optional<std::array<double, 3>> words = cpu::sum_in_words(x[0], x[1]);
    if (!words) return add_one_by_one<T, factors>(x);
    for (const double& word : *words)  // the first one tells of -0
      if (word != 0 || &word == words->data()) sum_.add<1>({word});
  }
  template <class T, std::size_t factors> void add_one_by_one(const std::array<Values, 3>& x) {
    for (std::size_t i = 0; i < x[0].size; ++i) {
      std::array<double, factors> element;
      for (std::size_t k = 0; k < factors; ++k)
        element[k] = convert<double>(static_cast<const T*>(x[k].data)[i]);
      sum_.add(element);
    }
  }

  /// Adds products of three as products of two: a·b·c = high·c + low·c for a·b = high + low. If a product of
  /// two is not exact in two words, all are added one by one.
  template <class T> void add_triples(std::optional<Partial>& partial, const std::array<Values, 3>& x) {
    const std::size_t n = x[0].size;
    const T *const a = static_cast<const T*>(x[0].data), *const b = static_cast<const T*>(x[1].data),
                   *const c = static_cast<const T*>(x[2].data);
    for (std::vector<double>* words : {&high_, &low_, &third_}) words->resize(n);
    cpu::multiply(x[0], x[1], high_.data(), low_.data());
    bool exact = true;
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::abs(high_[i]);
      const bool fits = size >= 0x1p-900 && size <= std::numeric_limits<double>::max(),
                 is_zero = size == 0 && (convert<double>(a[i]) == 0 || convert<double>(b[i]) == 0);
      exact = exact && (fits || is_zero);
      third_[i] = convert<double>(c[i]);
    }
    if (!exact) return add_one_by_one<T, 3>(x);
    add<fp64, 2>(partial, {values(high_), values(third_)});
    // The products of other formats fit into one word.
    if (std::is_same_v<T, fp64>) add<fp64, 2>(partial, {values(low_), values(third_)});
  }
  static Values values(const std::vector<double>& x) { return {format_info<fp64>(), x.data(), x.size()}; }

  /// Reads the serial form of a partial, which ends with the flags, an integer in units of 2^-2162, and a
  /// checksum.
  static Sum sum_of(const Partial& partial) {
    constexpr std::size_t digits = 136, bytes_after_flags = 4 * digits + 4;
    const std::vector<std::byte> bytes = partial.serialise();
    const std::byte* at = bytes.data() + bytes.size() - bytes_after_flags;
    const auto flags = static_cast<std::uint32_t>(at[-1]);
    std::int64_t digit[digits];
    for (std::int64_t& d : digit) {
      d = 0;
      for (int i = 0; i < 32; i += 8) d |= static_cast<std::int64_t>(*at++) << i;
    }
    digit[digits - 1] = static_cast<std::int32_t>(digit[digits - 1]);
    return {Dyadic{digit, -2162}, flags};
  }

  const FormatInfo& format_;
  std::size_t n_;
  int threads_;
  std::size_t since_signals_ = 0;
  ProductSum sum_;
  std::vector<double> high_, low_, third_;
};

/// The sums of rows, in their order. If no factor has a stride, they are one sum.
class RowSums {
 public:
  RowSums(Summation& summation, const Factors& factors) : summation_{summation}, factors_{factors} {
    for (const Rows& f : factors_) varies_ = varies_ || f.second != 0;
  }
  const Sum& of(std::size_t row) {
    if (row == 0 || varies_) sum_ = summation_.sum(factors_, row);
    return sum_;
  }

 private:
  Summation& summation_;
  Factors factors_;
  bool varies_ = false;
  Sum sum_;
};

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
Number quotient(const Sum& a, const Sum& b, const Numbers& out) {
  if (!a.is_special() && !b.is_special() && !a.is_zero() && !b.is_zero())
    return a.value.rounded_quotient(out.format(), b.value);
  return with_format(out.format(), [&]<class F>() {
    const double x = a.representative() / b.representative();
    return std::isnan(x) ? out.nan() : Number::of(convert<F>(x));
  });
}

/// Returns Σw·(Σw - correction·squares/Σw). `squares` is Σw for frequencies, Σw² for reliabilities.
Dyadic divisor_of(const Dyadic& total, const Dyadic& correction, const Dyadic& squares) {
  return total * total - correction * squares;
}

/// Returns the moment Σw·Σwxy - Σwx·Σwy over a divisor; NaN if that is not positive.
Number divided(const Dyadic& moment, const Dyadic& divisor, const Numbers& out) {
  return divisor.is_positive() ? moment.rounded_quotient(out.format(), divisor) : out.nan();
}

/// Whether no sum has a NaN or an infinity.
template <class... Sums> bool are_finite(const Sums&... sums) { return !(sums.is_special() || ...); }

/// Computes Σwx / Σw of each row, and Σw if there is a second address. Returns the rows with Σw = 0.
std::vector<std::size_t> weighted_means(std::string_view format, std::size_t rows, std::size_t n, int threads,
                                        Rows w, Rows x, std::string_view result_format,
                                        const std::vector<std::uintptr_t>& results) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  RowSums of_w{summation, {w}}, of_x{summation, {w, x}};
  const bool returns_totals = results.size() > 1;
  Numbers means{result_format, results.at(0)}, totals{result_format, returns_totals ? results[1] : 0};
  const Sum one{Dyadic{std::uint64_t{1}}};
  std::vector<std::size_t> zeros;
  for (std::size_t row = 0; row < rows; ++row) {
    const Sum& sum = of_w.of(row);
    if (sum.is_zero()) zeros.push_back(row);
    means.write(row, quotient(of_x.of(row), sum, means));
    if (returns_totals) totals.write(row, quotient(sum, one, totals));
  }
  return zeros;
}

/// Computes the variance of each row. Returns the rows with Σw = 0.
std::vector<std::size_t> weighted_variances(std::string_view format, std::size_t rows, std::size_t n,
                                            int threads, Rows w, Rows x, double correction,
                                            bool are_reliabilities, std::string_view result_format,
                                            const std::vector<std::uintptr_t>& results) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  RowSums of_w{summation, {w}}, of_ww{summation, {w, w}}, of_x{summation, {w, x}},
      of_xx{summation, {w, x, x}};
  Numbers out{result_format, results.at(0)};
  const Dyadic subtracted{correction};
  std::vector<std::size_t> zeros;
  for (std::size_t row = 0; row < rows; ++row) {
    const Sum &total = of_w.of(row), &squares = are_reliabilities ? of_ww.of(row) : total,
              &sum = of_x.of(row), &sum_of_squares = of_xx.of(row);
    if (total.is_zero()) zeros.push_back(row);
    const Dyadic moment = total.value * sum_of_squares.value - sum.value * sum.value;
    out.write(row, are_finite(total, sum)
                       ? divided(moment, divisor_of(total.value, subtracted, squares.value), out)
                       : out.nan());
  }
  return zeros;
}

/// What is computed of two variables: covariances, which are divided by Σw - correction, or correlations.
struct PairOptions {
  Dyadic correction;
  bool are_reliabilities, are_correlations;
};

/// The weighted sums of one row of two variables or more.
class RowOfVariables {
 public:
  RowOfVariables(Summation& summation, const std::optional<Rows>& w, std::size_t row,
                 const PairOptions& options)
      : summation_{summation}, w_{w}, options_{options}, row_{row} {
    total_ = sum({});
    if (!options.are_correlations)
      divisor_ = divisor_of(total_.value, options.correction,
                            w && options.are_reliabilities ? sum({*w}).value : total_.value);
  }
  /// Goes on to a row with the same sums of weights.
  void move_to(std::size_t row) { row_ = row; }

  const Sum& total() const { return total_; }
  /// Whether there are elements, whose weights sum to zero.
  bool has_no_weight() const { return w_ && summation_.n() > 0 && total_.is_zero(); }

  Sum sum(const Factors& factors) const {
    const Factors weighted{w_, factors};
    if (weighted.size() == 0) return {Dyadic{std::uint64_t{summation_.n()}}};
    return summation_.sum(weighted, row_);
  }
  /// Returns Σw·Σwxy - Σwx·Σwy, from the sums Σwx and Σwy.
  Dyadic moment(Rows x, Rows y, const Sum& of_x, const Sum& of_y) const {
    return total_.value * sum({x, y}).value - of_x.value * of_y.value;
  }
  /// Returns the result of two variables from the moments of both, of x alone and of y alone; the last two
  /// are for correlations.
  Number result(const Dyadic& moment, const Dyadic& of_x, const Dyadic& of_y, const Numbers& out) const {
    if (!options_.are_correlations) return divided(moment, divisor_, out);
    const Dyadic variances = of_x * of_y;
    return variances.is_positive() ? moment.rounded_ratio_to_root(out.format(), variances) : out.nan();
  }
  /// Returns the result of two variables.
  Number result(Rows x, Rows y, const Numbers& out) const {
    const Sum of_x = sum({x}), of_y = sum({y});
    if (!are_finite(total_, of_x, of_y)) return out.nan();
    const auto alone = [&](Rows a, const Sum& of_a) {
      return options_.are_correlations ? moment(a, a, of_a, of_a) : Dyadic{};
    };
    return result(moment(x, y, of_x, of_y), alone(x, of_x), alone(y, of_y), out);
  }

 private:
  Summation& summation_;
  const std::optional<Rows>& w_;
  const PairOptions& options_;
  std::size_t row_;
  Sum total_;
  Dyadic divisor_;
};

/// Writes value(i, k), 0 <= i <= k < count, to a symmetric matrix.
template <class Value> void write_symmetric(Numbers& out, std::size_t count, Value value) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = i; k < count; ++k) {
      const Number entry = value(i, k);
      out.write(i * count + k, entry);
      out.write(k * count + i, entry);
    }
}

/// Computes the symmetric matrix of covariances or correlations of `count` contiguous rows. Returns whether
/// Σw = 0: then there are no results.
bool covariances(std::string_view format, std::size_t count, std::size_t n, int threads,
                 const std::optional<Rows>& w, Rows x, double correction, bool are_reliabilities,
                 bool are_correlations, std::string_view result_format, std::uintptr_t matrix) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  const PairOptions options{Dyadic{correction}, are_reliabilities, are_correlations};
  const RowOfVariables rows{summation, w, 0, options};
  if (rows.has_no_weight()) return true;
  const auto row = [&](std::size_t i) { return Rows{x.first + i * n * format_named(format).bytes, 0}; };
  std::vector<Sum> of_x;
  for (std::size_t i = 0; i < count; ++i) of_x.push_back(rows.sum({row(i)}));
  const auto moment = [&](std::size_t i, std::size_t k) {
    return rows.moment(row(i), row(k), of_x[i], of_x[k]);
  };
  std::vector<Dyadic> diagonal;
  for (std::size_t i = 0; i < count; ++i) diagonal.push_back(moment(i, i));
  Numbers out{result_format, matrix};
  write_symmetric(out, count, [&](std::size_t i, std::size_t k) {
    if (!are_finite(rows.total(), of_x[i], of_x[k])) return out.nan();
    return rows.result(i == k ? diagonal[i] : moment(i, k), diagonal[i], diagonal[k], out);
  });
  return false;
}

/// Packs the elements of contiguous rows that take part in two of them.
class PackedPair {
 public:
  PackedPair(std::size_t bytes, std::size_t n) : bytes_{bytes}, n_{n}, memory_(3 * n * bytes) {}

  /// Returns how many elements take part in both rows of flags.
  std::size_t pack(const bool* takes_x, const bool* takes_y, Rows x, Rows y, const std::optional<Rows>& w) {
    switch (bytes_) {
      case 2:
        return pack<std::uint16_t>(takes_x, takes_y, x, y, w);
      case 4:
        return pack<std::uint32_t>(takes_x, takes_y, x, y, w);
      default:
        return pack<std::uint64_t>(takes_x, takes_y, x, y, w);
    }
  }
  Rows x() const { return packed(0); }
  Rows y() const { return packed(1); }
  Rows w() const { return packed(2); }

 private:
  template <class Bits>
  std::size_t pack(const bool* takes_x, const bool* takes_y, Rows x, Rows y, const std::optional<Rows>& w) {
    std::size_t m = 0;
    const auto copy = [&](Rows from, Rows to) {
      const Bits* const a = reinterpret_cast<const Bits*>(from.first);
      Bits* const b = reinterpret_cast<Bits*>(to.first);
      m = 0;
      for (std::size_t i = 0; i < n_; ++i) {  // without branches, which nothing predicts
        b[m] = a[i];
        m += static_cast<std::size_t>(takes_x[i] & takes_y[i]);
      }
    };
    copy(x, packed(0));
    copy(y, packed(1));
    if (w) copy(*w, packed(2));
    return m;
  }
  Rows packed(std::size_t i) const {
    return {reinterpret_cast<std::uintptr_t>(memory_.data()) + i * n_ * bytes_, 0};
  }

  std::size_t bytes_, n_;
  std::vector<std::byte> memory_;
};

/// Computes the matrix of `covariances` if entry (i, k) is that of the elements of which both rows take part,
/// by flags for all elements. Returns whether Σw = 0 for an entry: then there are no results.
bool covariances_of_pairs(std::string_view format, std::size_t count, std::size_t n, int threads,
                          const std::optional<Rows>& w, Rows x, std::uintptr_t takes, double correction,
                          bool are_reliabilities, bool are_correlations, std::string_view result_format,
                          std::uintptr_t matrix) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  const PairOptions options{Dyadic{correction}, are_reliabilities, are_correlations};
  const std::size_t bytes = format_named(format).bytes;
  const bool* const flags = reinterpret_cast<const bool*>(takes);
  PackedPair packed{bytes, n};
  const std::optional<Rows> packed_w = w ? std::optional{packed.w()} : std::nullopt;
  bool has_zero = false;
  Numbers out{result_format, matrix};
  write_symmetric(out, count, [&](std::size_t i, std::size_t k) {
    const auto row = [&](std::size_t r) { return Rows{x.first + r * n * bytes, 0}; };
    summation.resize(packed.pack(flags + i * n, flags + k * n, row(i), row(k), w));
    const RowOfVariables rows{summation, packed_w, 0, options};
    has_zero = has_zero || rows.has_no_weight();
    return rows.result(packed.x(), packed.y(), out);
  });
  return has_zero;
}

/// Computes the covariance or the correlation of each row of x and y. Returns whether Σw = 0 for one of them.
bool covariances_of_rows(std::string_view format, std::size_t rows, std::size_t n, int threads,
                         const std::optional<Rows>& w, Rows x, Rows y, double correction,
                         bool are_reliabilities, bool are_correlations, std::string_view result_format,
                         std::uintptr_t results) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  const PairOptions options{Dyadic{correction}, are_reliabilities, are_correlations};
  std::optional<RowOfVariables> row;
  bool has_zero = false;
  Numbers out{result_format, results};
  for (std::size_t r = 0; r < rows; ++r) {
    if (w || !row) row.emplace(summation, w, r, options);
    row->move_to(r);
    has_zero = has_zero || row->has_no_weight();
    out.write(r, row->result(x, y, out));
  }
  return has_zero;
}

/// Computes slope and intercept of a line for each row. Returns the rows with Σw = 0.
std::vector<std::size_t> lines(std::string_view format, std::size_t rows, std::size_t n, int threads,
                               const std::optional<Rows>& w, Rows x, Rows y, std::string_view result_format,
                               std::uintptr_t slopes, std::uintptr_t intercepts) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  const auto sums = [&](const Factors& factors) { return RowSums{summation, {w, factors}}; };
  RowSums of_w = sums({}), of_x = sums({x}), of_y = sums({y}), of_xx = sums({x, x}), of_xy = sums({x, y});
  const Sum count{Dyadic{std::uint64_t{n}}};
  Numbers slope{result_format, slopes}, intercept{result_format, intercepts};
  std::vector<std::size_t> zeros;
  for (std::size_t row = 0; row < rows; ++row) {
    const Sum &total = w ? of_w.of(row) : count, &sx = of_x.of(row), &sy = of_y.of(row), &sxx = of_xx.of(row),
              &sxy = of_xy.of(row);
    if (w && total.is_zero()) zeros.push_back(row);
    const Dyadic divisor = total.value * sxx.value - sx.value * sx.value;
    const bool has_line = are_finite(total, sx, sy) && divisor.is_positive();
    const auto over_divisor = [&](const Dyadic& moment) {
      return has_line ? moment.rounded_quotient(slope.format(), divisor) : slope.nan();
    };
    slope.write(row, over_divisor(total.value * sxy.value - sx.value * sy.value));
    intercept.write(row, over_divisor(sy.value * sxx.value - sx.value * sxy.value));
  }
  return zeros;
}

}  // namespace

void bind_weights(nb::module_& m) {
  m.def("weighted_means", &weighted_means);
  m.def("weighted_variances", &weighted_variances);
  m.def("covariances", &covariances, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("covariances_of_pairs", &covariances_of_pairs, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("covariances_of_rows", &covariances_of_rows, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("lines", &lines);
}

}  // namespace samesum::python
