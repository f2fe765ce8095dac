#include "harness/measure.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "harness/median.hpp"
#include "harness/text.hpp"

namespace samesum::harness {
namespace {

/// A run of a method. With several results, it includes their copy to host memory.
using Run = std::function<ResultNumbers()>;

Run run_of(const Method& method, const Inputs& inputs, Options options) {
  if (method.results > 1 || method.has_result_per_element)
    return [&method, inputs, options] { return result_of(method, inputs, options); };
  const Job job = inputs.y ? method.bind(inputs.x, *inputs.y, options) : method.bind(inputs.x, options);
  return [job] { return ResultNumbers{job()}; };
}

double timed(const Run& run, ResultNumbers& result) {
  const auto start = std::chrono::steady_clock::now();
  result = run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The measurement of the result farthest from the truth. `within_bound` holds only if all results are
/// within their bounds.
Measurement worst(const Method& method, const FormatInfo& input, const Truth& truth,
                  const std::map<std::uint64_t, ResultNumbers>& results) {
  std::optional<Measurement> worst;
  bool within_bound = true;
  for (const auto& [bits, result] : results) {
    const Measurement m = judge(method, input, truth, result, compared_index(method.operation));
    within_bound &= m.within_bound;
    if (!worst || m.error.absolute > worst->error.absolute) worst = m;
  }
  worst->within_bound = within_bound;
  worst->distinct_bits = results.size();
  return *worst;
}

}  // namespace

std::string compared_result(const Method& v) {
  return v.has_result_per_element ? "first element" : v.results > 1 ? "variance" : "";
}

std::size_t compared_index(const std::string& operation) { return operation == "moments" ? 1 : 0; }

ResultNumbers result_of(const Method& v, const Inputs& in, Options options) {
  if (v.has_result_per_element)
    return with_format(*in.x.format, [&]<class F>() -> ResultNumbers {
      std::vector<F> all(in.x.size);
      reduce(v, in.x, Layout::vector(in.x.size), std::span<F>{all}, options);
      return Number::of(all.front());
    });
  if (v.results == 1) return in.y ? v(in.x, *in.y, options) : v(in.x, options);
  return with_format(*v.format, [&]<class F>() -> ResultNumbers {
    std::array<F, 2> both;
    reduce(v, in.x, Layout::vector(in.x.size), std::span<F>{both}, options);
    return {Number::of(both[0]), Number::of(both[1])};
  });
}

Truth truth_of(const std::string& operation, const Inputs& in) {
  return Truth::of(operation, in.x, in.y, compared_index(operation));
}

Measurement judge(const Method& method, const FormatInfo& input, const Truth& truth, ResultNumbers result,
                  std::size_t result_index, std::optional<int> grid) {
  const Number value = result.number[result_index];
  const double bound = method.bound(input, truth.size(), result, truth.magnitudes_rounded_up(),
                                    {.result_index = result_index, .grid = grid});
  return {.method = &method,
          .value = value,
          .truth = truth.rounded(*value.format),
          .error = truth.error_of(value),
          .bound = bound,
          .within_bound = truth.within(bound, value),
          .distinct_bits = 1,
          .repeats = 1,
          .seconds = 0,
          .gigabytes_per_second = 0};
}

Measurement measure(const Method& method, const Inputs& inputs, const Truth& truth, MeasureOptions options) {
  const Run run = run_of(method, inputs, {.threads = options.threads});
  ResultNumbers result{Number{}};
  std::map<std::uint64_t, ResultNumbers> results;  // by the bits of the result that is compared
  std::vector<double> seconds;
  const auto count = [&](double time) {
    seconds.push_back(time);
    results.insert({result.number[compared_index(method.operation)].bits, result});
    return time;
  };
  double spent = timed(run, result);  // warm-up, or the only run of a slow method
  if (spent >= options.patience) count(spent);
  for (int i = 0; i < options.repeats && spent < options.patience; ++i) spent += count(timed(run, result));
  Measurement m = worst(method, *inputs.x.format, truth, results);
  m.repeats = static_cast<int>(seconds.size());
  m.seconds = median(seconds);
  m.gigabytes_per_second = static_cast<double>(inputs.bytes()) / m.seconds / 1e9;
  return m;
}

std::optional<std::string> failure(const Measurement& m) {
  const std::string& name = m.method->name;
  if (!m.within_bound)
    return name + ": the error " + compact(m.error.absolute, 12) + " exceeds its bound " +
           compact(m.bound, 12);
  if (m.distinct_bits > 1 && m.method->promise >= Promise::run_to_run)
    return name + ": promises " + std::string{name_of(m.method->promise)} + " but gave " +
           std::to_string(m.distinct_bits) + " bit patterns in " + std::to_string(m.repeats) + " runs";
  if (is_correctly_rounded(*m.method) && m.value != m.truth)
    return name + ": gave " + bit_string(m.value) + ", but the exact result rounds to " + bit_string(m.truth);
  return std::nullopt;
}

Spread spread_of(const std::vector<Number>& answers, double ulp) {
  std::set<std::uint64_t> bits;
  double lowest = answers.front().to_double(), highest = lowest;
  bool any_nan = false;
  for (const Number& x : answers) {
    bits.insert(x.bits);
    lowest = std::min(lowest, x.to_double());
    highest = std::max(highest, x.to_double());
    any_nan |= std::isnan(x.to_double());
  }
  if (any_nan) lowest = highest = std::numeric_limits<double>::quiet_NaN();
  return {answers.size(), bits.size(), lowest, highest, bits.size() == 1 ? 0 : (highest - lowest) / ulp};
}

double largest_variability(const std::vector<Number>& answers) {
  double most = 0;
  for (const Number& x : answers) {
    if (x == answers.front()) continue;
    const double vs = std::abs(1 - std::abs(x.to_double() / answers.front().to_double()));
    if (!std::isfinite(vs)) return std::numeric_limits<double>::quiet_NaN();
    most = std::max(most, vs);
  }
  return most;
}

void sort_by_merit(std::vector<Measurement>& measurements) {
  const auto key = [](const Measurement& m) { return std::tuple{m.error.absolute, m.seconds}; };
  std::stable_sort(measurements.begin(), measurements.end(),
                   [&](const Measurement& a, const Measurement& b) { return key(a) < key(b); });
}

}  // namespace samesum::harness
