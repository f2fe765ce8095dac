/// A loadable extension of SQLite: exact aggregate and window functions. lib/sql/README.md describes them.
#include <sqlite3ext.h>

#include <cmath>
#include <cstdint>

#include "sql/functions.hpp"
SQLITE_EXTENSION_INIT1

namespace {

using namespace samesum_sql;

/// Header of the memory of a group, which SQLite sets to 0. The state of its function lies behind it.
struct Group {
  std::int64_t reals;      ///< number of REAL values, for exact_sum
  std::uint64_t integers;  ///< sum of the INTEGER values modulo 2^64, for exact_sum

  samesum_aggregate* state() { return reinterpret_cast<samesum_aggregate*>(this + 1); }
};

// --- memory and errors ------------------------------------------------------------------------

void* allocate(void*, std::size_t bytes) { return sqlite3_malloc64(bytes); }
void release(void*, void* memory, std::size_t) { sqlite3_free(memory); }
constexpr samesum_allocator allocator{allocate, release, nullptr};

const Function& function_of(sqlite3_context* context) {
  return *static_cast<const Function*>(sqlite3_user_data(context));
}

/// Returns the memory of the group; NULL if it has no rows.
Group* group_of(sqlite3_context* context) {
  return static_cast<Group*>(sqlite3_aggregate_context(context, 0));
}

/// Makes the statement fail with a message, which is freed.
void fail(sqlite3_context* context, char* message) {
  if (message == nullptr) return sqlite3_result_error_nomem(context);
  sqlite3_result_error(context, message, -1);
  sqlite3_free(message);
}

void fail(sqlite3_context* context, samesum_status status) {
  if (status == SAMESUM_OUT_OF_MEMORY) return sqlite3_result_error_nomem(context);
  fail(context, sqlite3_mprintf("%s%s", function_of(context).name, reason_of(status)));
}

void refuse_type(sqlite3_context* context, int argument, int type) {
  fail(context,
       sqlite3_mprintf("%s: argument %d is %s; pass REAL or INTEGER, for example CAST(... AS REAL)",
                       function_of(context).name, argument + 1, type == SQLITE_TEXT ? "TEXT" : "a BLOB"));
}

// --- rows -------------------------------------------------------------------------------------

/// Adds a row to its group, or subtracts it: xStep and xInverse. The kind is known to the compiler, because
/// these lines take a measurable part of the time of a query.
template <samesum_aggregate_kind kind, int sign>
void take_row(sqlite3_context* context, int, sqlite3_value** values) {
  constexpr int last = has_pairs(kind) ? 1 : 0;
  int types[last + 1];
  bool has_null = false;
  for (int i = 0; i <= last; ++i) {
    types[i] = sqlite3_value_type(values[i]);
    if (types[i] == SQLITE_TEXT || types[i] == SQLITE_BLOB) return refuse_type(context, i, types[i]);
    has_null |= types[i] == SQLITE_NULL;
  }
  if (has_null) return;

  const auto bytes = static_cast<int>(sizeof(Group) + samesum_aggregate_bytes(kind));
  auto* group = static_cast<Group*>(sqlite3_aggregate_context(context, bytes));
  if (group == nullptr) return sqlite3_result_error_nomem(context);

  samesum_aggregate* const state = group->state();
  samesum_status status = SAMESUM_OK;
  if (types[0] == SQLITE_FLOAT && types[last] == SQLITE_FLOAT) {
    const double x = sqlite3_value_double(values[0]);
    status = samesum_take_reals(kind, state, sign, x, last == 0 ? 0 : sqlite3_value_double(values[last]),
                                &allocator);
    group->reals += sign;
  } else if (types[0] == types[last]) {
    const std::int64_t x = sqlite3_value_int64(values[0]);
    status = samesum_take_integers(kind, state, sign, x, last == 0 ? 0 : sqlite3_value_int64(values[last]),
                                   &allocator);
    group->integers += sign > 0 ? static_cast<std::uint64_t>(x) : -static_cast<std::uint64_t>(x);
  } else {
    const int integer = types[0] == SQLITE_INTEGER ? 0 : last;
    status = samesum_take_mixed(kind, state, sign, integer != 0, sqlite3_value_int64(values[integer]),
                                sqlite3_value_double(values[last - integer]), &allocator);
  }
  if (status != SAMESUM_OK) fail(context, status);
}

// --- results ----------------------------------------------------------------------------------

/// Whether the sum of INTEGER values, of which `sum` is the rounded value and `wrapped` that modulo 2^64, is
/// between -2^63 and 2^63 - 1. Sums near these limits round to them.
bool fits(double sum, std::int64_t wrapped) {
  return std::fabs(sum) < 0x1p63 || (sum == 0x1p63 && wrapped > 0) || (sum == -0x1p63 && wrapped < 0);
}

/// Makes the result of the rows that remain that of the function: xValue.
void write_result(sqlite3_context* context) {
  const Function& function = function_of(context);
  Group* group = group_of(context);
  if (group == nullptr || samesum_aggregate_size(function.kind, group->state()) == 0)
    return sqlite3_result_null(context);
  double result = 0;
  const samesum_status status = samesum_aggregate_finish(function.kind, group->state(), function.result,
                                                         function.ddof, SAMESUM_FP64, &result, nullptr, 0);
  if (status != SAMESUM_OK) return fail(context, status);
  const auto wrapped = static_cast<std::int64_t>(group->integers);
  if (is_sum(function) && group->reals == 0 && fits(result, wrapped))
    return sqlite3_result_int64(context, wrapped);
  sqlite3_result_double(context, function.is_root ? std::sqrt(result) : result);  // NULL if it is NaN
}

/// Makes the result that of the function and frees the group: xFinal. SQLite also calls it after an error.
void finish(sqlite3_context* context) {
  write_result(context);
  if (Group* group = group_of(context); group != nullptr)
    samesum_aggregate_destroy(function_of(context).kind, group->state(), &allocator);
}

template <samesum_aggregate_kind kind> int register_function(sqlite3* database, const Function& function) {
  return sqlite3_create_window_function(
      database, function.name, has_pairs(kind) ? 2 : 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
      const_cast<Function*>(&function), take_row<kind, 1>, finish, write_result, take_row<kind, -1>, nullptr);
}

int register_function(sqlite3* database, const Function& function) {
  return with_kind(function.kind, [&](auto kind) { return register_function<kind>(database, function); });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int sqlite3_samesumsqlite_init(
    sqlite3* database, char** error, const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api)
  if (sqlite3_libversion_number() < 3025000) {
    *error = sqlite3_mprintf("samesum: SQLite %s has no window functions; use 3.25 or later",
                             sqlite3_libversion());
    return SQLITE_ERROR;
  }
  for (const Function& function : functions)
    if (const int status = register_function(database, function); status != SQLITE_OK) return status;
  return SQLITE_OK;
}
