/// The functions of the extensions of DuckDB and SQLite. Those of PostgreSQL are in samesum--0.1.sql.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sql/pairs.h"

namespace samesum_sql {

/// An SQL function: one of the results of a state.
struct Function {
  const char* name;
  samesum_aggregate_kind kind;
  samesum_aggregate_result result;
  std::uint64_t ddof;  ///< of variances and covariances
  bool is_root;        ///< the function is the square root of the result
};

constexpr Function functions[] = {
    {"exact_sum", SAMESUM_AGGREGATE_SUM, SAMESUM_RESULT_SUM, 0, false},
    {"exact_avg", SAMESUM_AGGREGATE_SUM, SAMESUM_RESULT_MEAN, 0, false},
    {"exact_var_samp", SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 1, false},
    {"exact_var_pop", SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 0, false},
    {"exact_stddev_samp", SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 1, true},
    {"exact_stddev_pop", SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 0, true},
    {"exact_dot", SAMESUM_AGGREGATE_PRODUCTS, SAMESUM_RESULT_SUM, 0, false},
    {"exact_covar_samp", SAMESUM_AGGREGATE_COMOMENTS, SAMESUM_RESULT_COVARIANCE, 1, false},
    {"exact_covar_pop", SAMESUM_AGGREGATE_COMOMENTS, SAMESUM_RESULT_COVARIANCE, 0, false},
    {"exact_corr", SAMESUM_AGGREGATE_COMOMENTS, SAMESUM_RESULT_CORRELATION, 0, false},
};

constexpr bool has_pairs(samesum_aggregate_kind kind) {
  return kind == SAMESUM_AGGREGATE_PRODUCTS || kind == SAMESUM_AGGREGATE_COMOMENTS;
}
/// Whether the function is a sum of elements, which is an integer if all of them are.
constexpr bool is_sum(const Function& function) {
  return function.kind == SAMESUM_AGGREGATE_SUM && function.result == SAMESUM_RESULT_SUM;
}

/// Calls use(kind) with the kind as a constant of the compiler.
template <class Use> auto with_kind(samesum_aggregate_kind kind, const Use& use) {
  switch (kind) {
    case SAMESUM_AGGREGATE_SUM:
      return use(std::integral_constant<samesum_aggregate_kind, SAMESUM_AGGREGATE_SUM>{});
    case SAMESUM_AGGREGATE_PRODUCTS:
      return use(std::integral_constant<samesum_aggregate_kind, SAMESUM_AGGREGATE_PRODUCTS>{});
    case SAMESUM_AGGREGATE_MOMENTS:
      return use(std::integral_constant<samesum_aggregate_kind, SAMESUM_AGGREGATE_MOMENTS>{});
    default:
      return use(std::integral_constant<samesum_aggregate_kind, SAMESUM_AGGREGATE_COMOMENTS>{});
  }
}

/// The reason of an error, behind the name of a function.
inline const char* reason_of(samesum_status status) {
  return status == SAMESUM_OUT_OF_MEMORY       ? ": out of memory"
         : status == SAMESUM_TOO_MANY_ELEMENTS ? ": a group has 2^62 rows or more"
                                               : ": error in the library";
}

}  // namespace samesum_sql
