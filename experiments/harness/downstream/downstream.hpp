/// What is computed with sums: solvers, training, statistics. Nothing in them but the sum can vary: one
/// thread, no contraction, no vectors of the machine's width, nothing of libm but square roots.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/digest.hpp"
#include "harness/input.hpp"
#include "samesum/catalogue/method.hpp"

namespace samesum::harness {

/// A sum as a part of something greater.
using Summation = std::function<Number(Values)>;

/// Whether the solver and the training were compiled: they need Eigen.
bool has_linear_algebra();

// --- a linear system ---------------------------------------------------------------------------------

/// A symmetric, positive definite matrix whose eigenvalues are known.
struct System {
  std::string name;
  int n;
  double condition;                       ///< greatest over least eigenvalue
  std::vector<std::array<int, 2>> below;  ///< places of the elements below the diagonal, each of which is -1
  std::vector<double> diagonal;
};

/// Poisson's equation on a rectangle, the five-point stencil: the worse conditioned the more points there
/// are.
System poisson(int width, int height);

/// Eigenvalues 1, 1/2, 1/4 …: so many different ones, each equally often. Without rounding, conjugate
/// gradients end after as many iterations; by how much roundings delay that is what Strakos 1991 studied.
System graded(int n, int levels);

inline constexpr int most_iterations = 4000;

struct Solution {
  int iterations;      ///< until the recurrence's residual was small enough, or too many
  bool converged;      ///< whether it was
  double residual;     ///< |b - Ax| / |b|, of the x that was found, in exact sums
  std::uint64_t bits;  ///< digest of x
};

/// Conjugate gradients (Hestenes and Stiefel 1952) from zero, in fp32 or fp64, as the right side is. The
/// products of a dot are formed first, each rounded once, and then summed by `sum`.
using Solver = std::function<Solution(const Summation& sum)>;
Solver conjugate_gradients(const System& system, const Column& right_side, double tolerance);

// --- a network -----------------------------------------------------------------------------------------

/// How a network learns to foretell an element of a series from those before it.
struct Lesson {
  int inputs = 8, hidden = 8, steps = 20;
  float rate = 0.5F;
  std::uint64_t seed = 1;  ///< of the weights that it begins with

  int weights() const { return hidden * (inputs + 2) + 1; }
};

struct Trained {
  std::vector<float> weights;
  double loss;  ///< mean squared error over the series, in exact sums
};

/// One hidden layer of softsign units, gradient descent on all of the series at once, in fp32: each component
/// of the gradient is the sum of as many terms as there are samples, by `sum`.
Trained train(std::span<const float> series, const Lesson& lesson, const Summation& sum);

// --- a recording ---------------------------------------------------------------------------------------

/// The Moon's distance in 1000 km at equal intervals, so many a row of Chebyshev coefficients (of x, y and z
/// in km, 13 each), from a file that experiments/datasets.py writes.
std::vector<double> moon_distances(const std::string& path, int per_row);

/// Mean and sample variance by sums of one format.
struct Statistics {
  double mean, naive_variance, two_pass_variance;
};

/// Elements of a format, their squares and the squares of their deviations from the computed mean are rounded
/// to that format, and summed; what remains is computed in double.
Statistics moments(const Column& x, const Summation& sum);

/// The same without any rounding but the last.
Statistics true_moments(const Column& x);

}  // namespace samesum::harness
