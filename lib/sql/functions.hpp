/// The functions that the extensions of all databases have, and pairs of an integer and a floating-point
/// number.
#pragma once

#include <cstdint>

#include "samesum/samesum.h"

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

/// Adds rows to a group, or subtracts them, until one fails.
struct Rows {
  samesum_aggregate_kind kind;
  samesum_aggregate* state;
  const samesum_allocator* memory;
  samesum_status status = SAMESUM_OK;

  void take(int sign, double x, double y) {
    if (status == SAMESUM_OK)
      status = (sign > 0 ? samesum_aggregate_add_fp64 : samesum_aggregate_subtract_fp64)(kind, state, x, y,
                                                                                         memory);
  }
  void take(int sign, std::int64_t x, std::int64_t y) {
    if (status == SAMESUM_OK)
      status = (sign > 0 ? samesum_aggregate_add_int64 : samesum_aggregate_subtract_int64)(kind, state, x, y,
                                                                                           memory);
  }
};

constexpr bool is_double(std::int64_t x) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  return (-most <= x && x <= most) || x % 2048 == 0;
}

/// Takes a pair of an integer that may be no double, and a floating-point number. All sums of the states are
/// linear in x, y, x², xy and y², so the pair is written as others that have one type, without an error.
/// @param is_swapped the floating-point number is the first of the pair.
inline void take_mixed(Rows& rows, int sign, std::int64_t integer, double real, bool is_swapped) {
  const auto take = [&](int of, auto x, auto y) {
    is_swapped ? rows.take(sign * of, y, x) : rows.take(sign * of, x, y);
  };
  // Two doubles of the integer's sign, so that a product with an infinity or a zero has one sign.
  const double low = static_cast<double>(integer % 2048);
  const double high = static_cast<double>(integer - integer % 2048);
  if (is_double(integer)) return take(1, static_cast<double>(integer), real);
  take(1, high, real);
  take(1, low, real);
  if (rows.kind == SAMESUM_AGGREGATE_PRODUCTS) return;
  // What the two added but for the products is replaced by the squares and sums of the pair.
  take(1, integer, std::int64_t{0});
  take(-1, high, 0.0);
  take(-1, low, 0.0);
  take(-1, 0.0, real);
  take(1, 0.0, 0.0);
}

}  // namespace samesum_sql
