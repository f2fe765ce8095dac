/// Properties that operations share. Each operation adds a name, a summary (what it computes, in words), a
/// reducer (`reducer<A, F>`) and, unless it has several results, an error bound.
#pragma once

#include "samesum/operation/reducer.hpp"
#include "samesum/operation/reduction_bound.hpp"

namespace samesum {

/// Properties of operations that sum terms, with every accumulator.
struct SumOfTerms {
  static constexpr bool has_accumulator = true, has_order = true, can_be_exact = true;
  static constexpr bool returns_index = false, has_result_per_element = false, keeps_format = false;
  static constexpr int inputs = 1, results = 1;
  template <class F> static constexpr bool in_format = true;
};
/// Properties of operations that have a state of their own.
struct OwnState {
  static constexpr bool has_accumulator = false, has_order = true, can_be_exact = false;
  static constexpr bool returns_index = false, has_result_per_element = false, keeps_format = false;
  static constexpr int inputs = 1, results = 1;
  template <class F> static constexpr bool in_format = true;
};

}  // namespace samesum
