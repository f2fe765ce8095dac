/// Eigen for the computations that use sums, under another name. The peers compile Eigen for the processor of
/// the build machine; if both used the same name, the linker would keep only one copy of an inline function.
#pragma once

#define Eigen samesum_eigen
#define EIGEN_DONT_VECTORIZE  // also disables fused multiply-add: the same bits on every machine
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>
#include <Eigen/Sparse>

#include "harness/downstream/downstream.hpp"
