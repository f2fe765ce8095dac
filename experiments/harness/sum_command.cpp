#include "harness/commands.hpp"
#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

/// Compares the result with the exact sum, which costs a second pass over the data.
Report as_json(const Method& method, Values x, Number value) {
  const Truth truth{x};
  const Measurement m = judge(method, x, truth, value);
  Report report{json_line(result_json(m, *x.format, truth)), {}};
  if (const auto broken = failure(m)) report.failures.push_back(*broken);
  return report;
}

}  // namespace

Report sum_command(const SumOptions& options) {
  check_threads(options.threads);
  const FormatInfo* format = format_named(options.format);
  check_before_reading(format, [&](const FormatInfo& f) { sum_named(options.method, f, "--method"); });
  const Column column = read_column(options.file, format);
  const Method& method = sum_named(options.method, *column.format, "--method");
  const Number value = method.bind(column.values(), {.threads = options.threads})();
  if (options.json) return as_json(method, column.values(), value);
  return {(options.hex ? hexadecimal(value) : shortest_decimal(value)) + '\n', {}};
}

}  // namespace samesum::harness
