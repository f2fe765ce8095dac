/// Definitions of product_sums.hpp: short vectors are added one by one, longer ones by the loops of exact
/// sums.
#include "samesum/backend/cpu/statistics/product_sums.hpp"

#include <cmath>
#include <limits>

namespace samesum::cpu {
namespace {

Values fp64_values(const std::vector<double>& x) { return {format_info<fp64>(), x.data(), x.size()}; }

/// Adds the exact sum of elements, or of products of two, on several threads.
void add_many(ExactDigits& sum, const Values& x, const Values& y, int threads) {
  ExactDigits part;
  reduce_exactly({.term = y.is_given() ? Term::product : Term::element},
                 HostRun{.call = {.method = nullptr,
                                  .x = x,
                                  .y = y,
                                  .layout = Layout::vector(x.size),
                                  .out = {&format_info<fp64>(), &part, 1},
                                  .options = {.threads = threads}},
                         .as_state = true});
  sum.merge(part);
}

}  // namespace

Factors Factors::part(std::size_t first, std::size_t n) const {
  Factors part = *this;
  for (std::size_t k = 0; k < size_; ++k) {
    const Values& x = factors_[k];
    part.factors_[k] = {*x.format, static_cast<const std::byte*>(x.data) + first * x.format->bytes, n};
  }
  return part;
}

SumOfProducts ProductSums::sum(const Factors& factors) {
  since_pause_ += factors[0].size;
  if (since_pause_ >= chunk) pause(), since_pause_ = 0;
  return with_format(*factors[0].format, [&]<class T>() {
    return factors.size() == 1   ? sum_of<T, 1>(factors)
           : factors.size() == 2 ? sum_of<T, 2>(factors)
                                 : sum_of<T, 3>(factors);
  });
}

template <class T, std::size_t factors> SumOfProducts ProductSums::sum_of(const Factors& x) {
  const std::size_t n = x[0].size;
  if (n < few) {
    add_one_by_one<T, factors>(x);
    return sum_.take();
  }
  std::optional<ExactDigits> of_many;
  if (n > many) of_many.emplace();
  const std::size_t step = factors == 3 ? block : chunk;
  for (std::size_t i = 0; i < n; i += step) {
    if (i % chunk == 0 && i > 0) pause();
    const Factors part = x.part(i, std::min(step, n - i));
    if constexpr (factors == 3)
      add_triples<T>(of_many, part);
    else
      add<T, factors>(of_many, part);
  }
  const SumOfProducts rest = sum_.take();
  if (!of_many) return rest;
  return {Dyadic{of_many->terms, ExactTerms::lowest_exponent} + rest.value,
          static_cast<std::uint32_t>(of_many->flags) | rest.flags};
}

template <class T, std::size_t factors>
void ProductSums::add(std::optional<ExactDigits>& sum, const Factors& x) {
  if (sum) return add_many(*sum, x[0], x[1], threads_);
  const std::optional<std::array<double, 3>> words = sum_in_words(x[0], x[1]);
  if (!words) return add_one_by_one<T, factors>(x);
  for (const double& word : *words)  // the first one tells of -0
    if (word != 0 || &word == words->data()) sum_.add<1>({word});
}

template <class T, std::size_t factors> void ProductSums::add_one_by_one(const Factors& x) {
  for (std::size_t i = 0; i < x[0].size; ++i) {
    std::array<double, factors> element;
    for (std::size_t k = 0; k < factors; ++k)
      element[k] = convert<double>(static_cast<const T*>(x[k].data)[i]);
    sum_.add(element);
  }
}

template <class T> void ProductSums::add_triples(std::optional<ExactDigits>& sum, const Factors& x) {
  const std::size_t n = x[0].size;
  const T *const a = static_cast<const T*>(x[0].data), *const b = static_cast<const T*>(x[1].data),
                 *const c = static_cast<const T*>(x[2].data);
  for (std::vector<double>* words : {&high_, &low_, &third_}) words->resize(n);
  multiply(x[0], x[1], high_.data(), low_.data());
  bool exact = true;
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::abs(high_[i]);
    const bool fits = size >= 0x1p-900 && size <= std::numeric_limits<double>::max(),
               is_zero = size == 0 && (convert<double>(a[i]) == 0 || convert<double>(b[i]) == 0);
    exact = exact && (fits || is_zero);
    third_[i] = convert<double>(c[i]);
  }
  if (!exact) return add_one_by_one<T, 3>(x);
  add<fp64, 2>(sum, {fp64_values(high_), fp64_values(third_)});
  // The products of other formats fit into one word.
  if (std::is_same_v<T, fp64>) add<fp64, 2>(sum, {fp64_values(low_), fp64_values(third_)});
}

}  // namespace samesum::cpu
