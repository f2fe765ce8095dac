/// What each operation takes and returns, in one table that needs none of their code: the compiler checks
/// names of methods against it.
#pragma once

#include <array>

#include "samesum/base/name.hpp"

namespace samesum {

/// What an operation takes and returns.
struct OperationFacts {
  std::string_view name;
  std::string_view summary;             ///< what the operation computes
  std::string_view of = {};             ///< the operation that a scan, a rolling one or one by key repeats
  bool has_accumulator = false;         ///< whether it sums terms, with any accumulator
  bool has_order = true;                ///< whether the order of its additions matters
  bool can_be_exact = false;            ///< whether it has a method `exact`
  std::string_view only_formats = {};   ///< the formats of its methods; empty if it has any
  int inputs = 1;                       ///< number of inputs
  int results = 1;                      ///< numbers per result
  bool returns_index = false;           ///< whether results are indices or counts, std::int64_t
  bool has_result_per_element = false;  ///< whether each element has a result
  bool keeps_format = false;            ///< whether results have the format of the elements
  bool takes_keys = false;              ///< whether elements are reduced by key
  bool can_combine = false;             ///< whether Options::combine may be set
  bool takes_window = false;            ///< whether result i is that of a window of elements around i

  /// Whether there are methods in a format.
  constexpr bool has_format(std::string_view format) const {
    return only_formats.empty() || only_formats.find(format) != only_formats.npos;
  }
  /// Whether result i is that of the first i + 1 elements.
  constexpr bool is_scan() const { return has_result_per_element && !keeps_format && !takes_window; }
  /// Whether a vector gives one result, which may be several numbers.
  constexpr bool reduces() const { return !has_result_per_element && !takes_keys; }
};

namespace detail {
constexpr OperationFacts sum_of_terms(std::string_view name, std::string_view summary, int inputs = 1) {
  return {.name = name, .summary = summary, .has_accumulator = true, .can_be_exact = true, .inputs = inputs};
}
constexpr OperationFacts extremum(std::string_view name, std::string_view summary, bool is_index) {
  return {.name = name, .summary = summary, .has_order = false, .returns_index = is_index};
}
constexpr OperationFacts scan_of(OperationFacts of, std::string_view name, std::string_view summary) {
  of.of = of.name, of.name = name, of.summary = summary, of.has_result_per_element = true;
  return of;
}
constexpr OperationFacts rolling(OperationFacts of, std::string_view name, std::string_view summary) {
  of = scan_of(of, name, summary);
  of.results = 1, of.takes_window = true;
  return of;
}
constexpr OperationFacts by_key(OperationFacts of, std::string_view name, std::string_view summary) {
  of.of = of.name, of.name = name, of.summary = summary, of.takes_keys = of.can_combine = true;
  return of;
}
constexpr OperationFacts softmax(std::string_view name, std::string_view summary) {
  return {.name = name, .summary = summary, .has_result_per_element = true, .keeps_format = true};
}

inline constexpr OperationFacts sum = sum_of_terms("sum", "sum of the elements"),
                                mean = sum_of_terms("mean", "mean of the elements"),
                                prod{.name = "prod", .summary = "product of the elements"},
                                logsumexp{.name = "logsumexp",
                                          .summary = "logarithm of the sum of exponentials",
                                          .only_formats = "fp32 fp64"},
                                moments{.name = "moments",
                                        .summary = "mean and variance of the elements",
                                        .can_be_exact = true,
                                        .results = 2},
                                min = extremum("min", "smallest element", false),
                                max = extremum("max", "largest element", false);

/// scatter_mean cannot combine: the mean in `out` does not say of how many elements it is.
constexpr OperationFacts scatter_mean() {
  OperationFacts facts = by_key(mean, "scatter_mean", "mean of the elements of each key");
  facts.can_combine = false;
  return facts;
}
}  // namespace detail

/// The facts of all operations.
inline constexpr std::array operation_facts{
    detail::sum,
    detail::mean,
    detail::sum_of_terms("sum_of_magnitudes", "sum of the absolute values of the elements"),
    detail::sum_of_terms("squared_norm", "sum of the squares of the elements"),
    detail::sum_of_terms("dot", "dot product of two vectors", 2),
    OperationFacts{.name = "norm", .summary = "Euclidean norm of the elements"},
    detail::prod,
    detail::logsumexp,
    detail::moments,
    detail::min,
    detail::max,
    detail::extremum("argmin", "index of the first smallest element", true),
    detail::extremum("argmax", "index of the first largest element", true),
    detail::scan_of(detail::sum, "cumsum", "sums of the first elements"),
    detail::scan_of(detail::prod, "cumprod", "products of the first elements"),
    detail::scan_of(detail::max, "cummax", "largest of the first elements"),
    detail::scan_of(detail::min, "cummin", "smallest of the first elements"),
    detail::scan_of(detail::logsumexp, "cumlogsumexp", "log of sums of exponentials of the first elements"),
    detail::rolling(detail::sum, "rolling_sum", "sums of the elements of each window"),
    detail::rolling(detail::mean, "rolling_mean", "means of the elements of each window"),
    detail::rolling(detail::moments, "rolling_var", "variances of the elements of each window"),
    detail::rolling(detail::min, "rolling_min", "smallest elements of each window"),
    detail::rolling(detail::max, "rolling_max", "largest elements of each window"),
    detail::by_key(detail::sum, "scatter_add", "sum of the elements of each key"),
    detail::scatter_mean(),
    detail::by_key(detail::min, "scatter_min", "smallest element of each key"),
    detail::by_key(detail::max, "scatter_max", "largest element of each key"),
    OperationFacts{.name = "scatter_count",
                   .summary = "number of elements of each key",
                   .has_order = false,
                   .only_formats = "fp64",
                   .inputs = 0,
                   .returns_index = true,
                   .takes_keys = true,
                   .can_combine = true},
    detail::softmax("softmax", "exponentials of each row, divided by their sum"),
    detail::softmax("log_softmax", "logarithms of the softmax of each row"),
};

/// Returns the place of an operation in the table; its size if there is no such operation.
constexpr std::size_t operation_index(std::string_view name) {
  std::size_t i = 0;
  while (i < operation_facts.size() && operation_facts[i].name != name) ++i;
  return i;
}

/// Whether an operation has a scan.
constexpr bool has_scan(std::string_view name) {
  bool found = false;
  for (const OperationFacts& f : operation_facts) found = found || (f.is_scan() && f.of == name);
  return found;
}

/// The facts of an operation as constants of its type, which derives from this one.
template <Name operation> struct FactsOf {
  static constexpr OperationFacts facts = operation_facts.at(operation_index(operation.view()));
  static constexpr std::string_view name = facts.name;
  static constexpr int inputs = facts.inputs;
  static constexpr bool has_accumulator = facts.has_accumulator, has_order = facts.has_order,
                        can_be_exact = facts.can_be_exact;
};

}  // namespace samesum
