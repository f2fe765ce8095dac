#include <cstdio>
#include <samesum/mpi.hpp>
#include <span>
#include <vector>

int main() {
  MPI_Init(nullptr, nullptr);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  // The vector 1, 1/2, 1/3, … is cut into a block per rank, of any length.
  std::vector<float> block;
  for (int i = 100000 * rank / ranks; i < 100000 * (rank + 1) / ranks; ++i)
    block.push_back(1.0f / static_cast<float>(i + 1));
  const samesum::Method& kahan = samesum::find("tree/kahan/fp32");
  const samesum::Number sum = samesum::mpi::reduce(kahan, block, MPI_COMM_WORLD);

  // Element by element: each rank contributes a vector, such as a gradient.
  std::vector<float> gradient{rank == 0 ? 1e8f : rank + 1 == ranks ? -1e8f : 1.0f, 0.1f}, total(2);
  samesum::mpi::all_reduce(samesum::find("exact/fp32"), gradient, std::span{total}, MPI_COMM_WORLD);

  // Exact states go through MPI's own collectives.
  samesum::Exact exact = samesum::accumulate(block);
  MPI_Allreduce(MPI_IN_PLACE, &exact, 1, samesum::mpi::exact_type(), samesum::mpi::exact_sum(),
                MPI_COMM_WORLD);

  if (rank == 0) {
    std::printf("one vector  %.9g\n", sum.to_double());
    std::printf("elements    %g %g, of %d ranks\n", total[0], total[1], ranks);
    std::printf("exact       %.17g\n", exact.result<double>());
  }
  MPI_Finalize();
}
