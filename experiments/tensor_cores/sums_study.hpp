/// Error, bits and speed of sums by matrix units, as rows of a study.
#pragma once

#include <cstddef>

#include "harness/study.hpp"

namespace samesum::tensor_cores {

/// Number of rows that `study_sums` measures, with --full or without.
std::size_t rows_of_sums(bool full);

/// Measures vectors, rows and columns of fp16 and bf16, and adds rows of the kind unit_sum. Fails the study
/// if a result has other bits than the definition or in another launch, or if an error exceeds its bound.
/// Needs a GPU of compute capability 9.0.
void study_sums(harness::Study& study);

}  // namespace samesum::tensor_cores
