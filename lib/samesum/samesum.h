/// C interface: methods, calls, error bounds, statistics, aggregate states and partials, for programs in C11
/// and for other languages that can call C. Valid C++, too.
///
/// Each function that can fail returns a `samesum_status`, and takes a buffer for a message: `message_bytes`
/// bytes at `message`, which may be NULL. The message names the wrong argument and the remedy. It is cut to
/// the size of the buffer, ends with a NUL, and is empty on success. A function that fails has written
/// nothing else, unless its comment says so. No C++ exception and no C++ type crosses this interface.
///
/// Bits. A call returns the same bits as the C++ function that its comment names; promise and error bound of
/// a method are those of `samesum_method_promise`, `samesum_bound` and `samesum_estimate`.
///
/// Zero. Zero is the default of every field but `struct_size`. `samesum_call call = samesum_call_default();`
/// is a call without inputs, keys and options, whose layout is one vector of all elements.
///
/// Versions. A structure that may grow begins with `struct_size`, its size in the header that the caller was
/// compiled with, and is passed by its address only. New fields are appended to it, and 0 keeps its meaning.
/// So a library takes the structure of an older header as if the new fields were 0, and that of a newer one
/// if its unknown fields are 0; it refuses any other. All other structures never change within one
/// SAMESUM_ABI_VERSION, nor do existing functions; new functions may appear. Before version 1.0 of the
/// library there is no such promise between releases (SAMESUM_ABI_VERSION is 0). Structures that are written
/// down in another language can be compared with `samesum_sizeof`.
///
/// Threads. Methods are immutable, live as long as the process, and may be used by all threads. Different
/// threads may use different calls, states, partials, workspaces and messages at the same time, but not the
/// same one, unless all of them only read it.
///
/// Floating-point environment. The caller's rounding mode, flush-to-zero settings and traps change nothing,
/// and no call changes them. The sticky flags of exceptions are kept where that is possible, which is not
/// promised: do not tell from them what a call met.
#ifndef SAMESUM_H
#define SAMESUM_H

#include <stddef.h>
#include <stdint.h>

/// Linkage and visibility of the functions.
#if defined(__cplusplus)
#define SAMESUM_API extern "C" __attribute__((visibility("default")))
#else
#define SAMESUM_API extern __attribute__((visibility("default")))
#endif

// --- versions and errors -----------------------------------------------------------------------------------

/// Version of the binary interface; the SOVERSION of the shared library.
#define SAMESUM_ABI_VERSION 0

/// Returns the SAMESUM_ABI_VERSION of the library that is loaded. It must equal that of the header.
SAMESUM_API int samesum_abi_version(void);
/// Returns the version of the library, "0.1.0" for example.
SAMESUM_API const char* samesum_version(void);

/// Returns the size in bytes that a structure of this header has in the library that is loaded:
/// samesum_sizeof("samesum_call"). 0 for any other name, and for NULL.
SAMESUM_API size_t samesum_sizeof(const char* structure);

/// Result code of a call: one of the values below.
typedef int32_t samesum_status;
enum {
  SAMESUM_OK = 0,
  SAMESUM_INVALID_ARGUMENT = 1,   ///< the message names the argument and the remedy
  SAMESUM_OUT_OF_MEMORY = 2,      ///< host or GPU memory is exhausted
  SAMESUM_OVERFLOW = 3,           ///< a term or a sum overflows the given grid; its result is NaN
  SAMESUM_TOO_MANY_ELEMENTS = 4,  ///< of a state or a partial: 2^63 or more, 2^62 if subtractable
  SAMESUM_UNAVAILABLE = 5,        ///< this process has no such backend; the message has the reason
  SAMESUM_GPU_ERROR = 6,          ///< a CUDA call failed; the message names it
  SAMESUM_INTERNAL_ERROR = 7,     ///< an error in the library
  SAMESUM_MPI_ERROR = 8           ///< a call of samesum_mpi.h failed on a rank; the message names it
};

/// Returns the name of a status, "out of memory" for example; "unknown status" for any other number.
SAMESUM_API const char* samesum_status_name(samesum_status status);

// --- elements, keys, layouts, results, options -------------------------------------------------------------

/// Format of an array: one of the values below.
typedef int32_t samesum_format;
enum {
  SAMESUM_NONE = 0,  ///< no array
  SAMESUM_FP16 = 1,  ///< IEEE 754 binary16
  SAMESUM_BF16 = 2,  ///< bfloat16
  SAMESUM_FP32 = 3,  ///< IEEE 754 binary32, `float`
  SAMESUM_FP64 = 4,  ///< IEEE 754 binary64, `double`
  SAMESUM_INT64 = 5  ///< only for results that are indices or counts
};

/// Returns the name of a format, "fp32" for example; NULL for SAMESUM_NONE and for any other number.
SAMESUM_API const char* samesum_format_name(samesum_format format);
/// Returns the size and alignment of an element in bytes; 0 for SAMESUM_NONE and for any other number.
SAMESUM_API size_t samesum_format_bytes(samesum_format format);

/// A view of contiguous elements, or no input at all. It does not own them.
typedef struct samesum_values {
  const void* data;       ///< the first element, aligned to its size; may be NULL if `size` is 0
  size_t size;            ///< number of elements
  samesum_format format;  ///< SAMESUM_FP16 to SAMESUM_FP64; SAMESUM_NONE for no input
} samesum_values;

/// Format of keys: one of the values below.
typedef int32_t samesum_key_format;
enum {
  SAMESUM_NO_KEYS = 0,      ///< the call has no keys
  SAMESUM_KEYS_INT32 = 1,   ///< `int32_t`
  SAMESUM_KEYS_UINT32 = 2,  ///< `uint32_t`
  SAMESUM_KEYS_INT64 = 3    ///< `int64_t`
};

/// A view of keys, or no keys at all. A key is valid if it is not negative and less than the number of
/// results.
typedef struct samesum_keys {
  const void* data;           ///< the first key, aligned to its size; may be NULL if `size` is 0
  size_t size;                ///< number of keys
  samesum_key_format format;  ///< SAMESUM_NO_KEYS for no keys
} samesum_keys;

/// Kind of a layout: one of the values below.
typedef int32_t samesum_layout_kind;
enum {
  SAMESUM_ALL = 0,      ///< one vector of all elements of x, or of all keys; the other fields must be 0
  SAMESUM_STRIDED = 1,  ///< vectors, rows, and an axis of an array
  SAMESUM_SEGMENTS = 2  ///< segments, like the rows of a sparse matrix in CSR form
};

/// Where the elements of each result lie. All counts and strides are in elements.
///
/// Strided: there are outer × inner results, stored in that order without gaps. Result (o, i) reduces the
/// elements o·outer_stride + k·stride + i for 0 <= k < n. Segments: result o, of `outer`, reduces the
/// elements from offsets[o] up to but not including offsets[o + 1]; the other fields are ignored, except that
/// `inner` must be 1. The functions below make layouts.
typedef struct samesum_layout {
  const uint64_t* offsets;      ///< outer + 1 offsets that never decrease; only for segments
  size_t outer, n, inner;       ///< the shape of the array; n is the length of each reduction
  size_t outer_stride, stride;  ///< distance of consecutive (o, ·, ·), and of consecutive (·, k, ·)
  samesum_layout_kind kind;     ///< SAMESUM_ALL, SAMESUM_STRIDED or SAMESUM_SEGMENTS
} samesum_layout;

/// Returns the layout of one reduction of n contiguous elements.
static inline samesum_layout samesum_vector(size_t n) {
  const samesum_layout layout = {NULL, 1, n, 1, n, 1, SAMESUM_STRIDED};
  return layout;
}
/// Returns the layout of one reduction for each row of a matrix whose rows begin `row_stride` elements apart.
static inline samesum_layout samesum_rows(size_t rows, size_t columns, size_t row_stride) {
  const samesum_layout layout = {NULL, rows, columns, 1, row_stride, 1, SAMESUM_STRIDED};
  return layout;
}
/// Returns the layout of one reduction for each pair (o, i), along the middle axis of a C-ordered array of
/// shape outer × n × inner. samesum_axis(1, rows, columns) reduces each column of a matrix.
static inline samesum_layout samesum_axis(size_t outer, size_t n, size_t inner) {
  const samesum_layout layout = {NULL, outer, n, inner, n * inner, inner, SAMESUM_STRIDED};
  return layout;
}
/// Returns the layout of one reduction for each of `count` segments. `offsets` points to count + 1 offsets
/// that never decrease; they are not copied.
static inline samesum_layout samesum_segments(const uint64_t* offsets, size_t count) {
  const samesum_layout layout = {offsets, count, 0, 1, 0, 1, SAMESUM_SEGMENTS};
  return layout;
}

/// The array for the results.
typedef struct samesum_results {
  void* data;             ///< the first result, aligned to its size; may be NULL if `size` is 0
  size_t size;            ///< number of elements in `data`
  size_t row_stride;      ///< for one result per element: elements between rows; 0: as in the input
  samesum_format format;  ///< that of `samesum_method_result_format`
} samesum_results;

/// Options of a call. Flags are 0 or 1.
typedef struct samesum_options {
  size_t struct_size;       ///< sizeof(samesum_options)
  double ddof;              ///< for moments: the divisor of the sum of squares is n - ddof; 1 for a sample
  int32_t threads;          ///< the most threads; 0: one per 2^17 elements, at most one per processor
  int32_t exclusive;        ///< flag, for scans: result i is that of the first i elements, without element i
  int32_t combine;          ///< flag, by key: results are combined with what `out` holds
  int32_t has_grid;         ///< flag: `grid` is given
  int32_t grid;             ///< for fixed_point: terms are rounded to multiples of 2^grid
  int32_t skip_nan;         ///< flag: NaN are as if absent; not for samesum_enqueue
  const uint8_t* where;     ///< one flag for each element of x: others are as if absent; or NULL. As skip_nan
  uint64_t window;          ///< for rolling operations, as all below: number of places of a window
  uint64_t min_periods;     ///< the least number of elements for a result other than NaN
  int32_t has_min_periods;  ///< flag: `min_periods` is given; otherwise it is `window`
  int32_t centred;          ///< flag: the element is in the middle of its window, not at its end
} samesum_options;

/// Returns the options of a call that sets none.
static inline samesum_options samesum_options_default(void) {
  const samesum_options options = {sizeof(samesum_options), 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0};
  return options;
}

// --- methods -----------------------------------------------------------------------------------------------

/// A method: an operation in an order with an accumulator in a format on a backend. Methods live as long as
/// the process.
typedef struct samesum_method samesum_method;

/// What a method guarantees about its bits: one of the values below. Each includes the ones before it.
typedef int32_t samesum_promise;
enum {
  SAMESUM_PROMISE_NONE = 0,        ///< bits may differ from one run to the next
  SAMESUM_PROMISE_RUN_TO_RUN = 1,  ///< the same bits on the same machine with the same settings
  SAMESUM_PROMISE_EVERYWHERE = 2,  ///< the same bits on any backend, thread count, launch shape and alignment
  SAMESUM_PROMISE_ORDER_FREE = 3   ///< the same bits for any permutation and any partition of the elements
};

/// Returns the number of methods in this process; 0 if host memory is exhausted.
SAMESUM_API size_t samesum_method_count(void);
/// Returns method i of samesum_method_count(); NULL if there is no such method.
SAMESUM_API const samesum_method* samesum_method_at(size_t i);

/// Finds the method with the name `operation/order/accumulator/format@backend`, as samesum::find does.
///
/// A name may leave out the operation (sum), the format (that of `input`) and the backend (cpu). With an
/// order and no accumulator it means `plain`; with an accumulator and no order it means `tree`, for scans
/// `prefix`, by key `serial`. Complexity: linear in the number of methods.
/// @param name for example "exact", "tree/kahan/fp32", "max/fp16@cpu".
/// @param input format for names without one; SAMESUM_NONE if the name must have a format.
/// @param method receives the method.
/// @return SAMESUM_INVALID_ARGUMENT if there is no such method: the message names the wrong field and its
///   possible values. SAMESUM_UNAVAILABLE if the name ends with a backend that this process lacks.
SAMESUM_API samesum_status samesum_find(const char* name, samesum_format input, const samesum_method** method,
                                        char* message, size_t message_bytes);

// Facts about a method. If the method is not one of this process, they return NULL, 0 or SAMESUM_NONE. Texts
// live as long as the process.

/// Returns the full name, "sum/tree/kahan/bf16@cpu" for example.
SAMESUM_API const char* samesum_method_name(const samesum_method* method);
/// Returns the operation, "sum" for example.
SAMESUM_API const char* samesum_method_operation(const samesum_method* method);
/// Returns what the operation computes, "sum of the elements" for example.
SAMESUM_API const char* samesum_method_summary(const samesum_method* method);
/// Returns the order, "tree" for example; empty if the operation or the accumulator has no order.
SAMESUM_API const char* samesum_method_order(const samesum_method* method);
/// Returns the accumulator, "kahan" for example; empty if the operation has a state of its own.
SAMESUM_API const char* samesum_method_accumulator(const samesum_method* method);
/// Returns the backend: "reference", "cpu" or "cuda".
SAMESUM_API const char* samesum_method_backend(const samesum_method* method);
/// Returns what the method guarantees about its bits.
SAMESUM_API samesum_promise samesum_method_promise(const samesum_method* method);
/// Returns the format of the accumulator, and of the results unless `samesum_method_result_format` differs.
SAMESUM_API samesum_format samesum_method_format(const samesum_method* method);
/// Returns the format of the results for elements of format `input`, which matters only for softmax.
/// SAMESUM_INT64 for indices and counts.
SAMESUM_API samesum_format samesum_method_result_format(const samesum_method* method, samesum_format input);
/// Returns the number of inputs: 2 for dot, 0 for scatter_count, otherwise 1.
SAMESUM_API int samesum_method_inputs(const samesum_method* method);
/// Returns the number of numbers per result: 2 for moments (mean, variance), otherwise 1.
SAMESUM_API int samesum_method_results(const samesum_method* method);
/// Returns whether the results are indices or counts, in SAMESUM_INT64.
SAMESUM_API int samesum_method_returns_index(const samesum_method* method);
/// Returns whether each element has a result, as in softmax and scans.
SAMESUM_API int samesum_method_has_result_per_element(const samesum_method* method);
/// Returns whether the method is a scan: result i is that of the first i + 1 elements.
SAMESUM_API int samesum_method_is_scan(const samesum_method* method);
/// Returns whether a window must be given: result i is that of a window of elements, as in rolling_sum.
SAMESUM_API int samesum_method_takes_window(const samesum_method* method);
/// Returns whether elements are reduced by key, as in scatter_add.
SAMESUM_API int samesum_method_takes_keys(const samesum_method* method);
/// Returns whether a grid may be given: the accumulator is fixed_point.
SAMESUM_API int samesum_method_takes_grid(const samesum_method* method);
/// Returns whether results can be combined with what `out` holds: sums, counts and extrema by key.
SAMESUM_API int samesum_method_can_combine(const samesum_method* method);
/// Returns whether the method accepts elements of a format in a layout; in at least one layout if `layout` is
/// NULL. Sums of one vector and exact methods accept all formats, other methods their own and narrower ones.
SAMESUM_API int samesum_method_accepts(const samesum_method* method, samesum_format input,
                                       const samesum_layout* layout);

// --- calls -------------------------------------------------------------------------------------------------

/// A reduction to run: the method, inputs, keys, layout, results and options. See samesum::Call.
typedef struct samesum_call {
  size_t struct_size;  ///< sizeof(samesum_call)
  const samesum_method* method;
  samesum_values x;                ///< the first input; none for scatter_count
  samesum_values y;                ///< the second input, for dot
  samesum_keys keys;               ///< for methods that take keys
  samesum_layout layout;           ///< by key: one vector, or samesum_axis(1, n, inner)
  samesum_results out;             ///< its size is that of all results
  const samesum_options* options;  ///< NULL for samesum_options_default()
} samesum_call;

/// Returns the call with the default of every field.
static inline samesum_call samesum_call_default(void) {
  const samesum_call call = {sizeof(samesum_call), NULL,         {NULL, 0, 0},
                             {NULL, 0, 0},         {NULL, 0, 0}, {NULL, 0, 0, 0, 0, 0, 0},
                             {NULL, 0, 0, 0},      NULL};
  return call;
}

/// Runs a call whose data are in host memory, and waits for its results, as samesum::reduce does.
///
/// Each result has the bits of the same reduction of its elements alone. The backend "cuda" copies inputs
/// that are in host memory to the device, and the results back.
/// @return SAMESUM_INVALID_ARGUMENT, before anything is read or written, if the arguments do not fit
///   together. SAMESUM_OVERFLOW if a sum overflows the given grid: such results are NaN, the others written.
///   SAMESUM_OUT_OF_MEMORY: some results may be written. SAMESUM_GPU_ERROR on the backend "cuda".
SAMESUM_API samesum_status samesum_run(const samesum_call* call, char* message, size_t message_bytes);

/// Reduces x, or x and y, to one number, and bounds its error from the data, as samesum::estimate does.
///
/// The value has the bits of `samesum_run`. One thread computes a sum and its bound in one pass; other
/// operations take a second pass. The data are in host memory.
/// @param y the second input for methods that take two; otherwise NULL.
/// @param value receives the number, in the format of the method.
/// @param bound receives a rigorous bound on |value - exact result for x as given|; infinity if an overflow
///   on the way cannot be excluded.
/// @param magnitudes receives Σ|x|, for dot Σ|xy|, rounded up; may be NULL.
/// @return SAMESUM_INVALID_ARGUMENT also for methods with the promise SAMESUM_PROMISE_NONE.
SAMESUM_API samesum_status samesum_estimate(const samesum_method* method, const samesum_values* x,
                                            const samesum_values* y, void* value, double* bound,
                                            double* magnitudes, char* message, size_t message_bytes);

/// The arguments of `samesum_bound`: a result, and what is known about its elements. See
/// samesum::Method::bound.
typedef struct samesum_bound_query {
  size_t struct_size;  ///< sizeof(samesum_bound_query)
  const samesum_method* method;
  const void* result;    ///< the numbers of the result; for moments both. Not read for indices and counts
  size_t n;              ///< number of elements of the result
  double magnitudes;     ///< an upper limit on Σ|x|, for dot Σ|xy|, for fixed_point max|x| or max|xy|, …
  double probability;    ///< below 1: a probable bound of a sum; 0 means 1
  double ddof;           ///< as in samesum_options
  samesum_format input;  ///< format of the elements
  int32_t has_magnitudes;  ///< flag: `magnitudes` is given; bounds of sum, mean and dot need it
  int32_t result_index;    ///< for moments: 0 for the mean, 1 for the variance
  int32_t has_grid;        ///< flag: `grid` is given
  int32_t grid;            ///< as in samesum_options
  int32_t reserved_32;     ///< 0
} samesum_bound_query;

/// Returns the query with the default of every field.
static inline samesum_bound_query samesum_bound_query_default(void) {
  const samesum_bound_query query = {sizeof(samesum_bound_query), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  return query;
}

/// Writes a rigorous bound on |result - exact result for the n elements as given| to `bound`.
///
/// The bound is infinite if the result is not finite, or if an overflow on the way cannot be excluded.
SAMESUM_API samesum_status samesum_bound(const samesum_bound_query* query, double* bound, char* message,
                                         size_t message_bytes);

// --- statistics --------------------------------------------------------------------------------------------
// statistics.hpp has the formulas, the special values and the sources. All data are in host memory.

/// What is computed: one of the values below. The last two take x alone: its vectors are variables, and the
/// results are a symmetric matrix with an entry for each pair of them.
typedef int32_t samesum_statistics_kind;
enum {
  SAMESUM_STATISTIC_MEAN = 1,               ///< Σwx / Σw
  SAMESUM_STATISTIC_VARIANCE = 2,           ///< the covariance of x and x
  SAMESUM_STATISTIC_COVARIANCE = 3,         ///< (Σw·Σwxy - Σwx·Σwy) / (Σw·(Σw - ddof))
  SAMESUM_STATISTIC_CORRELATION = 4,        ///< Pearson's
  SAMESUM_STATISTIC_LINEAR_REGRESSION = 5,  ///< slope and intercept
  SAMESUM_STATISTIC_COVARIANCE_MATRIX = 6,
  SAMESUM_STATISTIC_CORRELATION_MATRIX = 7
};

/// What weights mean, for the divisor of a covariance: one of the values below.
typedef int32_t samesum_weight_kind;
enum {
  SAMESUM_FREQUENCIES = 0,   ///< how often an element occurred: the divisor is Σw - ddof
  SAMESUM_RELIABILITIES = 1  ///< how much an element counts: the divisor is Σw - ddof·Σw²/Σw
};

/// A statistic to compute. See samesum::StatisticsCall.
typedef struct samesum_statistics_call {
  size_t struct_size;              ///< sizeof(samesum_statistics_call)
  samesum_values x;                ///< the first input
  samesum_values y;                ///< the second input, for covariance, correlation and linear regression
  samesum_values weights;          ///< 0 or more, except for means; none: all are 1
  samesum_layout layout;           ///< where the elements of each result, or variable, lie in x
  samesum_layout y_layout;         ///< where they lie in y; SAMESUM_ALL: as in x
  samesum_layout weights_layout;   ///< where their weights lie; SAMESUM_ALL: as in x, for matrices a vector
  samesum_results out;             ///< in any format, to which each result is rounded once
  samesum_results second;          ///< intercepts, or sums of weights for means; SAMESUM_NONE: not wanted
  const samesum_options* options;  ///< threads, ddof, where, skip_nan; NULL for samesum_options_default()
  samesum_statistics_kind statistic;  ///< one of SAMESUM_STATISTIC_…
  samesum_weight_kind weights_are;    ///< SAMESUM_FREQUENCIES or SAMESUM_RELIABILITIES
} samesum_statistics_call;

/// Returns the call with the default of every field.
static inline samesum_statistics_call samesum_statistics_call_default(void) {
  const samesum_statistics_call call = {sizeof(samesum_statistics_call),
                                        {NULL, 0, 0},
                                        {NULL, 0, 0},
                                        {NULL, 0, 0},
                                        {NULL, 0, 0, 0, 0, 0, 0},
                                        {NULL, 0, 0, 0, 0, 0, 0},
                                        {NULL, 0, 0, 0, 0, 0, 0},
                                        {NULL, 0, 0, 0},
                                        {NULL, 0, 0, 0},
                                        NULL,
                                        0,
                                        0};
  return call;
}

/// Computes a statistic, as samesum::run does. Promise: SAMESUM_PROMISE_ORDER_FREE.
/// @param sums_to_zero receives 1 if the weights of a result with elements sum to zero, where NumPy raises an
///   error, otherwise 0; may be NULL. That mean is Σwx / 0, and other results are NaN.
/// @return SAMESUM_INVALID_ARGUMENT, before anything is written, if the arguments do not fit together, or if
///   a weight is negative, except for means. SAMESUM_OUT_OF_MEMORY: some results may be written.
SAMESUM_API samesum_status samesum_run_statistics(const samesum_statistics_call* call, int32_t* sums_to_zero,
                                                  char* message, size_t message_bytes);
/// Writes a bound on |result - exact statistic| to `bound`, as samesum::statistic_bound does: half a unit in
/// the last place; infinite if the result is not finite.
/// @param format that of the result.
SAMESUM_API samesum_status samesum_statistic_bound(const void* result, samesum_format format, double* bound,
                                                   char* message, size_t message_bytes);

// --- calls on a GPU ----------------------------------------------------------------------------------------
// If the library was built without CUDA, these functions return SAMESUM_UNAVAILABLE. gpu.hpp has the contract
// of workspaces and streams. `stream` is a cudaStream_t; NULL is the default stream.

/// What a call on a GPU reports, in device memory. Valid once the call has completed.
typedef struct samesum_device_status {
  uint64_t first_bad_key;  ///< place of the first key that is out of range; UINT64_MAX if there is none
  uint32_t overflowed;     ///< 1 if a sum overflows the given grid; that result is NaN
} samesum_device_status;

/// Writes the number of bytes of the workspace that a call needs to `bytes`. Reads no data.
SAMESUM_API samesum_status samesum_workspace_size(const samesum_call* call, size_t* bytes, char* message,
                                                  size_t message_bytes);
/// Prepares a workspace in device memory, aligned to 16 bytes, for its first call, in stream order.
SAMESUM_API samesum_status samesum_prepare(void* workspace, size_t bytes, void* stream, char* message,
                                           size_t message_bytes);
/// Enqueues a call of a method of the backend "cuda" in a stream, as samesum::gpu::enqueue does.
///
/// All pointers, offsets and keys included, are to memory that the device can access. Does not wait, and can
/// be captured in a CUDA graph. A sum that overflows the grid is no error here: it is NaN.
/// @param workspace prepared once by `samesum_prepare`. It serves one call at a time.
/// @param bytes at least what `samesum_workspace_size` returns.
/// @param status in device memory; may be NULL.
SAMESUM_API samesum_status samesum_enqueue(const samesum_call* call, void* workspace, size_t bytes,
                                           void* stream, samesum_device_status* status, char* message,
                                           size_t message_bytes);

// --- aggregate states --------------------------------------------------------------------------------------

/// Kind of an aggregate state: the sum and the accumulator, and for fixed_point the format and the grid. Made
/// by `samesum_state_kind_find`; may be copied.
typedef struct samesum_state_kind {
  uint64_t opaque[2];
} samesum_state_kind;

/// Options of an aggregate state. Flags are 0 or 1.
typedef struct samesum_state_options {
  size_t struct_size;    ///< sizeof(samesum_state_options)
  int32_t subtractable;  ///< flag, for exact: elements and states can be subtracted again
  int32_t has_grid;      ///< flag: `grid` is given
  int32_t grid;          ///< for fixed_point, which needs it: terms are rounded to multiples of 2^grid
  int32_t reserved_32;   ///< 0
} samesum_state_options;

/// Returns the options with the default of every field.
static inline samesum_state_options samesum_state_options_default(void) {
  const samesum_state_options options = {sizeof(samesum_state_options), 0, 0, 0, 0};
  return options;
}

/// The sum of elements that arrive in any order, for an aggregate function of a database.
///
/// A state lies in memory of the caller and is flat: it has no pointers, never allocates, and moves by memcpy
/// to any memory of the same alignment. Its promise is SAMESUM_PROMISE_ORDER_FREE: elements and states may be
/// added and merged in any order and partition, on any threads, and the result has the same bits.
///
/// The bytes of a state in memory may travel to another process that has the same samesum_version() on
/// processors of the same architecture: between the ranks of an MPI job, say, as MPI_BYTE, or through shared
/// memory. Nothing detects that they were damaged on the way. For other processes and for files there are the
/// bytes that `samesum_state_serialise` writes.
///
/// - exact: the exact sum of elements of any formats. Only `samesum_state_finish` rounds, and it rounds once.
/// - exact, subtractable: also counts elements, NaN, each infinity and elements other than -0, so that each
///   can be taken out again. The result has the bits of the sum of the elements that remain, whatever was
///   added and subtracted in which order; it may be subtracted before it is added.
/// - fixed_point: the sum of multiples of 2^grid, with the bits of the method on that grid.
///
/// A function refuses memory that holds no state, such as memory that was never initialised, as far as it can
/// tell.
typedef struct samesum_state samesum_state;

/// Finds the kind of state for the sum `name`: "exact/fp64", "sum/fixed_point/fp32", …
/// @param format the one that a name without a format means; SAMESUM_NONE if the name must have one.
/// @param options may be NULL, for samesum_state_options_default().
/// @param kind receives the kind.
/// @return SAMESUM_INVALID_ARGUMENT for other methods than sums by exact and fixed_point, if `grid` is
///   missing or out of place, or if `subtractable` is out of place.
SAMESUM_API samesum_status samesum_state_kind_find(const char* name, samesum_format format,
                                                   const samesum_state_options* options,
                                                   samesum_state_kind* kind, char* message,
                                                   size_t message_bytes);
/// Returns the size of a state in bytes; 0 if `kind` is not one that was found.
SAMESUM_API size_t samesum_state_bytes(const samesum_state_kind* kind);
/// Returns the alignment of a state in bytes; 0 if `kind` is not one that was found.
SAMESUM_API size_t samesum_state_alignment(const samesum_state_kind* kind);
/// Returns the most bytes of a serialised state; 0 if `kind` is not one that was found.
SAMESUM_API size_t samesum_state_serialised_bytes(const samesum_state_kind* kind);

/// Makes the state of no elements in `bytes` bytes of memory at `memory`.
/// @param state receives `memory` as a state; may be NULL.
SAMESUM_API samesum_status samesum_state_init(const samesum_state_kind* kind, void* memory, size_t bytes,
                                              samesum_state** state, char* message, size_t message_bytes);
/// Makes a copy of a state in `bytes` bytes at `memory`, which must not overlap it.
/// @param copy receives `memory` as a state; may be NULL.
SAMESUM_API samesum_status samesum_state_copy(const samesum_state* state, void* memory, size_t bytes,
                                              samesum_state** copy, char* message, size_t message_bytes);
/// Ends a state: later calls refuse its memory. There is nothing to free, so this is optional. NULL is
/// ignored.
SAMESUM_API void samesum_state_destroy(samesum_state* state);

/// Returns whether the state has no elements; 1 if it is no state.
SAMESUM_API int samesum_state_is_empty(const samesum_state* state);

/// Adds elements, in host memory, of any format. Runs on the calling thread. Complexity: linear.
SAMESUM_API samesum_status samesum_state_add(samesum_state* state, const samesum_values* x, char* message,
                                             size_t message_bytes);
/// Adds one element. Returns SAMESUM_INVALID_ARGUMENT if `state` is no state.
SAMESUM_API samesum_status samesum_state_add_fp32(samesum_state* state, float x);
/// Adds one element. Returns SAMESUM_INVALID_ARGUMENT if `state` is no state.
SAMESUM_API samesum_status samesum_state_add_fp64(samesum_state* state, double x);
/// Adds the elements of another state of the same kind. For exact, the formats of the kinds may differ.
SAMESUM_API samesum_status samesum_state_merge(samesum_state* state, const samesum_state* other,
                                               char* message, size_t message_bytes);

/// Subtracts elements from a subtractable state.
SAMESUM_API samesum_status samesum_state_subtract(samesum_state* state, const samesum_values* x,
                                                  char* message, size_t message_bytes);
/// Subtracts one element. Returns SAMESUM_INVALID_ARGUMENT if `state` is no subtractable state.
SAMESUM_API samesum_status samesum_state_subtract_fp32(samesum_state* state, float x);
/// Subtracts one element. Returns SAMESUM_INVALID_ARGUMENT if `state` is no subtractable state.
SAMESUM_API samesum_status samesum_state_subtract_fp64(samesum_state* state, double x);
/// Subtracts the elements of another state; both are subtractable.
SAMESUM_API samesum_status samesum_state_unmerge(samesum_state* state, const samesum_state* other,
                                                 char* message, size_t message_bytes);

/// Writes the sum, rounded once to `format` (to nearest, ties to even), to `out`. The state can go on.
///
/// Special values: see Exact::result; fixed_point gives +0 for every zero.
/// @return SAMESUM_OVERFLOW if the sum overflows the grid, as the method in the format of the state defines
///   it: `out` is NaN then. SAMESUM_INVALID_ARGUMENT if more elements were subtracted than added.
SAMESUM_API samesum_status samesum_state_finish(const samesum_state* state, samesum_format format, void* out,
                                                char* message, size_t message_bytes);
/// Writes the sum divided by n, rounded once: with n elements, the bits of mean/exact or mean/fixed_point.
/// NaN if n is 0. Otherwise as samesum_state_finish.
SAMESUM_API samesum_status samesum_state_finish_mean(const samesum_state* state, uint64_t n,
                                                     samesum_format format, void* out, char* message,
                                                     size_t message_bytes);

/// Writes the state as bytes, versioned and little-endian; equal sums give equal bytes.
///
/// exact: the bytes of Exact::serialise in C++. fixed_point: those of a Partial from element 0 on.
/// Subtractable: counts and digits, and a checksum.
/// @param size receives the number of bytes, also if `capacity` is less: then SAMESUM_INVALID_ARGUMENT is
///   returned and `bytes` is unchanged.
SAMESUM_API samesum_status samesum_state_serialise(const samesum_state* state, void* bytes, size_t capacity,
                                                   size_t* size, char* message, size_t message_bytes);
/// Makes the state that was serialised, of that kind, in `memory_bytes` bytes at `memory`.
/// @param state receives `memory` as a state; may be NULL.
/// @return SAMESUM_INVALID_ARGUMENT if the bytes are damaged, or of another kind, version or grid.
SAMESUM_API samesum_status samesum_state_deserialise(const samesum_state_kind* kind, const void* bytes,
                                                     size_t size, void* memory, size_t memory_bytes,
                                                     samesum_state** state, char* message,
                                                     size_t message_bytes);

// --- aggregate states that grow ----------------------------------------------------------------------------

/// Kind of an aggregate state that grows: one of the values below.
typedef int32_t samesum_aggregate_kind;
enum {
  SAMESUM_AGGREGATE_SUM = 1,       ///< n, Σx: 32 bytes
  SAMESUM_AGGREGATE_PRODUCTS = 2,  ///< n, Σxy, the dot product: 40 bytes
  SAMESUM_AGGREGATE_MOMENTS = 3,   ///< n, Σx, Σx²: 72 bytes
  SAMESUM_AGGREGATE_COMOMENTS = 4  ///< n, Σx, Σy, Σx², Σxy, Σy²: 184 bytes
};

/// An exact state of an aggregate function, in `samesum_aggregate_bytes` bytes of the caller's memory,
/// aligned to 8 bytes: for databases with one state for each of millions of groups.
///
/// All bytes 0 is the state of no elements. A state may be moved by memcpy, if the old bytes are not used any
/// more. It does not record its kind, which the caller passes to each function; nothing detects a wrong kind,
/// or memory that holds no state.
///
/// Memory. A state of ordinary data needs no other memory than its own: if all elements are multiples of 2^a,
/// and elements and sums are below 2^b with b - a <= 182, where n doubles that span E powers of two have
/// b - a <= E + 53 + log2 n; if none is NaN or infinite, fewer than 2^16 are -0, and n is below 2^32. For
/// sums of products b - a <= 246, for products of doubles at most 2E + 106 + log2 n. Otherwise each of its
/// sums allocates one block, of 312 bytes, of products 584, and keeps it until samesum_aggregate_destroy().
///
/// Bits. Results are those of the library's exact methods over the elements that remain, whatever was added,
/// merged and subtracted in which order: a window that slides back to its elements has their bits, NaN,
/// infinities and -0 included. Elements may be subtracted before they are added. Integers are exact, too.
///
/// Errors. A function that returns another code than SAMESUM_OK leaves all states with the values that they
/// had, unless its comment says otherwise: SAMESUM_OUT_OF_MEMORY if the allocator has no memory, and
/// SAMESUM_TOO_MANY_ELEMENTS for 2^62 elements, or the sum of as many.
typedef struct samesum_aggregate samesum_aggregate;

/// Returns memory of that size, aligned to 8 bytes; NULL if there is none.
typedef void* (*samesum_allocate)(void* context, size_t bytes);
/// Takes back memory that has that size.
typedef void (*samesum_release)(void* context, void* memory, size_t bytes);
/// Memory for states that grow. Functions call it while they run, and keep no copy. States that meet in a
/// call have allocators that release each other's memory. Neither function may throw, or leave by longjmp.
typedef struct samesum_allocator {
  samesum_allocate allocate;
  samesum_release release;
  void* context;  ///< passed on to both
} samesum_allocator;

/// Returns the size of a state in bytes; 0 for any other number than a kind.
SAMESUM_API size_t samesum_aggregate_bytes(samesum_aggregate_kind kind);
/// Returns the most bytes of a serialised state; 0 for any other number than a kind.
SAMESUM_API size_t samesum_aggregate_serialised_bytes(samesum_aggregate_kind kind);

// The arguments of the functions below:
// - y: for PRODUCTS and COMOMENTS; ignored, and may be NULL, for the other kinds.
// - memory: NULL for malloc and free.
// - x and y have one size and one format, SAMESUM_INT64 (`int64_t`) included, and lie in host memory.

/// Gives back the blocks of a state, which is empty then. Not needed if the caller frees their memory as a
/// whole. `state` may be NULL.
SAMESUM_API void samesum_aggregate_destroy(samesum_aggregate_kind kind, samesum_aggregate* state,
                                           const samesum_allocator* memory);
/// Makes `copy`, whose bytes are overwritten without a look at them, a state of the same elements.
SAMESUM_API samesum_status samesum_aggregate_copy(samesum_aggregate_kind kind, const samesum_aggregate* state,
                                                  samesum_aggregate* copy, const samesum_allocator* memory,
                                                  char* message, size_t message_bytes);
/// Returns the number of elements, or of pairs; 0 if an argument is wrong.
SAMESUM_API int64_t samesum_aggregate_size(samesum_aggregate_kind kind, const samesum_aggregate* state);

/// Adds elements. Runs on the calling thread. Complexity: linear.
SAMESUM_API samesum_status samesum_aggregate_add(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                 const samesum_values* x, const samesum_values* y,
                                                 const samesum_allocator* memory, char* message,
                                                 size_t message_bytes);
/// Subtracts elements.
SAMESUM_API samesum_status samesum_aggregate_subtract(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                      const samesum_values* x, const samesum_values* y,
                                                      const samesum_allocator* memory, char* message,
                                                      size_t message_bytes);
/// Adds element i to states[i]: x->size states, of which several may be the same. Those that are NULL leave
/// their element out. Faster than calls for single elements, since the states are fetched ahead.
/// @param done receives the number of elements that have been added, or left out: all of them, unless the
/// code
///   is another one than SAMESUM_OK. May be NULL.
SAMESUM_API samesum_status samesum_aggregate_add_each(samesum_aggregate_kind kind,
                                                      samesum_aggregate* const* states,
                                                      const samesum_values* x, const samesum_values* y,
                                                      const samesum_allocator* memory, size_t* done,
                                                      char* message, size_t message_bytes);
/// Adds one element, or subtracts it. Returns SAMESUM_INVALID_ARGUMENT if `kind` is none or `state` is NULL.
SAMESUM_API samesum_status samesum_aggregate_add_fp64(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                      double x, double y, const samesum_allocator* memory);
SAMESUM_API samesum_status samesum_aggregate_subtract_fp64(samesum_aggregate_kind kind,
                                                           samesum_aggregate* state, double x, double y,
                                                           const samesum_allocator* memory);
SAMESUM_API samesum_status samesum_aggregate_add_int64(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                       int64_t x, int64_t y, const samesum_allocator* memory);
SAMESUM_API samesum_status samesum_aggregate_subtract_int64(samesum_aggregate_kind kind,
                                                            samesum_aggregate* state, int64_t x, int64_t y,
                                                            const samesum_allocator* memory);
/// Adds the elements of another state, which may be the same one.
SAMESUM_API samesum_status samesum_aggregate_merge(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                   const samesum_aggregate* other,
                                                   const samesum_allocator* memory, char* message,
                                                   size_t message_bytes);
/// Subtracts the elements of another state, which may be the same one.
SAMESUM_API samesum_status samesum_aggregate_unmerge(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                     const samesum_aggregate* other,
                                                     const samesum_allocator* memory, char* message,
                                                     size_t message_bytes);

/// A result of a state: one of the values below. A sum and a mean, all kinds have; the variance,
/// MOMENTS and COMOMENTS; the others, COMOMENTS alone.
typedef int32_t samesum_aggregate_result;
enum {
  SAMESUM_RESULT_SUM = 1,            ///< Σx, or Σxy of PRODUCTS; +0 for no elements
  SAMESUM_RESULT_MEAN = 2,           ///< the sum over n; NaN for no elements
  SAMESUM_RESULT_VARIANCE = 3,       ///< (n·Σx² - (Σx)²) / (n·(n - ddof)); NaN unless n > ddof
  SAMESUM_RESULT_SUM_OF_Y = 4,       ///< Σy
  SAMESUM_RESULT_MEAN_OF_Y = 5,      ///< Σy/n
  SAMESUM_RESULT_VARIANCE_OF_Y = 6,  ///< that of y
  SAMESUM_RESULT_COVARIANCE = 7,     ///< (n·Σxy - Σx·Σy) / (n·(n - ddof)); NaN unless n > ddof
  SAMESUM_RESULT_CORRELATION = 8,    ///< of x and y; NaN if one of them is constant
  SAMESUM_RESULT_SLOPE = 9,          ///< of the line y = slope·x + intercept; NaN if x is constant
  SAMESUM_RESULT_INTERCEPT = 10      ///< of the same line
};

/// Writes a result, rounded once to `format` (to nearest, ties to even), to `out`. The state can go on.
///
/// Sums have the special values of Exact::result, means those of mean/exact. All other results are NaN if
/// an element is NaN or infinite.
/// @param ddof for variances and covariances: 1 for a sample, 0 for a population.
/// @return SAMESUM_INVALID_ARGUMENT also if more elements were subtracted than added.
SAMESUM_API samesum_status samesum_aggregate_finish(samesum_aggregate_kind kind,
                                                    const samesum_aggregate* state,
                                                    samesum_aggregate_result which, uint64_t ddof,
                                                    samesum_format format, void* out, char* message,
                                                    size_t message_bytes);

/// Writes the state as bytes, versioned, little-endian and with a checksum. Equal elements give equal bytes,
/// in whichever order they were added, and so do elements of equal counts and sums.
/// @param bytes at most samesum_aggregate_serialised_bytes(); fewer than 100 for a sum of ordinary data.
/// @param size receives the number of bytes, also if `capacity` is less: then SAMESUM_INVALID_ARGUMENT is
///   returned and `bytes` is unchanged.
SAMESUM_API samesum_status samesum_aggregate_serialise(samesum_aggregate_kind kind,
                                                       const samesum_aggregate* state, void* bytes,
                                                       size_t capacity, size_t* size, char* message,
                                                       size_t message_bytes);
/// Makes `state`, whose bytes are overwritten without a look at them, the one that was serialised.
/// @return SAMESUM_INVALID_ARGUMENT if the bytes are damaged, or of another kind or version.
SAMESUM_API samesum_status samesum_aggregate_deserialise(samesum_aggregate_kind kind, const void* bytes,
                                                         size_t size, samesum_aggregate* state,
                                                         const samesum_allocator* memory, char* message,
                                                         size_t message_bytes);

// --- partials ----------------------------------------------------------------------------------------------

/// The state of a reduction of consecutive elements of a vector, for methods with an order. See
/// samesum::Partial. A partial allocates; `samesum_partial_destroy` frees it.
typedef struct samesum_partial samesum_partial;

/// Creates the partial of no elements, whose first element will be element `begin` of the vector.
/// @param has_grid flag: `grid` is given. fixed_point needs it, other methods refuse it.
/// @param partial receives the partial.
/// @return SAMESUM_INVALID_ARGUMENT also if the method has no partials.
SAMESUM_API samesum_status samesum_partial_create(const samesum_method* method, uint64_t begin,
                                                  int32_t has_grid, int32_t grid, samesum_partial** partial,
                                                  char* message, size_t message_bytes);
/// Creates a copy of a partial.
SAMESUM_API samesum_status samesum_partial_copy(const samesum_partial* partial, samesum_partial** copy,
                                                char* message, size_t message_bytes);
/// Frees a partial. NULL is ignored.
SAMESUM_API void samesum_partial_destroy(samesum_partial* partial);

/// Returns the method; NULL if `partial` is NULL.
SAMESUM_API const samesum_method* samesum_partial_method(const samesum_partial* partial);
/// Returns the index of the first element in the vector; 0 if `partial` is NULL.
SAMESUM_API uint64_t samesum_partial_begin(const samesum_partial* partial);
/// Returns the index after the last element; 0 if `partial` is NULL.
SAMESUM_API uint64_t samesum_partial_end(const samesum_partial* partial);

/// Takes in the next elements, in portions of any size.
/// @param y the second input for methods that take two; otherwise NULL.
/// @param options `threads`; may be NULL.
SAMESUM_API samesum_status samesum_partial_add(samesum_partial* partial, const samesum_values* x,
                                               const samesum_values* y, const samesum_options* options,
                                               char* message, size_t message_bytes);
/// Merges with the partial that begins where this one ends. The methods may differ in their backends only.
SAMESUM_API samesum_status samesum_partial_merge(samesum_partial* partial, const samesum_partial* next,
                                                 char* message, size_t message_bytes);
/// Writes the result for the vector, which must begin at element 0: the bits of the undivided call. The
/// partial can go on.
/// @param out one number, an index, or mean and variance.
/// @param options `ddof`; may be NULL.
/// @return SAMESUM_OVERFLOW if the sum overflows the grid; then nothing is written.
SAMESUM_API samesum_status samesum_partial_finish(const samesum_partial* partial, const samesum_results* out,
                                                  const samesum_options* options, char* message,
                                                  size_t message_bytes);

/// Writes the partial as bytes, versioned, little-endian and with a checksum: those of Partial::serialise.
/// @param bytes NULL to ask for the size only.
/// @param size receives the number of bytes, also if `capacity` is less: then SAMESUM_INVALID_ARGUMENT is
///   returned and `bytes` is unchanged.
SAMESUM_API samesum_status samesum_partial_serialise(const samesum_partial* partial, void* bytes,
                                                     size_t capacity, size_t* size, char* message,
                                                     size_t message_bytes);
/// Creates a partial from the bytes that `samesum_partial_serialise` wrote on any backend.
/// @param backend of the new partial; NULL for "cpu".
/// @return SAMESUM_INVALID_ARGUMENT if the bytes are damaged.
SAMESUM_API samesum_status samesum_partial_deserialise(const void* bytes, size_t size, const char* backend,
                                                       samesum_partial** partial, char* message,
                                                       size_t message_bytes);

#endif
