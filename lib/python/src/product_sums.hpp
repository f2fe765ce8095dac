/// Exact sums of rows of elements and of products of up to three of them.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "module.hpp"
#include "samesum/accumulator/dyadic.hpp"
#include "samesum/window/sum_flags.hpp"

namespace samesum::python {

/// An exact sum of elements or of products. The flags, a combination of SumFlags::Flag, tell of NaN,
/// infinities and -0.
struct SumOfProducts {
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
  template <std::size_t factors> void add(const std::array<double, factors>& x);
  /// Moves the sum out: then that of no products is left.
  SumOfProducts take() {
    SumOfProducts sum{of_sign(false) + of_sign(true), flags_};
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
  void add_to(std::uint64_t* words, const std::uint64_t (&product)[factors], int shift);
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
  SumOfProducts sum(const Factors& factors, std::size_t row);

 private:
  /// Fewer elements are added one by one, and up to `many` by the loops for rows.
  static constexpr std::size_t few = 16, many = 1 << 16;
  /// Elements whose products are multiplied at a time.
  static constexpr std::size_t block = std::size_t{1} << 15;

  template <class T, std::size_t factors> SumOfProducts sum(const std::array<Values, 3>& x);
  /// Adds elements, or products of two, to a partial, or to `sum_`.
  template <class T, std::size_t factors>
  void add(std::optional<Partial>& partial, const std::array<Values, 3>& x);
  template <class T, std::size_t factors> void add_one_by_one(const std::array<Values, 3>& x);
  /// Adds products of three as products of two: a·b·c = high·c + low·c for a·b = high + low. If a product of
  /// two is not exact in two words, all are added one by one.
  template <class T> void add_triples(std::optional<Partial>& partial, const std::array<Values, 3>& x);

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
  const SumOfProducts& of(std::size_t row) {
    if (row == 0 || varies_) sum_ = summation_.sum(factors_, row);
    return sum_;
  }

 private:
  Summation& summation_;
  Factors factors_;
  bool varies_ = false;
  SumOfProducts sum_;
};

}  // namespace samesum::python
