/// Calls and error bounds of the C interface.
#include <bit>
#include <optional>

#include "samesum/interface/c_support.hpp"

namespace samesum::c {
SAMESUM_API samesum_status samesum_run(const samesum_call* call, char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] { run(call_of(call)); });
}

SAMESUM_API samesum_status samesum_estimate(const samesum_method* method, const samesum_values* x,
                                            const samesum_values* y, void* value, double* bound,
                                            double* magnitudes, char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    given(static_cast<char*>(value), "value");
    given(bound, "bound");
    const Estimate e = estimate(method_of(method).name, values_of(given(x, "x"), "x"), values_of(y, "y"));
    write_number(e.value, value);
    *bound = e.bound;
    if (magnitudes) *magnitudes = e.magnitudes;
  });
}

namespace {

/// The numbers that a method returned.
ResultNumbers numbers_of(const Method& m, const FormatInfo& input, const void* result) {
  const FormatInfo* const format = m.result_format(input);
  if (format == nullptr) return Number{m.format, 0};  // an index: its bound does not depend on it
  const char* const first = &given(static_cast<const char*>(result), "query.result");
  Number numbers[2] = {{format, 0}, {format, 0}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(m.results); ++i)
    std::memcpy(&numbers[i].bits, first + i * format->bytes, format->bytes);
  return m.results == 2 ? ResultNumbers{numbers[0], numbers[1]} : ResultNumbers{numbers[0]};
}

/// Whether a number is +0, in any floating-point environment.
bool is_zero(double x) { return std::bit_cast<std::uint64_t>(x) == 0; }

}  // namespace

SAMESUM_API samesum_status samesum_bound(const samesum_bound_query* query, double* bound, char* message,
                                         size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const samesum_bound_query q = sized(query, "query", "samesum_bound_query");
    double& out = given(bound, "bound");
    const Method& m = method_of(q.method);
    const FormatInfo& input = format_of(q.input, "query.input");
    if (q.result_index < 0 || q.result_index >= m.results)
      refuse("query.result_index is " + std::to_string(q.result_index) + "; the method has " +
             std::to_string(m.results) + " numbers per result");
    BoundOptions options{.result_index = static_cast<std::size_t>(q.result_index), .ddof = q.ddof};
    if (!is_zero(q.probability)) options.probability = q.probability;
    if (flag_of(q.has_grid, "query.has_grid")) options.grid = q.grid;
    std::optional<double> magnitudes;
    if (flag_of(q.has_magnitudes, "query.has_magnitudes")) magnitudes = q.magnitudes;
    out = m.bound(input, q.n, numbers_of(m, input, q.result), magnitudes, options);
  });
}

}  // namespace samesum::c
