!> Fortran module for vectors that are spread over the ranks of an MPI communicator: functions as in samesum_mpi.h,
!> whose comments say what they do. Compile it with your program, after samesum.f90; it needs Fortran 2018.
!>
!> `comm` is a handle of the modules mpi and mpif.h; with mpi_f08 pass comm%mpi_val. Every call is collective, and a
!> call that fails on one rank fails on all of them. The message is optional, as in the module samesum.
!>
!> Field i is x(:, i), and its sum result(i). `where` says for each of the n elements, in all fields, whether it takes
!> part. n and fields are default integers: of more elements than those count, use samesum_mpi_run.
module samesum_mpi
  use samesum
  implicit none

  ! made from the header by lib/fortran.py {
  private :: c_mpi_run, c_mpi_sum, c_mpi_dot

  interface
    function c_mpi_run(call, comm, message, message_bytes) bind(c, name='samesum_mpi_run_f') result(answer)
      import :: c_char, c_int, c_int32_t, c_size_t, samesum_call
      type(samesum_call), intent(in) :: call
      integer(c_int), value :: comm
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_mpi_sum(x, n, fields, comm, result, where, message, message_bytes) &
      bind(c, name='samesum_mpi_sum_f') result(answer)
      import :: c_char, c_double, c_int, c_int32_t, c_int8_t, c_size_t
      real(c_double), intent(in) :: x(*)
      integer(c_size_t), value :: n, fields
      integer(c_int), value :: comm
      real(c_double), intent(inout) :: result(*)
      integer(c_int8_t), intent(in), optional :: where(*)
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_mpi_dot(x, y, n, fields, comm, result, where, message, message_bytes) &
      bind(c, name='samesum_mpi_dot_f') result(answer)
      import :: c_char, c_double, c_int, c_int32_t, c_int8_t, c_size_t
      real(c_double), intent(in) :: x(*), y(*)
      integer(c_size_t), value :: n, fields
      integer(c_int), value :: comm
      real(c_double), intent(inout) :: result(*)
      integer(c_int8_t), intent(in), optional :: where(*)
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function
  end interface
  ! }

contains

  ! made from the header by lib/fortran.py {
  function samesum_mpi_run(call, comm, message) result(answer)
    integer, intent(in) :: comm
    type(samesum_call), intent(in) :: call
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_mpi_run(call, int(comm, c_int), message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_mpi_sum(x, n, fields, comm, result, where, message) result(answer)
    integer, intent(in) :: n, fields, comm
    real(c_double), intent(in) :: x(n, *)
    real(c_double), intent(inout) :: result(*)
    logical, intent(in), optional :: where(n)
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    integer(c_int8_t), allocatable :: flags(:)
    if (present(where)) allocate (flags, source=merge(1_c_int8_t, 0_c_int8_t, where))
    answer = c_mpi_sum(x, int(n, c_size_t), int(fields, c_size_t), int(comm, c_int), result, flags, message, &
      samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_mpi_dot(x, y, n, fields, comm, result, where, message) result(answer)
    integer, intent(in) :: n, fields, comm
    real(c_double), intent(in) :: x(n, *), y(n, *)
    real(c_double), intent(inout) :: result(*)
    logical, intent(in), optional :: where(n)
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    integer(c_int8_t), allocatable :: flags(:)
    if (present(where)) allocate (flags, source=merge(1_c_int8_t, 0_c_int8_t, where))
    answer = c_mpi_dot(x, y, int(n, c_size_t), int(fields, c_size_t), int(comm, c_int), result, flags, message, &
      samesum_room(message))
    call samesum_pad(message)
  end function
  ! }

end module
