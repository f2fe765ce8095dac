/// Exact sums of vectors of elements, and of products of up to three of them.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/operation/product_sum.hpp"

namespace samesum::cpu {

/// What is multiplied: up to three vectors of one format and length.
class Factors {
 public:
  /// The inputs that are given: weights may be left out.
  Factors(std::initializer_list<Values> inputs = {}) {
    for (const Values& x : inputs)
      if (x.is_given()) add(x);
  }
  void add(const Values& x) { factors_[size_++] = x; }
  std::size_t size() const { return size_; }
  const Values& operator[](std::size_t k) const { return factors_[k]; }
  /// The elements from number `first` on of each factor, `n` of them.
  Factors part(std::size_t first, std::size_t n) const;

 private:
  std::array<Values, 3> factors_;
  std::size_t size_ = 0;
};

/// Sums vectors of elements, or products of up to three of them.
class ProductSums {
 public:
  /// @param threads as in Options.
  /// @param pause is called on this thread, if it is given, once for each `chunk` elements.
  ProductSums(int threads, const std::function<void()>& pause) : threads_{threads}, pause_{pause} {}

  /// Returns the exact sum of the products of the elements of one to three factors. If an element is not
  /// finite, the sum of products of three is special; which infinity or NaN it is means nothing.
  SumOfProducts sum(const Factors& factors);

 private:
  /// Fewer elements are added one by one, and up to `many` by the loops for rows.
  static constexpr std::size_t few = 16, many = 1 << 16;
  /// Elements whose products are multiplied at a time.
  static constexpr std::size_t block = std::size_t{1} << 15;
  /// Elements between two pauses, unless results are longer: some milliseconds.
  static constexpr std::size_t chunk = std::size_t{1} << 24;

  template <class T, std::size_t factors> SumOfProducts sum_of(const Factors& x);
  /// Adds elements, or products of two, to the sum of many, if there is one, or to `sum_`.
  template <class T, std::size_t factors> void add(std::optional<ExactDigits>& sum, const Factors& x);
  template <class T, std::size_t factors> void add_one_by_one(const Factors& x);
  /// Adds products of three as products of two: a·b·c = high·c + low·c for a·b = high + low. If a product of
  /// two is not exact in two words, all are added one by one.
  template <class T> void add_triples(std::optional<ExactDigits>& sum, const Factors& x);
  void pause() const {
    if (pause_) pause_();
  }

  int threads_;
  const std::function<void()>& pause_;
  std::size_t since_pause_ = 0;
  ProductSum sum_;
  std::vector<double> high_, low_, third_;
};

}  // namespace samesum::cpu
