/// The reductions of samesum.hpp that are named after their operation.
#pragma once

#include "samesum/samesum.hpp"

namespace samesum::testing_support {

/// Calls visit(operation, result) for each of them, on x.
template <class T, class Visit>
void for_each_typed_reduction(const std::vector<T>& x, const Options& options, Visit visit) {
  visit("sum", sum(x, options));
  visit("mean", mean(x, options));
  visit("sum_of_magnitudes", sum_of_magnitudes(x, options));
  visit("squared_norm", squared_norm(x, options));
  visit("dot", dot(x, x, options));
  visit("norm", norm(x, options));
  visit("prod", prod(x, options));
  visit("logsumexp", logsumexp(x, options));
  visit("moments", moments(x, options));
  visit("min", min(x, options));
  visit("max", max(x, options));
  visit("argmin", argmin(x, options));
  visit("argmax", argmax(x, options));
}

}  // namespace samesum::testing_support
