/// Exact sums of elements, or of products of two or three factors, as integers for Python.
#include <cmath>
#include <limits>

#include "module.hpp"
#include "samesum/base/environment.hpp"

namespace samesum::python {
namespace {

/// Bytes of a sum: its flags, then the digits of an exact partial, a little-endian integer.
constexpr std::size_t digit_bytes = 544, sum_bytes = 1 + digit_bytes, checksum_bytes = 4;

/// Sums products of three factors as products of two: a·b·c = high·c + low·c for a·b = high + low.
class Triples {
 public:
  /// Adds the products of the elements of three inputs. Returns false if a product of two is not exact in two
  /// words; the sum then misses elements.
  template <class T> bool add(Partial& partial, const std::array<Values, 3>& factors, int threads) {
    const T* const a = static_cast<const T*>(factors[0].data);
    const T* const b = static_cast<const T*>(factors[1].data);
    const T* const c = static_cast<const T*>(factors[2].data);
    const std::size_t n = factors[0].size;
    for (std::size_t i = 0; i < n; i += block) {
      const std::size_t size = std::min(block, n - i);
      if (!multiply(a + i, b + i, c + i, size)) return false;
      partial.add(values(high_, size), values(third_, size), {.threads = threads});
      // The products of other formats fit into one word.
      if (std::is_same_v<T, fp64>)
        partial.add(values(low_, size), values(third_, size), {.threads = threads});
      if (i % chunk == 0 && i > 0) check_signals();
    }
    return true;
  }

 private:
  static constexpr std::size_t block = std::size_t{1} << 15;

  static Values values(const std::vector<double>& x, std::size_t n) {
    return {format_info<fp64>(), x.data(), n};
  }

  template <class T> bool multiply(const T* a, const T* b, const T* c, std::size_t n) {
    constexpr double most = std::numeric_limits<double>::max();
    constexpr double least = 0x1p-900;  // low words are multiples of 2^-1006
    bool exact = true;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = convert<double>(a[i]), y = convert<double>(b[i]), product = x * y;
      const double size = std::abs(product);
      const bool fits = size >= least && size <= most;
      // A product with a zero, an infinity or NaN needs no low word, which would be NaN.
      exact = exact && (fits || x == 0 || y == 0 || !(std::abs(x) <= most) || !(std::abs(y) <= most));
      high_[i] = product;
      low_[i] = std::is_same_v<T, fp64> && fits ? std::fma(x, y, -product) : 0;
      third_[i] = convert<double>(c[i]);
    }
    return exact;
  }

  std::vector<double> high_ = std::vector<double>(block), low_ = high_, third_ = high_;
};

/// Returns the sums of the products of the factors over rows of n elements. Row r of factor k lies
/// `strides[k]`·r elements after the address `factors[k]`. The result is None if the products of the first
/// two of three factors over- or underflow.
nb::object exact_sums(std::string_view format, const std::vector<std::uintptr_t>& factors,
                      const std::vector<std::size_t>& strides, std::size_t rows, std::size_t n, int threads) {
  const FormatInfo& input = format_named(format);
  std::vector<std::byte> sums(rows * sum_bytes);
  bool exact = true;
  {
    const nb::gil_scoped_release released;
    const FloatingPointEnvironment environment;
    const Partial empty{factors.size() == 1 ? "sum/exact/fp64" : "dot/exact/fp64"};
    Triples triples;
    std::size_t since_signals = 0;
    for (std::size_t row = 0; row < rows && exact && n > 0; ++row) {
      std::array<Values, 3> x;
      for (std::size_t k = 0; k < factors.size(); ++k)
        x[k] = values_at(input, factors.at(k) + row * strides.at(k) * input.bytes, n);
      Partial partial = empty;
      if (factors.size() < 3)
        for (std::size_t i = 0; i < n; i += chunk) {
          if (i > 0) check_signals();
          const std::size_t size = std::min(chunk, n - i);
          partial.add(part_of(x[0], i, size), part_of(x[1], i, size), {.threads = threads});
        }
      else
        exact = with_format(input, [&]<class T>() { return triples.add<T>(partial, x, threads); });
      const std::vector<std::byte> bytes = partial.serialise();
      std::copy(bytes.end() - sum_bytes - checksum_bytes, bytes.end() - checksum_bytes,
                sums.begin() + static_cast<std::ptrdiff_t>(row * sum_bytes));
      since_signals += n;
      if (since_signals >= chunk) check_signals(), since_signals = 0;
    }
  }
  return exact ? nb::object{nb::bytes{sums.data(), sums.size()}} : nb::none();
}

}  // namespace

void bind_exact_sums(nb::module_& m) { m.def("exact_sums", &exact_sums); }

}  // namespace samesum::python
