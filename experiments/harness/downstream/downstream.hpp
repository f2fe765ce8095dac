/// Computations that use sums: a solver, training of a network, statistics. Only the sums can vary:
/// everything else runs in one thread, without contraction, without vectors of the machine's width, and uses
/// only square roots of libm.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/digest.hpp"
#include "harness/input.hpp"
#include "samesum/call/call.hpp"

namespace samesum::harness {

/// A sum that a computation uses.
using Summation = std::function<Number(Values)>;

/// Whether the solver and the training were compiled, which need Eigen.
bool has_linear_algebra();

// --- a linear system ---------------------------------------------------------------------------------

/// A symmetric, positive definite matrix with known eigenvalues.
struct System {
  std::string name;
  int n;
  double condition;                       ///< largest eigenvalue / smallest eigenvalue
  std::vector<std::array<int, 2>> below;  ///< places of the elements below the diagonal, all of them -1
  std::vector<double> diagonal;
};

/// Poisson's equation on a rectangle with the five-point stencil. More points make it worse conditioned.
System poisson(int width, int height);

/// A diagonal matrix with `levels` distinct eigenvalues 1, 1/2, 1/4 …, each equally often. Without rounding,
/// conjugate gradients end after `levels` iterations; Strakos 1991 studied how much roundings delay this.
System graded(int n, int levels);

inline constexpr int most_iterations = 4000;

struct Solution {
  int iterations;      ///< until the residual of the recurrence was small enough, at most most_iterations
  bool converged;      ///< whether the residual of the recurrence was small enough
  double residual;     ///< |b - Ax| / |b| for the solution x, with exact sums
  std::uint64_t bits;  ///< digest of x
};

/// Conjugate gradients (Hestenes and Stiefel 1952), starting from zero, in the format of the right side, fp32
/// or fp64. The products of a dot product are formed first, each rounded once, and then summed by `sum`.
using Solver = std::function<Solution(const Summation& sum)>;
Solver conjugate_gradients(const System& system, const Column& right_side, double tolerance);

// --- a network -----------------------------------------------------------------------------------------

/// Parameters of training a network that predicts an element of a series from the elements before it.
struct Lesson {
  int inputs = 8, hidden = 8, steps = 20;
  float rate = 0.5F;
  std::uint64_t seed = 1;  ///< of the initial weights

  int weights() const { return hidden * (inputs + 2) + 1; }
};

struct Trained {
  std::vector<float> weights;
  double loss;  ///< mean squared error over the series, with exact sums
};

/// Trains a network with one hidden layer of softsign units in fp32, by gradient descent on the whole series.
/// Each component of the gradient is a sum by `sum` with one term per sample.
Trained train(std::span<const float> series, const Lesson& lesson, const Summation& sum);

// --- a recording ---------------------------------------------------------------------------------------

/// Computes the Moon's distance in 1000 km at equal intervals, `per_row` values per row of Chebyshev
/// coefficients (of x, y and z in km, 13 each), from a file written by experiments/datasets.py. Throws
/// InputError for another file.
std::vector<double> moon_distances(const std::string& path, int per_row);

/// Mean and sample variance, computed with sums in one format.
struct Statistics {
  double mean, naive_variance, two_pass_variance;
};

/// Computes the statistics of x. The squares of the elements, and of their deviations from the computed mean,
/// are rounded to the format of x and summed; all other operations are in double.
Statistics moments(const Column& x, const Summation& sum);

/// The exact statistics of x, rounded once.
Statistics true_moments(const Column& x);

}  // namespace samesum::harness
