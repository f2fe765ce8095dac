/// Other people's reductions on a CPU, of fp32 and fp64, with one thread: as sums.hpp has it for sums.
#pragma once

#include <cstddef>

namespace samesum::harness::peer {

template <class F> F eigen_dot(const F* x, const F* y, std::size_t n);
template <class F> F eigen_norm(const F* x, std::size_t n);
template <class F> void eigen_row_sums(const F* x, std::size_t rows, std::size_t columns, F* sums);

/// Of each row the largest, then the exponentials and their sum, then all over it: every pass a loop that the
/// compiler vectorises, with -ffast-math.
void softmax_in_three_passes(const float* x, std::size_t rows, std::size_t columns, float* out);

}  // namespace samesum::harness::peer
