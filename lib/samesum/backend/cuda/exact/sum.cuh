/// The digits of exact sums of elements and products.
#pragma once

#include "samesum/backend/cuda/exact/bins.cuh"
#include "samesum/operation/exact_terms.hpp"

namespace samesum::gpu {

/// Digits that are wide enough for products of doubles.
using TermDigits = DigitsFrom<ExactTerms::lowest_exponent, ExactTerms::digit_count>;

}  // namespace samesum::gpu
