/// Names of methods of any operation.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/catalogue/sum_name.hpp"
#include "samesum/catalogue/support.hpp"
#include "samesum/operation/softmax.hpp"

namespace samesum {

/// The words that are operations, orders and accumulators in the name of a method.
struct CatalogueWords {
  static constexpr bool is_operation(std::string_view word) {
    return is_name_in<Operations>(word) || is_name_in<Softmaxes>(word);
  }
  static constexpr bool is_order(std::string_view word) { return is_name_in<Orders>(word); }
  static constexpr bool is_accumulator(std::string_view word) {
    return is_sum_accumulator(word) || word == OnlineDenominator::accumulator;
  }
};

/// Splits the name of any method into its fields.
constexpr ParsedName parse_name(std::string_view name) { return parse_name<CatalogueWords>(name); }

}  // namespace samesum
