#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>

#include "harness/input.hpp"
#include "harness/peers.hpp"
#include "harness/progress.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/bound/bound.hpp"
#include "tool/commands.hpp"

namespace samesum::harness {
namespace {

/// The data, and a copy on the GPU, which is made when a method first needs it.
class OnGpu {
 public:
  explicit OnGpu(const Inputs& inputs) : inputs_{inputs}, placed_{inputs} {}

  const Inputs& for_method(const Method& method) {
    if (!runs_on_gpu(method)) return inputs_;
    if (!transfer_) {
      const Values& x = inputs_.x;
      method.place({*x.format, x.data, std::min<std::size_t>(x.size, 1)});  // initialises the GPU
      const auto start = std::chrono::steady_clock::now();
      placed_ = {place(method, x), inputs_.y ? std::optional{place(method, *inputs_.y)} : std::nullopt};
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      transfer_ = Transfer{taken.count(), static_cast<double>(inputs_.bytes()) / taken.count() / 1e9};
    }
    return placed_;
  }
  std::optional<Transfer> transfer() const { return transfer_; }

 private:
  Values place(const Method& method, Values x) {
    const Placed placed = method.place(x);
    owners_.push_back(placed.owner);
    return placed.values;
  }

  Inputs inputs_, placed_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::optional<Transfer> transfer_;
};

std::vector<Measurement> measure_all(const std::vector<const Method*>& chosen, OnGpu& on_gpu,
                                     const Truth& truth, MeasureOptions options) {
  const Progress progress;
  std::vector<Measurement> measurements;
  for (const Method* method : chosen) {
    progress.show(measurements.size(), chosen.size(), method->name);
    measurements.push_back(measure(*method, on_gpu.for_method(*method), truth, options));
  }
  sort_by_merit(measurements);
  return measurements;
}

// --- the table: 80 columns -----------------------------------------------------------------------

constexpr std::size_t name_width = 25, usual_rows = 10;

/// The rows that are shown unless all are asked for, in the order of the table. `samesum compare --help` has
/// the rule.
std::vector<Measurement> most_useful(const Comparison& c) {
  const FormatInfo& input = *c.inputs.x.format;
  std::vector<const Measurement*> by_time, chosen;
  for (const Measurement& m : c.measurements)
    if (holds(*m.method->format, input)) by_time.push_back(&m);
  std::ranges::stable_sort(by_time, {}, &Measurement::seconds);
  const auto is_chosen = [&](const Measurement& m) { return std::ranges::find(chosen, &m) != chosen.end(); };
  const auto choose_if = [&](auto is_useful) {
    for (const Measurement& m : c.measurements)
      if (chosen.size() < usual_rows && !is_chosen(m) && is_useful(m)) chosen.push_back(&m);
  };
  const auto choose_fastest_of_each = [&](auto field) {
    for (const Measurement* m : by_time) {
      const auto first = std::ranges::find_if(
          by_time, [&](const Measurement* other) { return other->method->*field == m->method->*field; });
      if (chosen.size() < usual_rows && *first == m && !is_chosen(*m)) chosen.push_back(m);
    }
  };
  choose_if([&](const Measurement& m) { return m.method == c.recommendation.method; });
  choose_if([](const Measurement& m) { return !is_peer(*m.method) && failure(m); });
  choose_if([&](const Measurement& m) {
    return m.method->order == "serial" && m.method->accumulator == "plain" && m.method->format == &input;
  });
  choose_fastest_of_each(&Method::promise);
  choose_fastest_of_each(&Method::accumulator);
  choose_if([](const Measurement&) { return true; });
  std::vector<Measurement> rows;
  std::ranges::copy_if(c.measurements, std::back_inserter(rows), is_chosen);
  return rows;
}

/// The shortest decimal if it fits the width, else as many digits as fit.
std::string value_text(Number value, int width) {
  const std::string shortest = shortest_decimal(value);
  return shortest.size() <= static_cast<std::size_t>(width) ? shortest
                                                            : compact(value.to_double(), width, 17);
}

/// The scale of errors and bounds in the table: relative to the exact result, or absolute if the condition is
/// not finite.
struct Scale {
  explicit Scale(const Truth& truth)
      : relative{std::isfinite(truth.condition())},
        result{relative ? std::abs(truth.rounded(format_info<fp64>()).to_double()) : 1} {}
  double error(const Measurement& m) const { return relative ? m.error.relative : m.error.absolute; }
  double bound(const Measurement& m) const { return m.bound / result; }

  bool relative;
  double result;
};

std::string row(const std::string& name, const std::string& value, const std::string& ulps,
                const std::string& error, const std::string& sign, const std::string& bound,
                const std::string& bits, const std::string& time, const std::string& speed) {
  std::string text = left(name, name_width);
  if (text.size() > name_width) text += '\n' + std::string(name_width, ' ');
  return text + ' ' + right(value, 10) + ' ' + right(ulps, 7) + ' ' + right(error, 7) + ' ' + left(sign, 2) +
         ' ' + right(bound, 7) + ' ' + right(bits, 4) + ' ' + right(time, 6) + ' ' + right(speed, 4) + '\n';
}

std::string row(const Measurement& m, const Scale& scale) {
  return row(short_name(*m.method), value_text(m.value, 10), compact(m.error.ulps, 7),
             compact(scale.error(m), 7), m.within_bound ? "<=" : "> ", compact(scale.bound(m), 7),
             std::to_string(m.distinct_bits), duration(m.seconds), three_digits(m.gigabytes_per_second));
}

/// "dot product", "variance", "first element of softmax"; a name of an operation in the language of formulas.
std::string result_in_words(const std::string& operation) {
  if (operation == "dot") return "dot product";
  const std::string which = compared_result(methods(operation).front());
  if (which == "variance") return which;
  std::string words = (which.empty() ? "" : which + " of ") + operation;
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string heading(const Comparison& c) {
  const std::string beyond = "beyond the largest fp64";
  const Number result = c.truth->rounded(format_info<fp64>());
  const bool overflows = c.truth->finite() && !is_finite(result);
  const double magnitudes = c.truth->magnitudes_rounded_up();
  return printable(listed(c.files)) + ": " + std::to_string(c.truth->size()) + " elements of " +
         std::string{c.inputs.x.format->name} + (c.inputs.y ? " in each of two vectors\n" : "\n") +
         wrapped("exact " + result_in_words(c.operation) + ' ' +
                 (overflows ? beyond : shortest_decimal(result)) +
                 (c.operation == "sum" || c.operation == "mean" || c.inputs.y
                      ? std::string{c.inputs.y ? ", sum of |xy| " : ", sum of magnitudes "} +
                            (c.truth->finite() && std::isinf(magnitudes) ? beyond : compact(magnitudes, 8))
                      : "") +
                 ", condition number " + compact(c.truth->condition(), 8)) +
         "\n\n";
}

/// Explains the columns of the rows that are shown.
std::string legend(const Comparison& c, const std::vector<Measurement>& shown, const Scale& scale) {
  const bool all =
      std::ranges::all_of(shown, [&](const Measurement& m) { return m.repeats == c.options.repeats; });
  const bool exact =
      std::ranges::any_of(shown, [](const Measurement& m) { return m.method->accumulator == "exact"; });
  const bool unbounded = std::ranges::any_of(shown, [](const Measurement& m) { return std::isinf(m.bound); });
  return std::string{"\nulps: error in units in the last place of the method's format\n"} +
         (exact ? "  (the error of an exact method is that of its only rounding, at the end)\n" : "") +
         (scale.relative ? "rel.err, bound: error and its rigorous bound, relative to the exact " +
                               result_in_words(c.operation) + "\n"
                         : std::string{"error, bound: absolute error and its rigorous bound\n"}) +
         (unbounded ? "  (inf: the result is not finite, or an overflow cannot be excluded)\n" : "") +
         "results, time: different results and median time of " + std::to_string(c.options.repeats) +
         (c.options.repeats == 1 ? " run" : " runs") + (all ? "" : " (fewer if slow)") + '\n' +
         (!scale.relative ? ""
          : c.operation == "sum"
              ? "condition number: sum of magnitudes / |exact sum|\n"
              : "condition number: relative change of the result, to first order, per relative\n"
                "  change of the elements\n") +
         (c.transfer && methods(c.operation).front().has_result_per_element
              ? "  (on a GPU with the copy of all results to the host)\n"
              : "") +
         (c.transfer ? "transfer to the GPU, which the times exclude: " + duration(c.transfer->seconds) +
                           ", " + three_digits(c.transfer->gigabytes_per_second) + " GB/s\n"
                     : "");
}

/// Restores a speed that number_or_null converted.
double number_or_infinity(const Json& x) {
  return x.is_null() ? std::numeric_limits<double>::infinity() : x.get<double>();
}

std::string as_asked(const CompareOptions& options, const Comparison& c) {
  if (options.json) return json_line(comparison_json(c));
  return options.csv ? csv(rows(c)) : as_text(c, options.all);
}

void check(const CompareOptions& options) {
  check_threads(options.measure.threads);
  if (options.measure.repeats < 1)
    throw UsageError{"--repeat: " + std::to_string(options.measure.repeats) +
                     " runs measure nothing; give 1 or more"};
  if (!options.output.empty()) check_output("--output", options.output, options.files);
  check_operation(options.operation, Truth::operations(), "with an exact result to compare with");
}

}  // namespace

std::string as_text(const Comparison& c, bool all) {
  const Scale scale{*c.truth};
  const std::vector<Measurement> shown = all ? c.measurements : most_useful(c);
  // "results" is wider than its column.
  std::string text = heading(c) + left("method", name_width) + right("value", 11) + right("ulps", 8) +
                     right(scale.relative ? "rel.err" : "error", 8) + "     bound results time GB/s\n";
  for (const Measurement& m : shown) text += row(m, scale);
  const auto& [method, reason] = c.recommendation;
  text += '\n' + wrapped("Use " + short_name(*method) + ": " + reason) + '\n' + legend(c, shown, scale);
  const std::size_t rest = c.measurements.size() - shown.size();
  if (rest > 0)
    text += std::to_string(rest) + (rest == 1 ? " more method" : " more methods") +
            "; --all prints a row for every method\n";
  return text;
}

Comparison comparison_of(const Json& row, const Inputs& inputs, const Truth& truth) {
  const FormatInfo& format = *inputs.x.format;
  const std::string operation = row.value("operation", "sum");
  const auto method = [&](const Json& name) {  // exists, because this build measured it
    return methods_matching(name, format, "--methods", operation).at(0);
  };
  Comparison c{.operation = operation,
               .files = row["data"]["files"],
               .inputs = inputs,
               .truth = &truth,
               .options = {.repeats = row["repeats"], .threads = row["threads"]},
               .transfer = {},
               .measurements = {},
               .recommendation = {method(row["recommendation"]["method"]), row["recommendation"]["reason"]}};
  if (const Json& t = row["transfer"]; !t.is_null())
    c.transfer = Transfer{t["seconds"], number_or_infinity(t["gb_per_s"])};
  for (const Json& m : row["methods"]) {
    const Method& v = *method(m["method"]);
    const Number value{v.result_format(format), std::stoull(m["bits"].get<std::string>(), nullptr, 16)};
    c.measurements.push_back({.method = &v,
                              .value = value,
                              .truth = truth.rounded(*value.format),
                              .error = truth.error_of(value),
                              .bound = number_or_infinity(m["bound"]),
                              .within_bound = m["within_bound"],
                              .distinct_bits = m["distinct_bits"],
                              .repeats = m["repeats"],
                              .seconds = m["seconds"],
                              .gigabytes_per_second = number_or_infinity(m["gb_per_s"])});
  }
  return c;
}

Comparison compare(const std::vector<std::string>& files, const Inputs& inputs, const Truth& truth,
                   const std::string& methods, MeasureOptions options, const std::string& option,
                   const std::string& operation) {
  const FormatInfo& format = *inputs.x.format;
  const auto chosen = methods_matching(methods, format, option, operation);
  if (chosen.empty()) {
    method_without_name(operation, format);  // throws if the operation takes no such elements at all
    throw UsageError{option + ": no method that matches '" + methods + "' takes " + std::string{format.name} +
                     "; add '*', or use fp32 or fp64 for peers"};
  }
  OnGpu on_gpu{inputs};
  std::vector<Measurement> measurements = measure_all(chosen, on_gpu, truth, options);
  const Recommendation recommendation = recommend(measurements, format, truth);
  return {operation,     files, inputs, &truth, options, on_gpu.transfer(), std::move(measurements),
          recommendation};
}

Report compare_command(const CompareOptions& options) {
  check(options);
  const FormatInfo* format = format_named(options.format);
  check_before_reading(format, [&](const FormatInfo& f) {
    methods_matching(options.methods, f, "--methods", options.operation);
  });
  const std::vector<InputArray> arrays = read_inputs(options.operation, options.files, format, options.table);
  const Inputs inputs = inputs_of(arrays);
  const Truth truth = truth_of(options.operation, inputs);
  const Comparison comparison = compare(names_of(options.files, options.table), inputs, truth,
                                        options.methods, options.measure, "--methods", options.operation);
  Report report{as_asked(options, comparison), comparison.failures(), notes_on(arrays)};
  if (!options.output.empty()) {
    write_file(options.output, report.text);
    report.text.clear();
  }
  return report;
}

}  // namespace samesum::harness
