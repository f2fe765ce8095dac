// Sums over the ranks of MPI from C: two fields in one exchange, without the points on land, and their dot
// product. The numbers are the same for any number of ranks.
#include <samesum/samesum_mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { cells = 1000, fields = 2 };

/// Ends all ranks with a message if a call failed.
static void check(samesum_status status, const char* message) {
  if (status == SAMESUM_OK) return;
  fprintf(stderr, "%s: %s\n", samesum_status_name(status), message);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(void) {
  MPI_Init(NULL, NULL);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char message[200];

  // This rank has the cells from `begin` on, the last ranks more than the first ones.
  const int begin = cells * rank * rank / (ranks * ranks),
            end = cells * (rank + 1) * (rank + 1) / (ranks * ranks);
  const size_t n = (size_t)(end - begin);
  double* x = malloc(fields * n * sizeof *x);
  uint8_t* is_sea = malloc(n);
  for (int i = begin; i < end; ++i) {
    double *temperature = x + (i - begin), *area = temperature + n;
    *temperature = (i % 2 ? -1e8 : 1e8) / (i + 1);
    *area = 0.1 + i % 3;
    is_sea[i - begin] = i % 7 != 0;
  }

  double sums[fields], product, sum;
  check(samesum_mpi_sum(x, n, fields, MPI_COMM_WORLD, sums, is_sea, message, sizeof message), message);
  check(samesum_mpi_dot(x, x + n, n, 1, MPI_COMM_WORLD, &product, is_sea, message, sizeof message), message);

  // Any method with partials, by a call as for samesum_run.
  samesum_call call = samesum_call_default();
  check(samesum_find("tree/kahan", SAMESUM_FP64, &call.method, message, sizeof message), message);
  call.x.data = x;
  call.x.size = n;
  call.x.format = call.out.format = SAMESUM_FP64;
  call.out.data = &sum;
  call.out.size = 1;
  check(samesum_mpi_run(&call, MPI_COMM_WORLD, message, sizeof message), message);

  if (rank == 0) {
    printf("temperature %.17g\narea %.17g\n", sums[0], sums[1]);
    printf("temperature times area %.17g\ntree/kahan, with land %.17g\n", product, sum);
  }
  free(x);
  free(is_sea);
  MPI_Finalize();
}
