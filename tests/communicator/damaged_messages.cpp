/// A library for LD_PRELOAD: a program that is linked with MPI sends its messages with one wrong bit.
#include <mpi.h>

#include <cstddef>
#include <vector>

extern "C" int MPI_Send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  const auto* const first = static_cast<const std::byte*>(from);
  std::vector<std::byte> message(first, first + static_cast<std::ptrdiff_t>(bytes) * count);
  if (!message.empty()) message[message.size() / 2] ^= std::byte{4};
  return PMPI_Send(message.data(), count, type, to, tag, comm);
}
