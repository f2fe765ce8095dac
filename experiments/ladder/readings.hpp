/// Reference implementations of the orders of the ladder's sums, and their numbers of additions on the
/// longest path.
#pragma once

#include <span>

#include "ladder/kernel.hpp"

namespace samesum::ladder {

float read_in_turn(std::span<const float> x, const harness::Truth&);
float read_by_doubling(std::span<const float> x, const harness::Truth&);  ///< 0+1, 2+3, … then 0+2, 4+6, …
float read_by_halves(std::span<const float> x,
                     const harness::Truth&);  ///< at most 2048: i + (i + 1024), then i + 512 …
float read_by_tree(std::span<const float> x, const harness::Truth&);  ///< the library's tree/plain
float read_exactly(std::span<const float> x, const harness::Truth& truth);

double in_turn(std::size_t n);
double levels(std::size_t n);            ///< of a binary tree with n leaves
double levels_of_halves(std::size_t n);  ///< of the tree with 2048 leaves, for any n
double height_of_tree(std::size_t n);

}  // namespace samesum::ladder
