/// C interface to reductions over ranks.
#include "samesum/communicator/mpi/ranks.hpp"
#include "samesum/interface/c_support.hpp"
#include "samesum/samesum_mpi.h"

namespace samesum::c {
namespace {

/// Runs the call that make() returns. What it throws is an error of this rank, which all ranks report.
template <class Make>
samesum_status run_together(MPI_Comm comm, char* message, std::size_t bytes, const Make& make) noexcept {
  try {
    mpi::run(std::ref(make), comm);  // a copy might not fit into memory, which only this rank would know
  } catch (const mpi::Error& error) {
    write_message(error.what(), message, bytes);
    return SAMESUM_MPI_ERROR;
  } catch (...) {
    return status_of_exception(message, bytes);
  }
  write_message({}, message, bytes);
  return SAMESUM_OK;
}

/// Fields of doubles, one after another, and one flag for each element of a field.
struct Fields {
  const double *x, *y;
  std::size_t n, count;
  const std::uint8_t* where;
};

samesum_status reduce(const char* method, const Fields& f, MPI_Comm comm, double* result, char* message,
                      std::size_t message_bytes) noexcept {
  std::vector<std::uint8_t> flags;
  return run_together(comm, message, message_bytes, [&]() -> Call {
    if (f.count != 0 && f.n > SIZE_MAX / sizeof(double) / f.count)
      refuse("n is " + std::to_string(f.n) + " and fields " + std::to_string(f.count) +
             ", which no memory has room for; pass the numbers of elements and of fields");
    if (f.count != 0) given(result, "result");
    const std::size_t size = f.n * f.count;
    const auto values = [&](const double* all) { return Values{format_info<double>(), all, size}; };
    if (f.where != nullptr) {
      flags.reserve(size);
      for (std::size_t i = 0; i < f.count; ++i) flags.insert(flags.end(), f.where, f.where + f.n);
    }
    const Method& m = find(method);
    return {.method = &m,
            .x = values(f.x),
            .y = m.inputs == 2 ? values(f.y) : Values{},
            .layout = Layout::rows(f.count, f.n),
            .out = {&format_info<double>(), result, f.count},
            .options = {.where = f.where != nullptr ? Mask{flags} : Mask{}}};
  });
}

}  // namespace

SAMESUM_API samesum_status samesum_mpi_run(const samesum_call* call, MPI_Comm comm, char* message,
                                           size_t message_bytes) {
  return run_together(comm, message, message_bytes, [&] { return call_of(call); });
}
SAMESUM_API samesum_status samesum_mpi_sum(const double* x, size_t n, size_t fields, MPI_Comm comm,
                                           double* result, const uint8_t* where, char* message,
                                           size_t message_bytes) {
  return reduce("sum/exact/fp64", {x, nullptr, n, fields, where}, comm, result, message, message_bytes);
}
SAMESUM_API samesum_status samesum_mpi_dot(const double* x, const double* y, size_t n, size_t fields,
                                           MPI_Comm comm, double* result, const uint8_t* where, char* message,
                                           size_t message_bytes) {
  return reduce("dot/exact/fp64", {x, y, n, fields, where}, comm, result, message, message_bytes);
}

SAMESUM_API samesum_status samesum_mpi_run_f(const samesum_call* call, MPI_Fint comm, char* message,
                                             size_t message_bytes) {
  return samesum_mpi_run(call, MPI_Comm_f2c(comm), message, message_bytes);
}
SAMESUM_API samesum_status samesum_mpi_sum_f(const double* x, size_t n, size_t fields, MPI_Fint comm,
                                             double* result, const uint8_t* where, char* message,
                                             size_t message_bytes) {
  return samesum_mpi_sum(x, n, fields, MPI_Comm_f2c(comm), result, where, message, message_bytes);
}
SAMESUM_API samesum_status samesum_mpi_dot_f(const double* x, const double* y, size_t n, size_t fields,
                                             MPI_Fint comm, double* result, const uint8_t* where,
                                             char* message, size_t message_bytes) {
  return samesum_mpi_dot(x, y, n, fields, MPI_Comm_f2c(comm), result, where, message, message_bytes);
}

}  // namespace samesum::c
