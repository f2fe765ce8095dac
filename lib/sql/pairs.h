/// Rows of an aggregate state: of floating-point numbers, of integers, or of one of each. In C, for the
/// extension of PostgreSQL, and in C++ for the others.
#pragma once

#include <stdint.h>

#include "samesum/samesum.h"

/// Adds a row to a state, or subtracts it if sign < 0.
static inline samesum_status samesum_take_reals(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                int sign, double x, double y,
                                                const samesum_allocator* memory) {
  return (sign > 0 ? samesum_aggregate_add_fp64 : samesum_aggregate_subtract_fp64)(kind, state, x, y, memory);
}
static inline samesum_status samesum_take_integers(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                   int sign, int64_t x, int64_t y,
                                                   const samesum_allocator* memory) {
  return (sign > 0 ? samesum_aggregate_add_int64 : samesum_aggregate_subtract_int64)(kind, state, x, y,
                                                                                     memory);
}

/// Takes a pair of an integer that may be no double, and a floating-point number. All sums of the states are
/// linear in x, y, x², xy and y², so the pair is written as others that have one type, without an error.
/// @param is_swapped whether the floating-point number is the first of the pair.
static inline samesum_status samesum_take_mixed(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                int sign, int is_swapped, int64_t integer, double real,
                                                const samesum_allocator* memory) {
  const int64_t most = (int64_t)1 << 53;
  if ((-most <= integer && integer <= most) || integer % 2048 == 0) {
    const double x = (double)integer;
    return samesum_take_reals(kind, state, sign, is_swapped ? real : x, is_swapped ? x : real, memory);
  }
  // Two doubles of the integer's sign, so that a product with an infinity or a zero has one sign. What they
  // add but for the products is then replaced by the squares and sums of the pair.
  const double low = (double)(integer % 2048), high = (double)(integer - integer % 2048);
  const struct {
    int sign;
    double integer, real;
  } part[] = {{1, high, real}, {1, low, real}, {-1, high, 0}, {-1, low, 0}, {-1, 0, real}, {1, 0, 0}};
  const int has_products_alone = kind == SAMESUM_AGGREGATE_PRODUCTS, parts = has_products_alone ? 2 : 6;
  samesum_status status = SAMESUM_OK;
  if (!has_products_alone)
    status =
        samesum_take_integers(kind, state, sign, is_swapped ? 0 : integer, is_swapped ? integer : 0, memory);
  for (int k = 0; k < parts && status == SAMESUM_OK; ++k)
    status = samesum_take_reals(kind, state, sign * part[k].sign, is_swapped ? part[k].real : part[k].integer,
                                is_swapped ? part[k].integer : part[k].real, memory);
  return status;
}
