/// The loops over arrays in extensions of databases, compiled once per instruction set. As in kernels.cpp, no
/// inline function may remain in the object file.
#include "samesum/backend/cpu/exact/row_loops.hpp"
#include "samesum/backend/cpu/sums/chunks.hpp"

namespace samesum::cpu {
namespace {

template <class T>
constexpr ChunkLoops::OfFormat loops_of{ExactRowLoops<T, ExactlySummed::elements>::sum,
                                        ExactRowLoops<T, ExactlySummed::products>::sum};

}  // namespace

template <> const ChunkLoops& chunk_loops_of<InstructionSet::SAMESUM_INSTRUCTION_SET>() {
  static constexpr ChunkLoops all{loops_of<fp32>, loops_of<fp64>};
  return all;
}

}  // namespace samesum::cpu
