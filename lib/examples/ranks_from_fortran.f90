! Sums over the ranks of MPI from Fortran: two fields in one exchange, without the points on land, and their dot
! product. The numbers are the same for any number of ranks, and those of ranks_from_c.c. Compiled with samesum.f90
! and samesum_mpi.f90, which are installed beside samesum.h.
program ranks_from_fortran
  use mpi
  use samesum_mpi
  use samesum
  implicit none
  integer, parameter :: cells = 1000, fields = 2
  character(len=200) :: message
  real(c_double), allocatable, target :: x(:, :)
  real(c_double), target :: sums(fields), product(1), total(1)
  logical, allocatable :: is_sea(:)
  integer :: rank, ranks, begin, end, n, i, ierr
  type(samesum_call) :: call_of_all

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)

  ! This rank has the cells from `begin` on, the last ranks more than the first ones.
  begin = cells * rank**2 / ranks**2
  end = cells * (rank + 1)**2 / ranks**2
  n = end - begin
  allocate (x(n, fields), is_sea(n))
  do i = begin, end - 1
    x(i - begin + 1, 1) = merge(-1d8, 1d8, mod(i, 2) == 1) / (i + 1)
    x(i - begin + 1, 2) = 0.1d0 + mod(i, 3)
    is_sea(i - begin + 1) = mod(i, 7) /= 0
  end do

  call check(samesum_mpi_sum(x, n, fields, MPI_COMM_WORLD, sums, is_sea, message))
  call check(samesum_mpi_dot(x(:, 1), x(:, 2), n, 1, MPI_COMM_WORLD, product, is_sea, message))

  ! Any method with partials, by a call as for samesum_run.
  call check(samesum_find('tree/kahan', samesum_fp64, call_of_all%method, message))
  call_of_all%x = samesum_values(c_loc(x), n, samesum_fp64)
  call_of_all%out = samesum_results(c_loc(total), 1, 0, samesum_fp64)
  call check(samesum_mpi_run(call_of_all, MPI_COMM_WORLD, message))

  if (rank == 0) then
    print '(a,1x,es23.16)', 'temperature', sums(1), 'area', sums(2), 'temperature times area', product, &
      'tree/kahan, with land', total
  end if
  call MPI_Finalize(ierr)

contains

  !> Ends all ranks with a message if a call failed.
  subroutine check(status)
    integer(c_int32_t), intent(in) :: status
    if (status == samesum_ok) return
    print '(a)', samesum_text(samesum_status_name(status)) // ': ' // trim(message)
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

end program
