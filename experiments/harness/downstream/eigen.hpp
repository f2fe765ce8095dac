/// Eigen, for what is computed with sums, under a name of its own: the peers compile Eigen for this very
/// processor, and of an inline function that both had the linker would keep one.
#pragma once

#define Eigen samesum_eigen
#define EIGEN_DONT_VECTORIZE  // nor fused multiply-add: the same bits on every machine
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>
#include <Eigen/Sparse>

#include "harness/downstream/downstream.hpp"
