/// C interface for vectors that are spread over the ranks of an MPI communicator, available if the library
/// was built with MPI: sums and other reductions with the bits of the undivided vector, for any number of
/// ranks.
///
/// Every call is collective: all ranks of `comm`, an intracommunicator, make it, with the same method,
/// options and number of results. A call that fails on one rank fails on all of them, with the same message,
/// which names the rank: SAMESUM_MPI_ERROR. Only a rank that has no memory for the message returns
/// SAMESUM_OUT_OF_MEMORY. MPI's own errors go to the error handler of `comm`. mpi.hpp has more of the
/// contract, and the functions of C++.
///
/// Link with samesum_mpi and samesum. The functions whose names end with _f are for Fortran, which has
/// handles of communicators of its own: samesum_mpi.f90 declares them.
#ifndef SAMESUM_MPI_H
#define SAMESUM_MPI_H

#include <mpi.h>

#include "samesum/samesum.h"

/// Runs a call on arrays whose reduced axis is cut into blocks, one per rank, in rank order, and writes the
/// results on all ranks, as samesum::mpi::run does.
///
/// The number of elements may differ between ranks, and so may `where` and `skip_nan`: a result has the bits
/// of the undivided elements that take part. All results travel in one exchange.
SAMESUM_API samesum_status samesum_mpi_run(const samesum_call* call, MPI_Comm comm, char* message,
                                           size_t message_bytes);

/// Sums `fields` fields, of which this rank has n elements each, one field after another: element k of field
/// i is x[i·n + k]. The sums are exact, and rounded once: the same bits for any number of ranks and any
/// distribution of the elements. Other methods and formats: samesum_mpi_run, with samesum_rows(fields, n, n).
/// @param n may differ between ranks, and may be 0.
/// @param fields the same on all ranks. One exchange serves all fields.
/// @param result receives the sums of all fields, on all ranks.
/// @param where n flags, for all fields alike: an element whose flag is 0 takes no part, such as a point on
///   land, or one in a halo. NULL if all elements take part; that may differ between ranks.
SAMESUM_API samesum_status samesum_mpi_sum(const double* x, size_t n, size_t fields, MPI_Comm comm,
                                           double* result, const uint8_t* where, char* message,
                                           size_t message_bytes);
/// Sums the products of the elements of x and y, for each of `fields` fields, exactly, as samesum_mpi_sum.
SAMESUM_API samesum_status samesum_mpi_dot(const double* x, const double* y, size_t n, size_t fields,
                                           MPI_Comm comm, double* result, const uint8_t* where, char* message,
                                           size_t message_bytes);

/// samesum_mpi_run with a handle of Fortran.
SAMESUM_API samesum_status samesum_mpi_run_f(const samesum_call* call, MPI_Fint comm, char* message,
                                             size_t message_bytes);
/// samesum_mpi_sum with a handle of Fortran.
/// @param where may be NULL.
SAMESUM_API samesum_status samesum_mpi_sum_f(const double* x, size_t n, size_t fields, MPI_Fint comm,
                                             double* result, const uint8_t* where, char* message,
                                             size_t message_bytes);
/// samesum_mpi_dot with a handle of Fortran.
/// @param where may be NULL.
SAMESUM_API samesum_status samesum_mpi_dot_f(const double* x, const double* y, size_t n, size_t fields,
                                             MPI_Fint comm, double* result, const uint8_t* where,
                                             char* message, size_t message_bytes);

#endif
