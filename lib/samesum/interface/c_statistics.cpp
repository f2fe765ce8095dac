/// Statistics of the C interface.
#include "samesum/interface/c_support.hpp"
#include "samesum/statistics.hpp"

namespace samesum::c {
namespace {

static_assert(SAMESUM_STATISTIC_MEAN == static_cast<int>(Statistic::mean) + 1 &&
              SAMESUM_STATISTIC_CORRELATION_MATRIX == static_cast<int>(Statistic::correlation_matrix) + 1 &&
              SAMESUM_FREQUENCIES == static_cast<int>(WeightKind::frequencies) &&
              SAMESUM_RELIABILITIES == static_cast<int>(WeightKind::reliabilities));

/// The layout of another input than x; none for SAMESUM_ALL.
std::optional<Layout> own_layout(const samesum_layout& layout) {
  const Layout own = layout_of(layout, 0);
  return layout.kind == SAMESUM_ALL ? std::nullopt : std::optional{own};
}

StatisticsCall statistics_call_of(const samesum_statistics_call* pointer) {
  const samesum_statistics_call call = sized(pointer, "call", "samesum_statistics_call");
  if (call.statistic < SAMESUM_STATISTIC_MEAN || call.statistic > SAMESUM_STATISTIC_CORRELATION_MATRIX)
    refuse("call.statistic is " + std::to_string(call.statistic) +
           "; use one of SAMESUM_STATISTIC_MEAN (1) to SAMESUM_STATISTIC_CORRELATION_MATRIX (7)");
  if (call.weights_are != SAMESUM_FREQUENCIES && call.weights_are != SAMESUM_RELIABILITIES)
    refuse("call.weights_are is " + std::to_string(call.weights_are) +
           "; use SAMESUM_FREQUENCIES (0) or SAMESUM_RELIABILITIES (1)");
  StatisticsCall found{
      .statistic = static_cast<Statistic>(call.statistic - 1),
      .x = values_of(call.x, "x"),
      .y = values_of(call.y, "y"),
      .layout = layout_of(call.layout, call.x.size),
      .y_layout = own_layout(call.y_layout),
      .weights = {values_of(call.weights, "weights"), static_cast<WeightKind>(call.weights_are),
                  own_layout(call.weights_layout)},
      .out = results_of(call.out),
      .options = options_of(call.options, call.x.size)};
  if (call.second.format != SAMESUM_NONE)
    found.second = results_of(call.second, "second");
  else if (call.second.data != nullptr || call.second.size != 0)
    refuse("second has no format; set second.format, or leave out second");
  return found;
}

}  // namespace

SAMESUM_API samesum_status samesum_run_statistics(const samesum_statistics_call* call, int32_t* sums_to_zero,
                                                  char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const bool found = run(statistics_call_of(call));
    if (sums_to_zero) *sums_to_zero = found;
  });
}

SAMESUM_API samesum_status samesum_statistic_bound(const void* result, samesum_format format, double* bound,
                                                   char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    Number number{&format_of(format, "format"), 0};
    std::memcpy(&number.bits, &given(static_cast<const char*>(result), "result"), number.format->bytes);
    given(bound, "bound") = statistic_bound(number);
  });
}

}  // namespace samesum::c
