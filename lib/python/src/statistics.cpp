/// Statistics: means, variances, covariances, correlations and lines, in rows of elements.
#include "samesum/statistics.hpp"

#include "call.hpp"
#include "samesum/call/validation.hpp"

namespace samesum::python {
namespace {

Statistic statistic_named(std::string_view name) {
  const auto at = std::ranges::find(statistic_names, name);
  if (at == statistic_names.end())
    throw std::invalid_argument("samesum: there is no statistic '" + std::string{name} + "'");
  return static_cast<Statistic>(at - statistic_names.begin());
}

/// Elements of a call, and where those of each row lie.
struct Rows {
  Values values = {};
  Layout layout = {};
};

/// Returns the rows of a field: those of an array with two axes, whose rows are contiguous, or the one of a
/// vector; nothing if the field is not given. The rows of a broadcast array have the stride 0.
Rows rows_of(const PythonCall& call, PythonCall::Field field) {
  if (!call.has(field)) return {};
  const FormatInfo& format = format_named(call.as<std::string_view>(PythonCall::format));
  const nb::tuple view = view_of(call, field);
  const auto shape = nb::cast<std::vector<std::size_t>>(view[1]);
  const std::size_t n = shape.back(), count = shape.size() == 1 ? 1 : shape[0];
  // The stride of an axis of length 1 may be any number.
  const Layout layout = Layout::rows(count, n, count > 1 ? nb::cast<std::size_t>(view[2][0]) : n);
  return {values_at(format, nb::cast<std::uintptr_t>(view[0]), extent(layout, true).value_or(0)), layout};
}

/// Returns the memory for results; nothing if the field is not given.
std::optional<Results> results_of(const PythonCall& call, PythonCall::Field field) {
  if (!call.has(field)) return {};
  const Memory a = memory_of(call, field);
  return Results{&format_named(call.as<std::string_view>(PythonCall::result_format)),
                 reinterpret_cast<void*>(a.address), a.size};
}

/// Computes a statistic of rows, as samesum::run does. The flags are those of the elements of x.
bool statistics(nb::handle object) {
  using enum PythonCall::Field;
  const PythonCall given{object};
  const Rows of_x = rows_of(given, x), of_y = rows_of(given, y), of_weights = rows_of(given, weights);
  const bool are_reliabilities = given.as<std::string_view>(weights_are) == "reliabilities";
  StatisticsCall call{.statistic = statistic_named(given.as<std::string_view>(operation)),
                      .x = of_x.values,
                      .y = of_y.values,
                      .layout = of_x.layout,
                      .out = results_of(given, result).value(),
                      .second = results_of(given, second_result),
                      .options = {.threads = given.as<int>(threads), .ddof = given.as<double>(ddof)}};
  if (given.has(y)) call.y_layout = of_y.layout;
  if (given.has(weights))
    call.weights = {of_weights.values,
                    are_reliabilities ? WeightKind::reliabilities : WeightKind::frequencies,
                    of_weights.layout};
  if (given.has(where))
    call.options.where = {reinterpret_cast<const void*>(memory_of(given, where).address), call.x.size};
  const nb::gil_scoped_release released;
  return run(call, check_signals);
}

}  // namespace

void bind_statistics(nb::module_& m) { m.def("statistics", &statistics); }

}  // namespace samesum::python
