/// Definitions of statistics.hpp.
#include "samesum/statistics.hpp"

#include <stdexcept>

#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/bound/bound.hpp"
#include "samesum/call/validation.hpp"

namespace samesum {

bool run(const StatisticsCall& call, const std::function<void()>& pause) {
  const FloatingPointEnvironment environment;
  if (const std::string wrong = validation_error(call); !wrong.empty())
    throw std::invalid_argument("samesum: " + wrong);
  return cpu::run_statistics(call, pause);
}

double statistic_bound(Number result) {
  const FloatingPointEnvironment environment;
  if (!is_listed(result.format))
    throw std::invalid_argument("samesum: result has an unknown format; use one of samesum::formats");
  return exact_bound(result);
}

void detail::compute(Statistic statistic, const Values& x, const Values& y, const Weights& weights,
                     const Options& options, void* result, void* second) {
  check("x", x);
  StatisticsCall call{.statistic = statistic,
                      .x = x,
                      .y = y,
                      .layout = Layout::vector(x.size),
                      .weights = weights,
                      .out = {x.format, result, 1},
                      .options = options};
  if (second) call.second = {x.format, second, 1};
  run(call);
}

}  // namespace samesum
