#include "harness/commands.hpp"
#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

/// Judged against the truth, which costs a second pass.
Report as_json(const Variant& variant, Values x, Number value) {
  const Truth truth{x};
  const Measurement m = judge(variant, x, truth, value);
  Report report{json_line(result_json(m, *x.format, truth)), {}};
  if (const auto broken = failure(m)) report.failures.push_back(*broken);
  return report;
}

}  // namespace

Report sum_command(const SumOptions& options) {
  check_threads(options.threads);
  const FormatInfo* format = format_named(options.format);
  // A name that does not depend on the file is judged before the file is read.
  if (complete_method(options.method, formats[0]) == options.method) find(options.method);
  const Column column = read_column(options.file, format);
  const Variant& variant = find(complete_method(options.method, *column.format));
  const Number value = variant.bind(column.values(), {.threads = options.threads})();
  if (options.json) return as_json(variant, column.values(), value);
  return {(options.hex ? hexadecimal(value) : shortest_decimal(value)) + '\n', {}};
}

}  // namespace samesum::harness
