/// A loadable extension of DuckDB: exact aggregate functions. lib/sql/README.md describes them.
#define DUCKDB_EXTENSION_NAME samesum
#define DUCKDB_EXTENSION_API_VERSION_MAJOR 1
#define DUCKDB_EXTENSION_API_VERSION_MINOR 2
#define DUCKDB_EXTENSION_API_VERSION_PATCH 0
#include <duckdb_extension.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "sql/functions.hpp"

DUCKDB_EXTENSION_EXTERN

namespace {

using namespace samesum_sql;

/// Versions of DuckDB with which tests/interface/duckdb_extension.py has passed. 1.4 and 1.5 crash when a
/// window is a whole partition, it seems because they pass one state for all of its rows.
constexpr const char* tested_versions[] = {"v2.0.0", "v2.0.1"};

// --- overloads --------------------------------------------------------------------------------

/// Type of an argument. Those without a format are refused by overloads of their own; otherwise DuckDB would
/// round them to doubles.
struct Type {
  duckdb_type id;
  samesum_format format;
};
constexpr Type types[] = {
    {DUCKDB_TYPE_DOUBLE, SAMESUM_FP64},   {DUCKDB_TYPE_FLOAT, SAMESUM_FP32},
    {DUCKDB_TYPE_BIGINT, SAMESUM_INT64},  {DUCKDB_TYPE_HUGEINT, SAMESUM_NONE},
    {DUCKDB_TYPE_UHUGEINT, SAMESUM_NONE}, {DUCKDB_TYPE_DECIMAL, SAMESUM_NONE},
    {DUCKDB_TYPE_BIGNUM, SAMESUM_NONE},
};

/// A function with the types of its arguments; y only of functions of pairs.
struct Overload {
  const Function* function;
  Type x, y;

  bool is_refused() const { return x.format == SAMESUM_NONE || y.format == SAMESUM_NONE; }
  /// Whether the result is an integer of 128 bits.
  bool is_integer() const { return is_sum(*function) && x.format == SAMESUM_INT64; }
};

constexpr std::size_t count_overloads() {
  std::size_t count = 0;
  for (const Function& function : functions)
    count += std::size(types) * (has_pairs(function.kind) ? std::size(types) : 1);
  return count;
}
/// All overloads. Their addresses tell DuckDB that they differ: it merges aggregates with equal callbacks.
constexpr auto overloads = [] {
  std::array<Overload, count_overloads()> all{};
  std::size_t count = 0;
  for (const Function& function : functions)
    for (const Type& x : types)
      for (const Type& y : types)
        if (has_pairs(function.kind) || y.id == x.id) all[count++] = {&function, x, y};
  return all;
}();

const Overload& overload_of(duckdb_function_info info) {
  return *static_cast<const Overload*>(duckdb_aggregate_function_get_extra_info(info));
}

samesum_aggregate* state_of(duckdb_aggregate_state state) {
  return reinterpret_cast<samesum_aggregate*>(state);
}

void fail(duckdb_function_info info, const char* message) {
  char text[256];
  std::snprintf(text, sizeof text, "%s%s", overload_of(info).function->name, message);
  duckdb_aggregate_function_set_error(info, text);
}
/// Makes the query fail unless the status is SAMESUM_OK. Returns whether it is.
bool succeeds(duckdb_function_info info, samesum_status status) {
  if (status == SAMESUM_OK) return true;
  fail(info, reason_of(status));
  return false;
}

// --- states -----------------------------------------------------------------------------------

/// DuckDB asks for the size when it plans a query, so that refused types are errors without a row, too.
idx_t state_bytes(duckdb_function_info info) {
  if (overload_of(info).is_refused())
    fail(info,
         " takes DOUBLE, FLOAT and integers up to BIGINT, which it adds without an error. Cast other numbers "
         "to DOUBLE, which rounds them; sum() of DECIMAL and HUGEINT is exact.");
  return samesum_aggregate_bytes(overload_of(info).function->kind);
}
void initialise(duckdb_function_info info, duckdb_aggregate_state state) {
  std::memset(static_cast<void*>(state), 0, samesum_aggregate_bytes(overload_of(info).function->kind));
}
template <samesum_aggregate_kind kind> void destroy(duckdb_aggregate_state* states, idx_t count) {
  for (idx_t i = 0; i < count; ++i) samesum_aggregate_destroy(kind, state_of(states[i]), nullptr);
}
void combine(duckdb_function_info info, duckdb_aggregate_state* from, duckdb_aggregate_state* to,
             idx_t count) {
  const samesum_aggregate_kind kind = overload_of(info).function->kind;
  for (idx_t i = 0; i < count; ++i)
    if (!succeeds(info,
                  samesum_aggregate_merge(kind, state_of(to[i]), state_of(from[i]), nullptr, nullptr, 0)))
      return;
}

// --- rows -------------------------------------------------------------------------------------

/// A column of a chunk.
struct Column {
  samesum_format format;
  const void* data;
  const std::uint64_t* validity;  ///< NULL if no row is

  Column(duckdb_data_chunk chunk, idx_t index, const Type& type) : format{type.format} {
    duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, index);
    data = duckdb_vector_get_data(vector);
    validity = duckdb_vector_get_validity(vector);
  }
  bool is_null(idx_t row) const { return validity != nullptr && (validity[row / 64] >> row % 64 & 1) == 0; }
  template <class T> T at(idx_t row) const { return static_cast<const T*>(data)[row]; }
  double real(idx_t row) const { return format == SAMESUM_FP32 ? at<float>(row) : at<double>(row); }
};

/// Adds rows without NULL, whose columns have one format, to their states.
samesum_status add(samesum_aggregate_kind kind, samesum_aggregate* const* states, const samesum_values& x,
                   const samesum_values& y) {
  // Without GROUP BY there is one state. To add a chunk to it at once takes a fraction of the time.
  if (std::all_of(states, states + x.size, [states](const auto* state) { return state == states[0]; }))
    return samesum_aggregate_add(kind, states[0], &x, &y, nullptr, nullptr, 0);
  return samesum_aggregate_add_each(kind, states, &x, &y, nullptr, nullptr, nullptr, 0);
}

/// Adds the rows without NULL, of which it makes blocks. Both columns are converted to T without an error.
template <class T, class Convert>
samesum_status add_blocks(samesum_aggregate_kind kind, samesum_aggregate* const* states, idx_t count,
                          const Column& x, const Column& y, samesum_format format, const Convert& convert) {
  constexpr std::size_t most = 512;
  samesum_aggregate* states_of_block[most];
  T x_of_block[most], y_of_block[most];
  samesum_status status = SAMESUM_OK;
  for (idx_t row = 0; row < count && status == SAMESUM_OK;) {
    std::size_t size = 0;
    for (; row < count && size < most; ++row) {
      if (x.is_null(row) || y.is_null(row)) continue;
      states_of_block[size] = states[row];
      x_of_block[size] = convert(x, row);
      y_of_block[size++] = convert(y, row);
    }
    if (size > 0) status = add(kind, states_of_block, {x_of_block, size, format}, {y_of_block, size, format});
  }
  return status;
}
template <class T>
samesum_status add_blocks(samesum_aggregate_kind kind, samesum_aggregate* const* states, idx_t count,
                          const Column& x, const Column& y) {
  return add_blocks<T>(kind, states, count, x, y, x.format,
                       [](const Column& column, idx_t row) { return column.at<T>(row); });
}

/// Adds pairs of an integer and a floating-point number.
samesum_status add_mixed(samesum_aggregate_kind kind, samesum_aggregate* const* states, idx_t count,
                         const Column& integers, const Column& reals, bool is_swapped) {
  for (idx_t row = 0; row < count; ++row) {
    if (integers.is_null(row) || reals.is_null(row)) continue;
    const samesum_status status = samesum_take_mixed(
        kind, states[row], 1, is_swapped, integers.at<std::int64_t>(row), reals.real(row), nullptr);
    if (status != SAMESUM_OK) return status;
  }
  return SAMESUM_OK;
}

void update(duckdb_function_info info, duckdb_data_chunk chunk, duckdb_aggregate_state* states_of_rows) {
  const Overload& overload = overload_of(info);
  const samesum_aggregate_kind kind = overload.function->kind;
  auto* const states = reinterpret_cast<samesum_aggregate* const*>(states_of_rows);
  const idx_t count = duckdb_data_chunk_get_size(chunk);
  const Column x{chunk, 0, overload.x}, y = has_pairs(kind) ? Column{chunk, 1, overload.y} : x;
  const auto add_rows = [&]() -> samesum_status {
    if (count == 0) return SAMESUM_OK;
    if (x.format != y.format) {
      if (x.format == SAMESUM_INT64) return add_mixed(kind, states, count, x, y, false);
      if (y.format == SAMESUM_INT64) return add_mixed(kind, states, count, y, x, true);
      return add_blocks<double>(kind, states, count, x, y, SAMESUM_FP64,
                                [](const Column& column, idx_t row) { return column.real(row); });
    }
    if (x.validity == nullptr && y.validity == nullptr)
      return add(kind, states, {x.data, count, x.format}, {y.data, count, y.format});
    if (x.format == SAMESUM_FP32) return add_blocks<float>(kind, states, count, x, y);
    if (x.format == SAMESUM_FP64) return add_blocks<double>(kind, states, count, x, y);
    return add_blocks<std::int64_t>(kind, states, count, x, y);
  };
  succeeds(info, add_rows());
}

// --- results ----------------------------------------------------------------------------------

/// Returns a result of the state of a function, rounded to a double.
samesum_status finish(const Function& function, const samesum_aggregate* state,
                      samesum_aggregate_result which, double& result) {
  return samesum_aggregate_finish(function.kind, state, which, function.ddof, SAMESUM_FP64, &result, nullptr,
                                  0);
}

/// Whether a correlation is NaN because x or y is constant, and not because one of them has a NaN or an
/// infinity.
bool is_of_constant(const Function& function, const samesum_aggregate* state, double result) {
  double covariance = 0;
  return function.result == SAMESUM_RESULT_CORRELATION && std::isnan(result) &&
         finish(function, state, SAMESUM_RESULT_COVARIANCE, covariance) == SAMESUM_OK &&
         !std::isnan(covariance);
}

/// Returns a sum of integers. It need not be a double, so what its rounding leaves is rounded again.
samesum_status integer_sum(const Function& function, const samesum_aggregate* state, duckdb_hugeint& result) {
  __extension__ typedef __int128 Integer;
  const samesum_aggregate_kind kind = function.kind;
  Integer sum = 0;
  std::uint64_t memory[4];
  if (samesum_aggregate_bytes(kind) > sizeof memory) return SAMESUM_INVALID_ARGUMENT;
  auto* const rest = reinterpret_cast<samesum_aggregate*>(memory);
  samesum_status status = samesum_aggregate_copy(kind, state, rest, nullptr, nullptr, 0);
  if (status != SAMESUM_OK) return status;
  for (double part = 1; part != 0 && status == SAMESUM_OK;) {
    status = finish(function, rest, SAMESUM_RESULT_SUM, part);
    if (status == SAMESUM_OK) status = samesum_aggregate_add_fp64(kind, rest, -part, 0, nullptr);
    sum += static_cast<Integer>(part);
  }
  samesum_aggregate_destroy(kind, rest, nullptr);
  result = {static_cast<std::uint64_t>(sum), static_cast<std::int64_t>(sum >> 64)};
  return status;
}

/// Writes the result of a state to a row of the vector of results. Returns SAMESUM_OK also for NULL.
samesum_status write_result(const Overload& overload, const samesum_aggregate* state, duckdb_vector results,
                            idx_t row) {
  const Function& function = *overload.function;
  void* const data = duckdb_vector_get_data(results);
  const std::int64_t size = samesum_aggregate_size(function.kind, state);
  if (overload.is_integer() && size > 0)
    return integer_sum(function, state, static_cast<duckdb_hugeint*>(data)[row]);
  double result = 0;
  bool is_null = size <= static_cast<std::int64_t>(function.ddof);
  if (!is_null) {
    const samesum_status status = finish(function, state, function.result, result);
    if (status != SAMESUM_OK) return status;
    is_null = is_of_constant(function, state, result);
  }
  if (is_null) {
    duckdb_vector_ensure_validity_writable(results);
    duckdb_validity_set_row_invalid(duckdb_vector_get_validity(results), row);
  } else {
    static_cast<double*>(data)[row] = function.is_root ? std::sqrt(result) : result;
  }
  return SAMESUM_OK;
}

void finalise(duckdb_function_info info, duckdb_aggregate_state* states, duckdb_vector results, idx_t count,
              idx_t offset) {
  for (idx_t i = 0; i < count; ++i)
    if (!succeeds(info, write_result(overload_of(info), state_of(states[i]), results, offset + i))) return;
}

// --- registration -----------------------------------------------------------------------------

/// Calls use(type) with a type of DuckDB. All decimals match the one with width and scale.
template <class Use> void with_type(duckdb_type id, const Use& use) {
  duckdb_logical_type type =
      id == DUCKDB_TYPE_DECIMAL ? duckdb_create_decimal_type(18, 3) : duckdb_create_logical_type(id);
  use(type);
  duckdb_destroy_logical_type(&type);
}

void add_overload(duckdb_aggregate_function_set set, const Overload& overload) {
  duckdb_aggregate_function function = duckdb_create_aggregate_function();
  duckdb_aggregate_function_set_name(function, overload.function->name);
  const samesum_aggregate_kind kind = overload.function->kind;
  const auto add_parameter = [&](duckdb_logical_type type) {
    duckdb_aggregate_function_add_parameter(function, type);
  };
  with_type(overload.x.id, add_parameter);
  if (has_pairs(kind)) with_type(overload.y.id, add_parameter);
  with_type(overload.is_integer() ? DUCKDB_TYPE_HUGEINT : DUCKDB_TYPE_DOUBLE,
            [&](duckdb_logical_type type) { duckdb_aggregate_function_set_return_type(function, type); });
  duckdb_aggregate_function_set_functions(function, state_bytes, initialise, update, combine, finalise);
  duckdb_aggregate_function_set_destructor(
      function, with_kind(kind, [](auto k) -> duckdb_aggregate_destroy_t { return destroy<k>; }));
  duckdb_aggregate_function_set_extra_info(function, const_cast<Overload*>(&overload), nullptr);
  duckdb_add_aggregate_function_to_set(set, function);
  duckdb_destroy_aggregate_function(&function);
}

/// Registers a function with its overloads. Returns whether DuckDB accepts it.
bool register_function(duckdb_connection connection, const Function& function) {
  duckdb_aggregate_function_set set = duckdb_create_aggregate_function_set(function.name);
  for (const Overload& overload : overloads)
    if (overload.function == &function) add_overload(set, overload);
  const bool is_accepted = duckdb_register_aggregate_function_set(connection, set) == DuckDBSuccess;
  duckdb_destroy_aggregate_function_set(&set);
  return is_accepted;
}

}  // namespace

DUCKDB_EXTENSION_ENTRYPOINT(duckdb_connection connection, duckdb_extension_info info,
                            struct duckdb_extension_access* access) {
  const char* const version = duckdb_library_version();
  char error[256] = "";
  if (std::none_of(std::begin(tested_versions), std::end(tested_versions),
                   [&](const char* tested) { return std::strcmp(tested, version) == 0; }))
    std::snprintf(
        error, sizeof error,
        "samesum was not tested with DuckDB %s, only with versions from %s to %s; use one of these, or "
        "another version of samesum",
        version, tested_versions[0], tested_versions[std::size(tested_versions) - 1]);
  for (const Function& function : functions)
    if (error[0] == '\0' && !register_function(connection, function))
      std::snprintf(error, sizeof error, "samesum: DuckDB refuses the function %s", function.name);
  if (error[0] != '\0') access->set_error(info, error);
  return error[0] == '\0';
}
