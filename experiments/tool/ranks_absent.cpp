/// Stands in for ranks_mpi.cpp if the tool is built without MPI.
#include "tool/ranks.hpp"

namespace samesum::harness {

std::unique_ptr<Ranks> start_ranks() { return nullptr; }

}  // namespace samesum::harness
