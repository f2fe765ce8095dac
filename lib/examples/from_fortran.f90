! The C interface from Fortran: a sum with its bound, the columns of a matrix, a state that is split and merged,
! and an error. Compiled with samesum.f90, which is installed beside samesum.h and needs Fortran 2018.
program from_fortran
  use samesum
  implicit none
  character(len=200) :: message
  real(c_double), target :: x(6) = [1d16, 1d0, 1d0, -1d16, 0.1d0, 0.2d0]
  real(c_double), target :: value, sums(2)
  real(c_double) :: bound
  integer(c_int64_t), allocatable, target :: left(:), right(:)
  integer(c_size_t) :: bytes
  integer(c_int32_t) :: status
  type(c_ptr) :: method
  type(samesum_call) :: call_of_columns
  type(samesum_state_kind) :: kind

  ! A value and a rigorous bound on its error.
  call check(samesum_find('tree/kahan', samesum_fp64, method, message))
  call check(samesum_estimate(method, elements(x), value=c_loc(value), bound=bound, message=message))
  print '(a,1x,f0.15,a,es7.0)', samesum_text(samesum_method_name(method)), value, ', off by at most', bound

  ! The columns of a matrix of shape (3, 2), whose elements are contiguous in Fortran.
  call check(samesum_find('exact', samesum_fp64, call_of_columns%method, message))
  call_of_columns%x = elements(x)
  call_of_columns%layout = samesum_rows(2_c_size_t, 3_c_size_t, 3_c_size_t)
  call_of_columns%out = samesum_results(c_loc(sums), 2, 0, samesum_fp64)
  call check(samesum_run(call_of_columns, message))
  print '(a,2(1x,f0.1))', 'columns', sums

  ! The state of an aggregate, in memory of the caller: two images add, then their states merge.
  call check(samesum_state_kind_find('exact/fp64', samesum_none, kind=kind, message=message))
  bytes = samesum_state_bytes(kind)
  allocate (left(bytes / 8), right(bytes / 8))
  call check(samesum_state_init(kind, c_loc(left), bytes, message=message))
  call check(samesum_state_init(kind, c_loc(right), bytes, message=message))
  call check(samesum_state_add(c_loc(left), elements(x(:2)), message))
  call check(samesum_state_add(c_loc(right), elements(x(3:)), message))
  call check(samesum_state_merge(c_loc(right), c_loc(left), message))
  call check(samesum_state_finish(c_loc(right), samesum_fp64, c_loc(value), message))
  print '(a,1x,f0.15)', 'merged', value

  ! An error is a code and a message, which may be left out.
  status = samesum_find('tree/khan', samesum_fp64, method, message)
  print '(a)', samesum_text(samesum_status_name(status)) // ': ' // trim(message)
  print '(a)', samesum_text(samesum_status_name(samesum_find('tree/khan', samesum_fp64, method)))

contains

  !> Views an array, which must be contiguous.
  function elements(array) result(values)
    real(c_double), intent(in), target, contiguous :: array(:)
    type(samesum_values) :: values
    values = samesum_values(c_loc(array), size(array, kind=c_size_t), samesum_fp64)
  end function

  !> Ends the program with a message if a call failed.
  subroutine check(status)
    integer(c_int32_t), intent(in) :: status
    if (status == samesum_ok) return
    print '(a)', samesum_text(samesum_status_name(status)) // ': ' // trim(message)
    error stop
  end subroutine

end program
