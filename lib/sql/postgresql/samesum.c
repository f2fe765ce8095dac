/// The extension of PostgreSQL: exact aggregate functions. lib/sql/README.md describes them.
///
/// PostgreSQL leaves functions by longjmp when it reports an error, and the library is C++. So errors are
/// reported here alone, in C, after the library has returned a code; while it runs, it calls nothing of
/// PostgreSQL but the allocator below, which reports none.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <postgres.h>
// The headers of PostgreSQL need the one above.
#include <fmgr.h>
#include <utils/memutils.h>
#pragma GCC diagnostic pop

#include <math.h>

#include "sql/pairs.h"

PG_MODULE_MAGIC;

enum { message_bytes = 256 };

// --- memory and errors ------------------------------------------------------------------------

static void* allocate(void* memory, size_t bytes) {
  return MemoryContextAllocExtended(memory, bytes, MCXT_ALLOC_NO_OOM);
}
static void release(void* memory, void* block, size_t bytes) { pfree(block); }

static samesum_allocator allocator_in(MemoryContext memory) {
  return (samesum_allocator){allocate, release, memory};
}

/// Returns the memory of the group for which PostgreSQL calls an aggregate's function.
static MemoryContext memory_of_group(FunctionCallInfo fcinfo) {
  MemoryContext memory;
  if (!AggCheckCallContext(fcinfo, &memory)) elog(ERROR, "samesum: called outside of an aggregate");
  return memory;
}

static samesum_aggregate* new_state(samesum_aggregate_kind kind, MemoryContext memory) {
  return MemoryContextAllocZero(memory, samesum_aggregate_bytes(kind));
}

/// Reports an error, unless the code is SAMESUM_OK.
/// @param message from the library; may be empty.
static void check(samesum_status status, const char* message) {
  switch (status) {
    case SAMESUM_OK:
      return;
    case SAMESUM_OUT_OF_MEMORY:
      ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
              errdetail("Failed to enlarge the state of an exact aggregate."));
      break;
    case SAMESUM_TOO_MANY_ELEMENTS:
      ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
              errmsg("samesum: a group has 2^62 rows or more"));
      break;
    default:
      ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
              errmsg("%s", message[0] != '\0' ? message : "samesum: a state is invalid"));
  }
}

// --- rows -------------------------------------------------------------------------------------

/// Types of the arguments of a function: x alone, or x and y.
typedef enum Types { real, integer, reals, integers, real_integer, integer_real } Types;

/// Adds a row to the state of its group, or subtracts it. PostgreSQL demands a state of windows even if all
/// rows have NULL.
static inline Datum take_row(FunctionCallInfo fcinfo, samesum_aggregate_kind kind, Types types, int sign) {
  const int last = types >= reals ? 2 : 1;
  const MemoryContext memory = memory_of_group(fcinfo);
  const samesum_allocator allocator = allocator_in(memory);
  samesum_aggregate* state =
      PG_ARGISNULL(0) ? new_state(kind, memory) : (samesum_aggregate*)PG_GETARG_POINTER(0);
  samesum_status status = SAMESUM_OK;
  if (!PG_ARGISNULL(1) && !PG_ARGISNULL(last)) {
    switch (types) {
      case real:
        status = samesum_take_reals(kind, state, sign, PG_GETARG_FLOAT8(1), 0, &allocator);
        break;
      case integer:
        status = samesum_take_integers(kind, state, sign, PG_GETARG_INT64(1), 0, &allocator);
        break;
      case reals:
        status = samesum_take_reals(kind, state, sign, PG_GETARG_FLOAT8(1), PG_GETARG_FLOAT8(2), &allocator);
        break;
      case integers:
        status = samesum_take_integers(kind, state, sign, PG_GETARG_INT64(1), PG_GETARG_INT64(2), &allocator);
        break;
      case real_integer:
        status =
            samesum_take_mixed(kind, state, sign, true, PG_GETARG_INT64(2), PG_GETARG_FLOAT8(1), &allocator);
        break;
      case integer_real:
        status =
            samesum_take_mixed(kind, state, sign, false, PG_GETARG_INT64(1), PG_GETARG_FLOAT8(2), &allocator);
        break;
    }
  }
  check(status, "");
  PG_RETURN_POINTER(state);
}

// --- partial states ---------------------------------------------------------------------------

static Datum combine(FunctionCallInfo fcinfo, samesum_aggregate_kind kind) {
  const MemoryContext memory = memory_of_group(fcinfo);
  const samesum_allocator allocator = allocator_in(memory);
  samesum_aggregate* state =
      PG_ARGISNULL(0) ? new_state(kind, memory) : (samesum_aggregate*)PG_GETARG_POINTER(0);
  char message[message_bytes] = "";
  if (!PG_ARGISNULL(1))
    check(samesum_aggregate_merge(kind, state, (samesum_aggregate*)PG_GETARG_POINTER(1), &allocator, message,
                                  sizeof message),
          message);
  PG_RETURN_POINTER(state);
}

static Datum serialise(FunctionCallInfo fcinfo, samesum_aggregate_kind kind) {
  const size_t capacity = samesum_aggregate_serialised_bytes(kind);
  bytea* bytes = palloc(VARHDRSZ + capacity);
  size_t size = 0;
  char message[message_bytes] = "";
  check(samesum_aggregate_serialise(kind, (samesum_aggregate*)PG_GETARG_POINTER(0), VARDATA(bytes), capacity,
                                    &size, message, sizeof message),
        message);
  SET_VARSIZE(bytes, VARHDRSZ + size);
  PG_RETURN_BYTEA_P(bytes);
}

/// Makes a state in the memory of a row: `combine` adds it to that of its group.
static Datum deserialise(FunctionCallInfo fcinfo, samesum_aggregate_kind kind) {
  const bytea* bytes = PG_GETARG_BYTEA_PP(0);
  const samesum_allocator allocator = allocator_in(CurrentMemoryContext);
  samesum_aggregate* state = new_state(kind, CurrentMemoryContext);
  char message[message_bytes] = "";
  check(samesum_aggregate_deserialise(kind, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), state, &allocator,
                                      message, sizeof message),
        message);
  PG_RETURN_POINTER(state);
}

// --- results ----------------------------------------------------------------------------------

static double result(samesum_aggregate_kind kind, const samesum_aggregate* state,
                     samesum_aggregate_result which, uint64_t ddof) {
  double value;
  char message[message_bytes] = "";
  check(samesum_aggregate_finish(kind, state, which, ddof, SAMESUM_FP64, &value, message, sizeof message),
        message);
  return value;
}

/// Returns a result of the rows of a group, or its square root.
/// @param ddof for variances and covariances. With as many rows, or none, they are NULL.
static Datum finish(FunctionCallInfo fcinfo, samesum_aggregate_kind kind, samesum_aggregate_result which,
                    uint64_t ddof, bool is_root) {
  if (PG_ARGISNULL(0)) PG_RETURN_NULL();
  const samesum_aggregate* state = (samesum_aggregate*)PG_GETARG_POINTER(0);
  if (samesum_aggregate_size(kind, state) <= (int64_t)ddof) PG_RETURN_NULL();
  const double value = result(kind, state, which, ddof);
  // A correlation of finite numbers is NaN if one side is constant. PostgreSQL's is NULL.
  if (which == SAMESUM_RESULT_CORRELATION && isnan(value) &&
      !isnan(result(kind, state, SAMESUM_RESULT_COVARIANCE, 0)))
    PG_RETURN_NULL();
  PG_RETURN_FLOAT8(is_root ? sqrt(value) : value);
}

// --- functions of SQL -------------------------------------------------------------------------

#define SAMESUM_FUNCTION(name, ...)    \
  PG_FUNCTION_INFO_V1(samesum_##name); \
  Datum samesum_##name(PG_FUNCTION_ARGS) { return __VA_ARGS__; }

#define SAMESUM_ROWS(name, kind, types)                                  \
  SAMESUM_FUNCTION(name##_add_##types, take_row(fcinfo, kind, types, 1)) \
  SAMESUM_FUNCTION(name##_subtract_##types, take_row(fcinfo, kind, types, -1))
#define SAMESUM_PAIRS(name, kind)        \
  SAMESUM_ROWS(name, kind, reals)        \
  SAMESUM_ROWS(name, kind, integers)     \
  SAMESUM_ROWS(name, kind, real_integer) \
  SAMESUM_ROWS(name, kind, integer_real)
#define SAMESUM_STATES(name, kind)                            \
  SAMESUM_FUNCTION(name##_combine, combine(fcinfo, kind))     \
  SAMESUM_FUNCTION(name##_serialise, serialise(fcinfo, kind)) \
  SAMESUM_FUNCTION(name##_deserialise, deserialise(fcinfo, kind))

SAMESUM_ROWS(sum, SAMESUM_AGGREGATE_SUM, real)
SAMESUM_ROWS(sum, SAMESUM_AGGREGATE_SUM, integer)
SAMESUM_STATES(sum, SAMESUM_AGGREGATE_SUM)
SAMESUM_FUNCTION(sum, finish(fcinfo, SAMESUM_AGGREGATE_SUM, SAMESUM_RESULT_SUM, 0, false))
SAMESUM_FUNCTION(avg, finish(fcinfo, SAMESUM_AGGREGATE_SUM, SAMESUM_RESULT_MEAN, 0, false))

SAMESUM_ROWS(moments, SAMESUM_AGGREGATE_MOMENTS, real)
SAMESUM_ROWS(moments, SAMESUM_AGGREGATE_MOMENTS, integer)
SAMESUM_STATES(moments, SAMESUM_AGGREGATE_MOMENTS)
SAMESUM_FUNCTION(var_samp, finish(fcinfo, SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 1, false))
SAMESUM_FUNCTION(var_pop, finish(fcinfo, SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 0, false))
SAMESUM_FUNCTION(stddev_samp, finish(fcinfo, SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 1, true))
SAMESUM_FUNCTION(stddev_pop, finish(fcinfo, SAMESUM_AGGREGATE_MOMENTS, SAMESUM_RESULT_VARIANCE, 0, true))

SAMESUM_PAIRS(products, SAMESUM_AGGREGATE_PRODUCTS)
SAMESUM_STATES(products, SAMESUM_AGGREGATE_PRODUCTS)
SAMESUM_FUNCTION(dot, finish(fcinfo, SAMESUM_AGGREGATE_PRODUCTS, SAMESUM_RESULT_SUM, 0, false))

SAMESUM_PAIRS(comoments, SAMESUM_AGGREGATE_COMOMENTS)
SAMESUM_STATES(comoments, SAMESUM_AGGREGATE_COMOMENTS)
SAMESUM_FUNCTION(covar_samp, finish(fcinfo, SAMESUM_AGGREGATE_COMOMENTS, SAMESUM_RESULT_COVARIANCE, 1, false))
SAMESUM_FUNCTION(covar_pop, finish(fcinfo, SAMESUM_AGGREGATE_COMOMENTS, SAMESUM_RESULT_COVARIANCE, 0, false))
SAMESUM_FUNCTION(corr, finish(fcinfo, SAMESUM_AGGREGATE_COMOMENTS, SAMESUM_RESULT_CORRELATION, 0, false))

/// Refuses values of type numeric, which PostgreSQL would otherwise round to double precision without a word.
static Datum refuse_numeric(FunctionCallInfo fcinfo) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("samesum: exact aggregates other than exact_sum take no numeric, which is not binary"),
          errhint("avg(numeric) and its like add exactly; a cast to double precision rounds each value."));
  PG_RETURN_NULL();
}
SAMESUM_FUNCTION(refuse_numeric, refuse_numeric(fcinfo))
