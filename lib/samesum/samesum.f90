!> Fortran module of the C interface: constants, structures and functions as in samesum.h, whose comments say
!> what they do. Compile it with your program: files of compiled modules fit only the compiler that wrote them.
!>
!> It needs Fortran 2018 (gfortran 9, ifx, flang): arguments that may be NULL in C are optional, which earlier
!> standards forbid in procedures of C.
!>
!> Pointers to data, and to options in the fields of a structure, are type(c_ptr), from c_loc. The last argument of a
!> function that can fail is an optional variable of type character for the message, which ends in blanks, and is
!> blank on success. Structures begin with the default of every field, their size included. Arrays of Fortran are
!> column-major: samesum_axis(outer, n, inner) has its last index first.
module samesum
  use, intrinsic :: iso_c_binding
  implicit none
  private :: c_strlen

  ! made from the header by lib/fortran.py {
  private :: c_find, c_run, c_estimate, c_bound, c_run_statistics, c_statistic_bound, c_workspace_size, c_prepare, &
    c_enqueue, c_state_kind_find, c_state_init, c_state_copy, c_state_add, c_state_merge, c_state_subtract, &
    c_state_unmerge, c_state_finish, c_state_finish_mean, c_state_serialise, c_state_deserialise, c_aggregate_copy, &
    c_aggregate_add, c_aggregate_subtract, c_aggregate_add_each, c_aggregate_merge, c_aggregate_unmerge, &
    c_aggregate_finish, c_aggregate_serialise, c_aggregate_deserialise, c_partial_create, c_partial_copy, &
    c_partial_add, c_partial_merge, c_partial_finish, c_partial_serialise, c_partial_deserialise

  integer(c_int), parameter :: samesum_abi = 0  ! SAMESUM_ABI_VERSION
  integer(c_int32_t), parameter :: samesum_ok = 0, samesum_invalid_argument = 1, samesum_out_of_memory = 2, &
    samesum_overflow = 3, samesum_too_many_elements = 4, samesum_unavailable = 5, samesum_gpu_error = 6, &
    samesum_internal_error = 7, samesum_mpi_error = 8
  integer(c_int32_t), parameter :: samesum_none = 0, samesum_fp16 = 1, samesum_bf16 = 2, samesum_fp32 = 3, &
    samesum_fp64 = 4, samesum_int64 = 5
  integer(c_int32_t), parameter :: samesum_no_keys = 0, samesum_keys_int32 = 1, samesum_keys_uint32 = 2, &
    samesum_keys_int64 = 3
  integer(c_int32_t), parameter :: samesum_all = 0, samesum_strided = 1, samesum_of_segments = 2
  integer(c_int32_t), parameter :: samesum_promise_none = 0, samesum_promise_run_to_run = 1, &
    samesum_promise_everywhere = 2, samesum_promise_order_free = 3
  integer(c_int32_t), parameter :: samesum_statistic_mean = 1, samesum_statistic_variance = 2, &
    samesum_statistic_covariance = 3, samesum_statistic_correlation = 4, samesum_statistic_linear_regression = 5, &
    samesum_statistic_covariance_matrix = 6, samesum_statistic_correlation_matrix = 7
  integer(c_int32_t), parameter :: samesum_frequencies = 0, samesum_reliabilities = 1
  integer(c_int32_t), parameter :: samesum_aggregate_sum = 1, samesum_aggregate_products = 2, &
    samesum_aggregate_moments = 3, samesum_aggregate_comoments = 4
  integer(c_int32_t), parameter :: samesum_result_sum = 1, samesum_result_mean = 2, samesum_result_variance = 3, &
    samesum_result_sum_of_y = 4, samesum_result_mean_of_y = 5, samesum_result_variance_of_y = 6, &
    samesum_result_covariance = 7, samesum_result_correlation = 8, samesum_result_slope = 9, &
    samesum_result_intercept = 10

  !> A view of contiguous elements, or no input at all.
  type, bind(c) :: samesum_values
    type(c_ptr) :: data = c_null_ptr
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: format = 0
  end type
  !> A view of keys, or no keys at all.
  type, bind(c) :: samesum_keys
    type(c_ptr) :: data = c_null_ptr
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: format = 0
  end type
  !> Where the elements of each result lie.
  type, bind(c) :: samesum_layout
    type(c_ptr) :: offsets = c_null_ptr
    integer(c_size_t) :: outer = 0, n = 0, inner = 0, outer_stride = 0, stride = 0
    integer(c_int32_t) :: kind = 0
  end type
  !> The array for the results.
  type, bind(c) :: samesum_results
    type(c_ptr) :: data = c_null_ptr
    integer(c_size_t) :: size = 0, row_stride = 0
    integer(c_int32_t) :: format = 0
  end type
  !> Options of a call.
  type, bind(c) :: samesum_options
    integer(c_size_t) :: struct_size = 72
    real(c_double) :: ddof = 0
    integer(c_int32_t) :: threads = 0, exclusive = 0, combine = 0, has_grid = 0, grid = 0, skip_nan = 0
    type(c_ptr) :: where = c_null_ptr
    integer(c_int64_t) :: window = 0, min_periods = 0
    integer(c_int32_t) :: has_min_periods = 0, centred = 0
  end type
  !> A reduction to run: the method, inputs, keys, layout, results and options.
  type, bind(c) :: samesum_call
    integer(c_size_t) :: struct_size = 184
    type(c_ptr) :: method = c_null_ptr
    type(samesum_values) :: x, y
    type(samesum_keys) :: keys
    type(samesum_layout) :: layout
    type(samesum_results) :: out
    type(c_ptr) :: options = c_null_ptr
  end type
  !> The arguments of `samesum_bound`: a result, and what is known about its elements.
  type, bind(c) :: samesum_bound_query
    integer(c_size_t) :: struct_size = 80
    type(c_ptr) :: method = c_null_ptr, result = c_null_ptr
    integer(c_size_t) :: n = 0
    real(c_double) :: magnitudes = 0, probability = 0, ddof = 0
    integer(c_int32_t) :: input = 0, has_magnitudes = 0, result_index = 0, has_grid = 0, grid = 0, reserved_32 = 0
  end type
  !> A statistic to compute.
  type, bind(c) :: samesum_statistics_call
    integer(c_size_t) :: struct_size = 328
    type(samesum_values) :: x, y, weights
    type(samesum_layout) :: layout, y_layout, weights_layout
    type(samesum_results) :: out, second
    type(c_ptr) :: options = c_null_ptr
    integer(c_int32_t) :: statistic = 0, weights_are = 0
  end type
  !> What a call on a GPU reports, in device memory.
  type, bind(c) :: samesum_device_status
    integer(c_int64_t) :: first_bad_key = 0
    integer(c_int32_t) :: overflowed = 0
  end type
  !> Kind of an aggregate state: the sum and the accumulator, and for fixed_point the format and the grid.
  type, bind(c) :: samesum_state_kind
    integer(c_int64_t) :: opaque(2) = 0
  end type
  !> Options of an aggregate state.
  type, bind(c) :: samesum_state_options
    integer(c_size_t) :: struct_size = 24
    integer(c_int32_t) :: subtractable = 0, has_grid = 0, grid = 0, reserved_32 = 0
  end type
  !> Memory for states that grow.
  type, bind(c) :: samesum_allocator
    type(c_funptr) :: allocate = c_null_funptr, release = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
  end type

  interface
    function samesum_abi_version() bind(c) result(answer)
      import :: c_int
      integer(c_int) :: answer
    end function

    function samesum_version() bind(c) result(answer)
      import :: c_ptr
      type(c_ptr) :: answer
    end function

    function samesum_sizeof(structure) bind(c) result(answer)
      import :: c_char, c_size_t
      character(kind=c_char), intent(in) :: structure(*)
      integer(c_size_t) :: answer
    end function

    function samesum_status_name(status) bind(c) result(answer)
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: status
      type(c_ptr) :: answer
    end function

    function samesum_format_name(format) bind(c) result(answer)
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: format
      type(c_ptr) :: answer
    end function

    function samesum_format_bytes(format) bind(c) result(answer)
      import :: c_int32_t, c_size_t
      integer(c_int32_t), value :: format
      integer(c_size_t) :: answer
    end function

    function samesum_method_count() bind(c) result(answer)
      import :: c_size_t
      integer(c_size_t) :: answer
    end function

    function samesum_method_at(i) bind(c) result(answer)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: i
      type(c_ptr) :: answer
    end function

    function c_find(name, input, method, message, message_bytes) bind(c, name='samesum_find') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: input
      type(c_ptr), intent(out) :: method
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function samesum_method_name(method) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: method
      type(c_ptr) :: answer
    end function

    function samesum_method_operation(method) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: method
      type(c_ptr) :: answer
    end function

    function samesum_method_summary(method) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: method
      type(c_ptr) :: answer
    end function

    function samesum_method_order(method) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: method
      type(c_ptr) :: answer
    end function

    function samesum_method_accumulator(method) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: method
      type(c_ptr) :: answer
    end function

    function samesum_method_backend(method) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: method
      type(c_ptr) :: answer
    end function

    function samesum_method_promise(method) bind(c) result(answer)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: method
      integer(c_int32_t) :: answer
    end function

    function samesum_method_format(method) bind(c) result(answer)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: method
      integer(c_int32_t) :: answer
    end function

    function samesum_method_result_format(method, input) bind(c) result(answer)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: method
      integer(c_int32_t), value :: input
      integer(c_int32_t) :: answer
    end function

    function samesum_method_inputs(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_results(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_returns_index(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_has_result_per_element(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_is_scan(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_takes_window(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_takes_keys(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_takes_grid(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_can_combine(method) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: method
      integer(c_int) :: answer
    end function

    function samesum_method_accepts(method, input, layout) bind(c) result(answer)
      import :: c_int, c_int32_t, c_ptr, samesum_layout
      type(c_ptr), value :: method
      integer(c_int32_t), value :: input
      type(samesum_layout), intent(in), optional :: layout
      integer(c_int) :: answer
    end function

    function c_run(call, message, message_bytes) bind(c, name='samesum_run') result(answer)
      import :: c_char, c_int32_t, c_size_t, samesum_call
      type(samesum_call), intent(in) :: call
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_estimate(method, x, y, value, bound, magnitudes, message, message_bytes) &
      bind(c, name='samesum_estimate') result(answer)
      import :: c_char, c_double, c_int32_t, c_ptr, c_size_t, samesum_values
      type(c_ptr), value :: method
      type(samesum_values), intent(in) :: x
      type(samesum_values), intent(in), optional :: y
      type(c_ptr), value :: value
      real(c_double), intent(out) :: bound
      real(c_double), intent(out), optional :: magnitudes
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_bound(query, bound, message, message_bytes) bind(c, name='samesum_bound') result(answer)
      import :: c_char, c_double, c_int32_t, c_size_t, samesum_bound_query
      type(samesum_bound_query), intent(in) :: query
      real(c_double), intent(out) :: bound
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_run_statistics(call, sums_to_zero, message, message_bytes) &
      bind(c, name='samesum_run_statistics') result(answer)
      import :: c_char, c_int32_t, c_size_t, samesum_statistics_call
      type(samesum_statistics_call), intent(in) :: call
      integer(c_int32_t), intent(out), optional :: sums_to_zero
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_statistic_bound(result, format, bound, message, message_bytes) &
      bind(c, name='samesum_statistic_bound') result(answer)
      import :: c_char, c_double, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: result
      integer(c_int32_t), value :: format
      real(c_double), intent(out) :: bound
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_workspace_size(call, bytes, message, message_bytes) &
      bind(c, name='samesum_workspace_size') result(answer)
      import :: c_char, c_int32_t, c_size_t, samesum_call
      type(samesum_call), intent(in) :: call
      integer(c_size_t), intent(out) :: bytes
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_prepare(workspace, bytes, stream, message, message_bytes) &
      bind(c, name='samesum_prepare') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_enqueue(call, workspace, bytes, stream, status, message, message_bytes) &
      bind(c, name='samesum_enqueue') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_call
      type(samesum_call), intent(in) :: call
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream, status
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_state_kind_find(name, format, options, kind, message, message_bytes) &
      bind(c, name='samesum_state_kind_find') result(answer)
      import :: c_char, c_int32_t, c_size_t, samesum_state_kind, samesum_state_options
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: format
      type(samesum_state_options), intent(in), optional :: options
      type(samesum_state_kind), intent(out) :: kind
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function samesum_state_bytes(kind) bind(c) result(answer)
      import :: c_size_t, samesum_state_kind
      type(samesum_state_kind), intent(in) :: kind
      integer(c_size_t) :: answer
    end function

    function samesum_state_alignment(kind) bind(c) result(answer)
      import :: c_size_t, samesum_state_kind
      type(samesum_state_kind), intent(in) :: kind
      integer(c_size_t) :: answer
    end function

    function samesum_state_serialised_bytes(kind) bind(c) result(answer)
      import :: c_size_t, samesum_state_kind
      type(samesum_state_kind), intent(in) :: kind
      integer(c_size_t) :: answer
    end function

    function c_state_init(kind, memory, bytes, state, message, message_bytes) &
      bind(c, name='samesum_state_init') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_state_kind
      type(samesum_state_kind), intent(in) :: kind
      type(c_ptr), value :: memory
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out), optional :: state
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_state_copy(state, memory, bytes, copy, message, message_bytes) &
      bind(c, name='samesum_state_copy') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: state, memory
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out), optional :: copy
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    subroutine samesum_state_destroy(state) bind(c)
      import :: c_ptr
      type(c_ptr), value :: state
    end subroutine

    function samesum_state_is_empty(state) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: state
      integer(c_int) :: answer
    end function

    function c_state_add(state, x, message, message_bytes) bind(c, name='samesum_state_add') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_values
      type(c_ptr), value :: state
      type(samesum_values), intent(in) :: x
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function samesum_state_add_fp32(state, x) bind(c) result(answer)
      import :: c_float, c_int32_t, c_ptr
      type(c_ptr), value :: state
      real(c_float), value :: x
      integer(c_int32_t) :: answer
    end function

    function samesum_state_add_fp64(state, x) bind(c) result(answer)
      import :: c_double, c_int32_t, c_ptr
      type(c_ptr), value :: state
      real(c_double), value :: x
      integer(c_int32_t) :: answer
    end function

    function c_state_merge(state, other, message, message_bytes) bind(c, name='samesum_state_merge') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: state, other
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_state_subtract(state, x, message, message_bytes) bind(c, name='samesum_state_subtract') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_values
      type(c_ptr), value :: state
      type(samesum_values), intent(in) :: x
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function samesum_state_subtract_fp32(state, x) bind(c) result(answer)
      import :: c_float, c_int32_t, c_ptr
      type(c_ptr), value :: state
      real(c_float), value :: x
      integer(c_int32_t) :: answer
    end function

    function samesum_state_subtract_fp64(state, x) bind(c) result(answer)
      import :: c_double, c_int32_t, c_ptr
      type(c_ptr), value :: state
      real(c_double), value :: x
      integer(c_int32_t) :: answer
    end function

    function c_state_unmerge(state, other, message, message_bytes) &
      bind(c, name='samesum_state_unmerge') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: state, other
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_state_finish(state, format, out, message, message_bytes) &
      bind(c, name='samesum_state_finish') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: state
      integer(c_int32_t), value :: format
      type(c_ptr), value :: out
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_state_finish_mean(state, n, format, out, message, message_bytes) &
      bind(c, name='samesum_state_finish_mean') result(answer)
      import :: c_char, c_int32_t, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: state
      integer(c_int64_t), value :: n
      integer(c_int32_t), value :: format
      type(c_ptr), value :: out
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_state_serialise(state, bytes, capacity, size, message, message_bytes) &
      bind(c, name='samesum_state_serialise') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: state, bytes
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: size
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_state_deserialise(kind, bytes, size, memory, memory_bytes, state, message, message_bytes) &
      bind(c, name='samesum_state_deserialise') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_state_kind
      type(samesum_state_kind), intent(in) :: kind
      type(c_ptr), value :: bytes
      integer(c_size_t), value :: size
      type(c_ptr), value :: memory
      integer(c_size_t), value :: memory_bytes
      type(c_ptr), intent(out), optional :: state
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function samesum_aggregate_bytes(kind) bind(c) result(answer)
      import :: c_int32_t, c_size_t
      integer(c_int32_t), value :: kind
      integer(c_size_t) :: answer
    end function

    function samesum_aggregate_serialised_bytes(kind) bind(c) result(answer)
      import :: c_int32_t, c_size_t
      integer(c_int32_t), value :: kind
      integer(c_size_t) :: answer
    end function

    subroutine samesum_aggregate_destroy(kind, state, memory) bind(c)
      import :: c_int32_t, c_ptr, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      type(samesum_allocator), intent(in), optional :: memory
    end subroutine

    function c_aggregate_copy(kind, state, copy, memory, message, message_bytes) &
      bind(c, name='samesum_aggregate_copy') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state, copy
      type(samesum_allocator), intent(in), optional :: memory
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function samesum_aggregate_size(kind, state) bind(c) result(answer)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      integer(c_int64_t) :: answer
    end function

    function c_aggregate_add(kind, state, x, y, memory, message, message_bytes) &
      bind(c, name='samesum_aggregate_add') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_allocator, samesum_values
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      type(samesum_values), intent(in) :: x
      type(samesum_values), intent(in), optional :: y
      type(samesum_allocator), intent(in), optional :: memory
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_aggregate_subtract(kind, state, x, y, memory, message, message_bytes) &
      bind(c, name='samesum_aggregate_subtract') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_allocator, samesum_values
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      type(samesum_values), intent(in) :: x
      type(samesum_values), intent(in), optional :: y
      type(samesum_allocator), intent(in), optional :: memory
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_aggregate_add_each(kind, states, x, y, memory, done, message, message_bytes) &
      bind(c, name='samesum_aggregate_add_each') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_allocator, samesum_values
      integer(c_int32_t), value :: kind
      type(c_ptr), intent(in) :: states(*)
      type(samesum_values), intent(in) :: x
      type(samesum_values), intent(in), optional :: y
      type(samesum_allocator), intent(in), optional :: memory
      integer(c_size_t), intent(out), optional :: done
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function samesum_aggregate_add_fp64(kind, state, x, y, memory) bind(c) result(answer)
      import :: c_double, c_int32_t, c_ptr, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      real(c_double), value :: x, y
      type(samesum_allocator), intent(in), optional :: memory
      integer(c_int32_t) :: answer
    end function

    function samesum_aggregate_subtract_fp64(kind, state, x, y, memory) bind(c) result(answer)
      import :: c_double, c_int32_t, c_ptr, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      real(c_double), value :: x, y
      type(samesum_allocator), intent(in), optional :: memory
      integer(c_int32_t) :: answer
    end function

    function samesum_aggregate_add_int64(kind, state, x, y, memory) bind(c) result(answer)
      import :: c_int32_t, c_int64_t, c_ptr, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      integer(c_int64_t), value :: x, y
      type(samesum_allocator), intent(in), optional :: memory
      integer(c_int32_t) :: answer
    end function

    function samesum_aggregate_subtract_int64(kind, state, x, y, memory) bind(c) result(answer)
      import :: c_int32_t, c_int64_t, c_ptr, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      integer(c_int64_t), value :: x, y
      type(samesum_allocator), intent(in), optional :: memory
      integer(c_int32_t) :: answer
    end function

    function c_aggregate_merge(kind, state, other, memory, message, message_bytes) &
      bind(c, name='samesum_aggregate_merge') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state, other
      type(samesum_allocator), intent(in), optional :: memory
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_aggregate_unmerge(kind, state, other, memory, message, message_bytes) &
      bind(c, name='samesum_aggregate_unmerge') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state, other
      type(samesum_allocator), intent(in), optional :: memory
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_aggregate_finish(kind, state, which, ddof, format, out, message, message_bytes) &
      bind(c, name='samesum_aggregate_finish') result(answer)
      import :: c_char, c_int32_t, c_int64_t, c_ptr, c_size_t
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state
      integer(c_int32_t), value :: which
      integer(c_int64_t), value :: ddof
      integer(c_int32_t), value :: format
      type(c_ptr), value :: out
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_aggregate_serialise(kind, state, bytes, capacity, size, message, message_bytes) &
      bind(c, name='samesum_aggregate_serialise') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: state, bytes
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: size
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_aggregate_deserialise(kind, bytes, size, state, memory, message, message_bytes) &
      bind(c, name='samesum_aggregate_deserialise') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_allocator
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: bytes
      integer(c_size_t), value :: size
      type(c_ptr), value :: state
      type(samesum_allocator), intent(in), optional :: memory
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_partial_create(method, begin, has_grid, grid, partial, message, message_bytes) &
      bind(c, name='samesum_partial_create') result(answer)
      import :: c_char, c_int32_t, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: method
      integer(c_int64_t), value :: begin
      integer(c_int32_t), value :: has_grid, grid
      type(c_ptr), intent(out) :: partial
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_partial_copy(partial, copy, message, message_bytes) bind(c, name='samesum_partial_copy') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: partial
      type(c_ptr), intent(out) :: copy
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    subroutine samesum_partial_destroy(partial) bind(c)
      import :: c_ptr
      type(c_ptr), value :: partial
    end subroutine

    function samesum_partial_method(partial) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: partial
      type(c_ptr) :: answer
    end function

    function samesum_partial_begin(partial) bind(c) result(answer)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: partial
      integer(c_int64_t) :: answer
    end function

    function samesum_partial_end(partial) bind(c) result(answer)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: partial
      integer(c_int64_t) :: answer
    end function

    function c_partial_add(partial, x, y, options, message, message_bytes) &
      bind(c, name='samesum_partial_add') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_options, samesum_values
      type(c_ptr), value :: partial
      type(samesum_values), intent(in) :: x
      type(samesum_values), intent(in), optional :: y
      type(samesum_options), intent(in), optional :: options
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_partial_merge(partial, next, message, message_bytes) &
      bind(c, name='samesum_partial_merge') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: partial, next
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_partial_finish(partial, out, options, message, message_bytes) &
      bind(c, name='samesum_partial_finish') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t, samesum_options, samesum_results
      type(c_ptr), value :: partial
      type(samesum_results), intent(in) :: out
      type(samesum_options), intent(in), optional :: options
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_partial_serialise(partial, bytes, capacity, size, message, message_bytes) &
      bind(c, name='samesum_partial_serialise') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: partial, bytes
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: size
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function

    function c_partial_deserialise(bytes, size, backend, partial, message, message_bytes) &
      bind(c, name='samesum_partial_deserialise') result(answer)
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: bytes
      integer(c_size_t), value :: size
      character(kind=c_char), intent(in), optional :: backend(*)
      type(c_ptr), intent(out) :: partial
      character(kind=c_char), intent(inout), optional :: message(*)
      integer(c_size_t), value :: message_bytes
      integer(c_int32_t) :: answer
    end function
  end interface
  ! }

  interface
    function c_strlen(text) bind(c, name='strlen') result(answer)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: answer
    end function
  end interface

contains

  !> Returns the layout of one reduction of n contiguous elements.
  pure function samesum_vector(n) result(layout)
    integer(c_size_t), intent(in) :: n
    type(samesum_layout) :: layout
    layout = samesum_layout(c_null_ptr, 1, n, 1, n, 1, samesum_strided)
  end function

  !> Returns the layout of one reduction for each of `rows` runs of contiguous elements, `row_stride` apart: each
  !> column of an array a(columns, rows) of Fortran.
  pure function samesum_rows(rows, columns, row_stride) result(layout)
    integer(c_size_t), intent(in) :: rows, columns, row_stride
    type(samesum_layout) :: layout
    layout = samesum_layout(c_null_ptr, rows, columns, 1, row_stride, 1, samesum_strided)
  end function

  !> Returns the layout of one reduction along the middle axis of an array a(inner, n, outer) of Fortran.
  pure function samesum_axis(outer, n, inner) result(layout)
    integer(c_size_t), intent(in) :: outer, n, inner
    type(samesum_layout) :: layout
    layout = samesum_layout(c_null_ptr, outer, n, inner, n * inner, inner, samesum_strided)
  end function

  !> Returns the layout of one reduction for each of `count` segments, with count + 1 offsets of 64 bits, which
  !> count from 0.
  pure function samesum_segments(offsets, count) result(layout)
    type(c_ptr), intent(in) :: offsets
    integer(c_size_t), intent(in) :: count
    type(samesum_layout) :: layout
    layout = samesum_layout(offsets, count, 0, 1, 0, 1, samesum_of_segments)
  end function

  !> Returns the text at an address of C, such as that of samesum_method_name.
  function samesum_text(address) result(text)
    type(c_ptr), intent(in) :: address
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer :: i
    text = ''
    if (.not. c_associated(address)) return
    call c_f_pointer(address, characters, [c_strlen(address)])
    text = repeat(' ', size(characters))
    do i = 1, size(characters)
      text(i:i) = characters(i)
    end do
  end function

  !> Number of bytes that C may write to a message; for modules such as samesum_mpi.
  pure function samesum_room(message) result(bytes)
    character(len=*), intent(in), optional :: message
    integer(c_size_t) :: bytes
    bytes = 0
    if (present(message)) bytes = len(message, c_size_t)
  end function

  !> Replaces the NUL behind a message of C, and what follows it, by blanks.
  pure subroutine samesum_pad(message)
    character(len=*), intent(inout), optional :: message
    if (present(message)) message = message(:index(message // c_null_char, c_null_char) - 1)
  end subroutine

  ! Functions of samesum.h with a message.

  ! made from the header by lib/fortran.py {
  function samesum_find(name, input, method, message) result(answer)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: input
    type(c_ptr), intent(out) :: method
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_find(trim(name) // c_null_char, input, method, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_run(call, message) result(answer)
    type(samesum_call), intent(in) :: call
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_run(call, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_estimate(method, x, y, value, bound, magnitudes, message) result(answer)
    type(c_ptr), intent(in) :: method
    type(samesum_values), intent(in) :: x
    type(samesum_values), intent(in), optional :: y
    type(c_ptr), intent(in) :: value
    real(c_double), intent(out) :: bound
    real(c_double), intent(out), optional :: magnitudes
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_estimate(method, x, y, value, bound, magnitudes, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_bound(query, bound, message) result(answer)
    type(samesum_bound_query), intent(in) :: query
    real(c_double), intent(out) :: bound
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_bound(query, bound, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_run_statistics(call, sums_to_zero, message) result(answer)
    type(samesum_statistics_call), intent(in) :: call
    integer(c_int32_t), intent(out), optional :: sums_to_zero
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_run_statistics(call, sums_to_zero, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_statistic_bound(result, format, bound, message) result(answer)
    type(c_ptr), intent(in) :: result
    integer(c_int32_t), intent(in) :: format
    real(c_double), intent(out) :: bound
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_statistic_bound(result, format, bound, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_workspace_size(call, bytes, message) result(answer)
    type(samesum_call), intent(in) :: call
    integer(c_size_t), intent(out) :: bytes
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_workspace_size(call, bytes, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_prepare(workspace, bytes, stream, message) result(answer)
    type(c_ptr), intent(in) :: workspace
    integer(c_size_t), intent(in) :: bytes
    type(c_ptr), intent(in) :: stream
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_prepare(workspace, bytes, stream, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_enqueue(call, workspace, bytes, stream, status, message) result(answer)
    type(samesum_call), intent(in) :: call
    type(c_ptr), intent(in) :: workspace
    integer(c_size_t), intent(in) :: bytes
    type(c_ptr), intent(in) :: stream, status
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_enqueue(call, workspace, bytes, stream, status, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_kind_find(name, format, options, kind, message) result(answer)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: format
    type(samesum_state_options), intent(in), optional :: options
    type(samesum_state_kind), intent(out) :: kind
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_kind_find(trim(name) // c_null_char, format, options, kind, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_init(kind, memory, bytes, state, message) result(answer)
    type(samesum_state_kind), intent(in) :: kind
    type(c_ptr), intent(in) :: memory
    integer(c_size_t), intent(in) :: bytes
    type(c_ptr), intent(out), optional :: state
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_init(kind, memory, bytes, state, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_copy(state, memory, bytes, copy, message) result(answer)
    type(c_ptr), intent(in) :: state, memory
    integer(c_size_t), intent(in) :: bytes
    type(c_ptr), intent(out), optional :: copy
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_copy(state, memory, bytes, copy, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_add(state, x, message) result(answer)
    type(c_ptr), intent(in) :: state
    type(samesum_values), intent(in) :: x
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_add(state, x, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_merge(state, other, message) result(answer)
    type(c_ptr), intent(in) :: state, other
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_merge(state, other, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_subtract(state, x, message) result(answer)
    type(c_ptr), intent(in) :: state
    type(samesum_values), intent(in) :: x
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_subtract(state, x, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_unmerge(state, other, message) result(answer)
    type(c_ptr), intent(in) :: state, other
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_unmerge(state, other, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_finish(state, format, out, message) result(answer)
    type(c_ptr), intent(in) :: state
    integer(c_int32_t), intent(in) :: format
    type(c_ptr), intent(in) :: out
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_finish(state, format, out, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_finish_mean(state, n, format, out, message) result(answer)
    type(c_ptr), intent(in) :: state
    integer(c_int64_t), intent(in) :: n
    integer(c_int32_t), intent(in) :: format
    type(c_ptr), intent(in) :: out
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_finish_mean(state, n, format, out, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_serialise(state, bytes, capacity, size, message) result(answer)
    type(c_ptr), intent(in) :: state, bytes
    integer(c_size_t), intent(in) :: capacity
    integer(c_size_t), intent(out) :: size
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_serialise(state, bytes, capacity, size, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_state_deserialise(kind, bytes, size, memory, memory_bytes, state, message) result(answer)
    type(samesum_state_kind), intent(in) :: kind
    type(c_ptr), intent(in) :: bytes
    integer(c_size_t), intent(in) :: size
    type(c_ptr), intent(in) :: memory
    integer(c_size_t), intent(in) :: memory_bytes
    type(c_ptr), intent(out), optional :: state
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_state_deserialise(kind, bytes, size, memory, memory_bytes, state, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_copy(kind, state, copy, memory, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: state, copy
    type(samesum_allocator), intent(in), optional :: memory
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_copy(kind, state, copy, memory, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_add(kind, state, x, y, memory, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: state
    type(samesum_values), intent(in) :: x
    type(samesum_values), intent(in), optional :: y
    type(samesum_allocator), intent(in), optional :: memory
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_add(kind, state, x, y, memory, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_subtract(kind, state, x, y, memory, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: state
    type(samesum_values), intent(in) :: x
    type(samesum_values), intent(in), optional :: y
    type(samesum_allocator), intent(in), optional :: memory
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_subtract(kind, state, x, y, memory, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_add_each(kind, states, x, y, memory, done, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: states(*)
    type(samesum_values), intent(in) :: x
    type(samesum_values), intent(in), optional :: y
    type(samesum_allocator), intent(in), optional :: memory
    integer(c_size_t), intent(out), optional :: done
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_add_each(kind, states, x, y, memory, done, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_merge(kind, state, other, memory, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: state, other
    type(samesum_allocator), intent(in), optional :: memory
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_merge(kind, state, other, memory, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_unmerge(kind, state, other, memory, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: state, other
    type(samesum_allocator), intent(in), optional :: memory
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_unmerge(kind, state, other, memory, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_finish(kind, state, which, ddof, format, out, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: state
    integer(c_int32_t), intent(in) :: which
    integer(c_int64_t), intent(in) :: ddof
    integer(c_int32_t), intent(in) :: format
    type(c_ptr), intent(in) :: out
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_finish(kind, state, which, ddof, format, out, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_serialise(kind, state, bytes, capacity, size, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: state, bytes
    integer(c_size_t), intent(in) :: capacity
    integer(c_size_t), intent(out) :: size
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_serialise(kind, state, bytes, capacity, size, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_aggregate_deserialise(kind, bytes, size, state, memory, message) result(answer)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: bytes
    integer(c_size_t), intent(in) :: size
    type(c_ptr), intent(in) :: state
    type(samesum_allocator), intent(in), optional :: memory
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_aggregate_deserialise(kind, bytes, size, state, memory, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_partial_create(method, begin, has_grid, grid, partial, message) result(answer)
    type(c_ptr), intent(in) :: method
    integer(c_int64_t), intent(in) :: begin
    integer(c_int32_t), intent(in) :: has_grid, grid
    type(c_ptr), intent(out) :: partial
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_partial_create(method, begin, has_grid, grid, partial, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_partial_copy(partial, copy, message) result(answer)
    type(c_ptr), intent(in) :: partial
    type(c_ptr), intent(out) :: copy
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_partial_copy(partial, copy, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_partial_add(partial, x, y, options, message) result(answer)
    type(c_ptr), intent(in) :: partial
    type(samesum_values), intent(in) :: x
    type(samesum_values), intent(in), optional :: y
    type(samesum_options), intent(in), optional :: options
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_partial_add(partial, x, y, options, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_partial_merge(partial, next, message) result(answer)
    type(c_ptr), intent(in) :: partial, next
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_partial_merge(partial, next, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_partial_finish(partial, out, options, message) result(answer)
    type(c_ptr), intent(in) :: partial
    type(samesum_results), intent(in) :: out
    type(samesum_options), intent(in), optional :: options
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_partial_finish(partial, out, options, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_partial_serialise(partial, bytes, capacity, size, message) result(answer)
    type(c_ptr), intent(in) :: partial, bytes
    integer(c_size_t), intent(in) :: capacity
    integer(c_size_t), intent(out) :: size
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    answer = c_partial_serialise(partial, bytes, capacity, size, message, samesum_room(message))
    call samesum_pad(message)
  end function

  function samesum_partial_deserialise(bytes, size, backend, partial, message) result(answer)
    type(c_ptr), intent(in) :: bytes
    integer(c_size_t), intent(in) :: size
    character(len=*), intent(in), optional :: backend
    type(c_ptr), intent(out) :: partial
    character(len=*), intent(out), optional :: message
    integer(c_int32_t) :: answer
    character(len=:), allocatable :: backend_of_c
    if (present(backend)) backend_of_c = trim(backend) // c_null_char
    answer = c_partial_deserialise(bytes, size, backend_of_c, partial, message, samesum_room(message))
    call samesum_pad(message)
  end function
  ! }

end module
