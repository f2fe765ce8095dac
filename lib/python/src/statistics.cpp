/// Statistics: means, variances, covariances, correlations and lines, in rows of elements.
#include "samesum/statistics.hpp"

#include <nanobind/stl/pair.h>

#include "module.hpp"
#include "samesum/call/validation.hpp"

namespace samesum::python {
namespace {

/// Rows of n contiguous elements: the address of the first row, and how many elements after it the next one
/// begins. The rows of a broadcast array have the stride 0.
using Rows = std::pair<std::uintptr_t, std::size_t>;

Statistic statistic_named(std::string_view name) {
  const auto at = std::ranges::find(statistic_names, name);
  if (at == statistic_names.end())
    throw std::invalid_argument("samesum: there is no statistic '" + std::string{name} + "'");
  return static_cast<Statistic>(at - statistic_names.begin());
}

/// Computes a statistic of rows, as samesum::run does. `takes` is the address of a flag for each element of
/// x, or 0; `addresses` those of the results, and of the second ones.
bool statistics(std::string_view name, std::string_view format, std::size_t rows, std::size_t n, Rows x,
                std::optional<Rows> y, std::optional<Rows> w, std::uintptr_t takes, double ddof,
                bool are_reliabilities, int threads, std::string_view result_format,
                const std::vector<std::uintptr_t>& addresses) {
  const FormatInfo &input = format_named(format), &output = format_named(result_format);
  const auto layout_of = [&](const Rows& r) { return Layout::rows(rows, n, r.second); };
  const auto values = [&](const Rows& r, const Layout& l) {
    return values_at(input, r.first, extent(l, true).value_or(0));
  };
  const auto results = [&](std::size_t i, std::size_t count) {
    return Results{&output, reinterpret_cast<void*>(addresses.at(i)), count};
  };
  const Layout of_x = layout_of(x);
  StatisticsCall call{.statistic = statistic_named(name),
                      .x = values(x, of_x),
                      .layout = of_x,
                      .out = results(0, rows),
                      .options = {.threads = threads, .ddof = ddof}};
  if (is_matrix(call.statistic)) call.out.size *= rows;
  if (y) call.y_layout = layout_of(*y), call.y = values(*y, *call.y_layout);
  if (w) {
    const Layout of_w = is_matrix(call.statistic) ? Layout::vector(n) : layout_of(*w);
    call.weights = {values(*w, of_w), are_reliabilities ? WeightKind::reliabilities : WeightKind::frequencies,
                    of_w};
  }
  if (takes != 0) call.options.where = {reinterpret_cast<const void*>(takes), call.x.size};
  if (addresses.size() > 1) call.second = results(1, rows);
  const nb::gil_scoped_release released;
  return run(call, check_signals);
}

}  // namespace

void bind_statistics(nb::module_& m) {
  m.def("statistics", &statistics, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
}

}  // namespace samesum::python
