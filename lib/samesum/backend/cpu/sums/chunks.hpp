/// The loops with which aggregate states add arrays in extensions of databases, which lack the other kernels.
#pragma once

#include "samesum/backend/cpu/kernels/exact.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"

namespace samesum::cpu {

/// Exact sums of a row of floats, or of doubles.
struct ChunkLoops {
  struct OfFormat {
    SumExactly elements, products;
  } fp32, fp64;
};

template <InstructionSet set> const ChunkLoops& chunk_loops_of();

}  // namespace samesum::cpu
