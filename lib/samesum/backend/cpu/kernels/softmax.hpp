/// Loops over rows of a softmax.
#pragma once

#include <cstddef>

#include "samesum/operation/online_softmax.hpp"

namespace samesum::cpu {

/// Loops over rows of softmax of elements of one format that are computed in format C (softmax_loops.hpp);
/// null if there are none.
template <class C> struct SoftmaxLoops {
  C (*largest)(const void* x, std::size_t n);
  void (*exponentials)(const void* x, std::size_t n, C largest, C* e);  ///< e^(x - largest)
  /// Exponentials of at most one leaf; returns their plain sum in the order `tree`.
  C (*sum_exponentials)(const void* x, std::size_t n, C largest, C* e);
  void (*scale)(const C* e, std::size_t n, C factor, void* y);  ///< e·factor
  void (*scaled_exponentials)(const void* x, std::size_t n, C largest, C factor, void* y);
  void (*shift)(const void* x, std::size_t n, C largest, C log_sum, void* y);
  /// Writes the states of the leaves of n >= 1 elements in the order `tree`.
  void (*online_leaves)(const void* x, std::size_t n, OnlineSoftmax<Scalar<C>>* states);
};

}  // namespace samesum::cpu
