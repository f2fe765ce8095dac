/// Covariances, correlations and lines of two variables or more: quotients of exact sums of products, each
/// rounded once.
#include <nanobind/stl/pair.h>

#include "quotients.hpp"
#include "samesum/base/environment.hpp"

namespace samesum::python {
namespace {

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

  const SumOfProducts& total() const { return total_; }
  /// Whether there are elements, whose weights sum to zero.
  bool has_no_weight() const { return w_ && summation_.n() > 0 && total_.is_zero(); }

  SumOfProducts sum(const Factors& factors) const {
    const Factors weighted{w_, factors};
    if (weighted.size() == 0) return {Dyadic{std::uint64_t{summation_.n()}}};
    return summation_.sum(weighted, row_);
  }
  /// Returns Σw·Σwxy - Σwx·Σwy, from the sums Σwx and Σwy.
  Dyadic moment(Rows x, Rows y, const SumOfProducts& of_x, const SumOfProducts& of_y) const {
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
    const SumOfProducts of_x = sum({x}), of_y = sum({y});
    if (!are_finite(total_, of_x, of_y)) return out.nan();
    const auto alone = [&](Rows a, const SumOfProducts& of_a) {
      return options_.are_correlations ? moment(a, a, of_a, of_a) : Dyadic{};
    };
    return result(moment(x, y, of_x, of_y), alone(x, of_x), alone(y, of_y), out);
  }

 private:
  Summation& summation_;
  const std::optional<Rows>& w_;
  const PairOptions& options_;
  std::size_t row_;
  SumOfProducts total_;
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
  std::vector<SumOfProducts> of_x;
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
  const SumOfProducts count{Dyadic{std::uint64_t{n}}};
  Numbers slope{result_format, slopes}, intercept{result_format, intercepts};
  std::vector<std::size_t> zeros;
  for (std::size_t row = 0; row < rows; ++row) {
    const SumOfProducts &total = w ? of_w.of(row) : count, &sx = of_x.of(row), &sy = of_y.of(row),
                        &sxx = of_xx.of(row), &sxy = of_xy.of(row);
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

void bind_covariances(nb::module_& m) {
  m.def("covariances", &covariances, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("covariances_of_pairs", &covariances_of_pairs, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("covariances_of_rows", &covariances_of_rows, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("lines", &lines);
}

}  // namespace samesum::python
