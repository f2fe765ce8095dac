#include <algorithm>
#include <cmath>

#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/catalogue/choose.hpp"
#include "tool/commands.hpp"
#include "tool/costs.hpp"

namespace samesum::harness {
namespace {

/// "sum" for a sum, else "result".
std::string result_name(const Requirements& required) {
  return required.operation == "sum" ? "sum" : "result";
}

/// Takes length, format, condition and magnitudes from the data. A result of zero has no relative error.
Requirements about_data(const Requirements& required, const Inputs& inputs, const std::string& files) {
  const std::string operation{required.operation};
  if (methods(operation).front().returns_index) {
    Requirements about = required;
    about.length = inputs.x.size;
    about.input = inputs.x.format->name;
    return about;
  }
  const Truth truth = truth_of(operation, inputs);
  const std::string remedy = method_without_name(operation, *inputs.x.format).accumulator == "exact"
                                 ? "use exact"
                                 : "samesum " + operation + " --bound prints an absolute bound";
  if (!std::isfinite(truth.condition()))
    throw InputError(files, "its " + result_name(required) +
                                " is 0 or not finite, and errors are relative to it; " + remedy);
  if (std::isinf(truth.magnitudes_rounded_up()))
    throw InputError(files, "the sum of its magnitudes is beyond the largest fp64; " + remedy);
  return requirements_for(truth, *inputs.x.format, required);
}

Requirements requirements_of(const ChooseOptions& o) {
  check_operation(o.operation, operations_to_choose_for(), "with one result");
  if (o.files.empty() && !o.length) throw UsageError{"--length or a file is missing"};
  if (o.length && *o.length < 1) throw UsageError{"--length: 0 elements; give 1 or more"};
  if (!o.relative_error && !o.ulps)
    throw UsageError{"--relative-error or --ulps is missing; inf accepts any error"};
  if (o.condition.value_or(1) != 1 && !depends_on_condition(o.operation))
    throw UsageError{"--condition: bounds of " + o.operation + " do not depend on it; leave it out"};
  if (o.relative_error && o.ulps) throw UsageError{"--relative-error and --ulps: give only one of them"};
  return {.operation = o.operation,
          .length = static_cast<std::size_t>(o.length.value_or(0)),
          .input = o.input,
          .promise = promise_named(o.promise),
          .relative_error = o.relative_error,
          .ulps = o.ulps,
          .probability = o.probability,
          .backend = o.backend,
          .condition = o.condition.value_or(1),
          .magnitudes = o.magnitudes};
}

/// Replaces the field of Requirements in a message of the library by the option.
std::string with_option(const std::string& message) {
  const std::string prefix = "samesum: choose: ";
  for (const std::string field : {"operation", "relative_error", "ulps", "probability", "backend",
                                  "condition", "magnitudes", "input", "length"})
    if (message.starts_with(prefix + field + " is ")) {
      std::string option = "--" + field;
      std::ranges::replace(option, '_', '-');
      return option + message.substr(prefix.size() + field.size());
    }
  return message;
}

Choice choice_of(const Requirements& required, const CostTable& table) {
  try {
    return choose(required, table.costs);
  } catch (const NoSuitableMethod&) {
    throw;
  } catch (const std::invalid_argument& e) {
    throw UsageError{with_option(e.what())};
  }
}

double magnitudes_of(const Requirements& w) { return w.magnitudes.value_or(static_cast<double>(w.length)); }

Json candidate_json(const Candidate& c) {
  return {{"method", c.method->name},
          {"promise", name_of(c.method->promise)},
          {"bound", number_or_null(c.bound)},
          {"bound_ulps", number_or_null(c.ulps)},
          {"seconds", c.seconds ? Json(*c.seconds) : Json(nullptr)},
          {"reason", c.reason}};
}

std::string as_json(const Requirements& w, const Choice& choice, const CostTable& table) {
  const auto or_null = [](std::optional<double> x) { return x ? number_or_null(*x) : Json(nullptr); };
  Json o = {{"kind", "choice"},
            {"operation", w.operation},
            {"length", w.length},
            {"input_format", w.input},
            {"promise", name_of(w.promise)},
            {"relative_error", or_null(w.relative_error)},
            {"ulps", or_null(w.ulps)},
            {"probability", w.probability},
            {"backend", w.backend.empty() ? Json(nullptr) : Json(w.backend)},
            {"condition", w.condition},
            {"magnitudes", magnitudes_of(w)},
            {"costs",
             {{"file", table.file.empty() ? Json(nullptr) : Json(table.file)},
              {"machine", table.machine},
              {"corrupt_lines", table.corrupt}}},
            {"best", candidate_json(choice.best)},
            {"others", Json::array()}};
  for (const Candidate& c : choice.others) o["others"].push_back(candidate_json(c));
  return json_line(o);
}

// --- the table: 80 columns -----------------------------------------------------------------------

std::string choice_row(const std::string& name, const std::string& bound, const std::string& time,
                       const std::string& reason) {
  return left(name, 37) + ' ' + right(bound, 8) + ' ' + right(time, 7) +
         (reason.empty() ? "" : "  " + reason) + '\n';
}

std::string choice_row(const Candidate& c, bool ulps, const std::string& reason) {
  return choice_row(c.method->name, compact(ulps ? c.ulps : c.bound, 8),
                    c.seconds ? duration(*c.seconds) : "?", reason);
}

/// The names of `magnitudes` and `condition` for an operation that has them.
std::string scale_in_words(const Requirements& w) {
  if (methods(w.operation).front().returns_index) return "";
  return (w.operation == "dot"                ? ", sum of |xy| "
          : depends_on_condition(w.operation) ? ", sum of |x| "
                                              : ", |result| ") +
         compact(magnitudes_of(w), 8) +
         (depends_on_condition(w.operation) ? ", condition number " + compact(w.condition, 8) : "");
}

std::string asked(const Requirements& w) {
  return (w.operation == "sum" ? "" : std::string{w.operation} + " of ") + std::to_string(w.length) +
         (w.length == 1 ? " element of " : " elements of ") + std::string{w.input} + ", promise " +
         std::string{name_of(w.promise)} + ", " +
         (w.ulps ? "at most " + compact(*w.ulps, 8) + (*w.ulps == 1 ? " ulp" : " ulps")
                 : "relative error at most " + compact(*w.relative_error, 8)) +
         (w.probability < 1 ? " with probability " + compact(w.probability, 8) : "") + scale_in_words(w);
}

/// How to measure the costs that are not known; empty if all are.
std::string missing_costs(const Requirements& w, const Choice& choice) {
  const bool all = choice.best.seconds && std::ranges::all_of(choice.others, [](const Candidate& c) {
                     return c.seconds.has_value() || c.method->is_slow;
                   });
  return all ? ""
             : "?: not measured; `samesum calibrate" +
                   (w.operation == "sum" ? std::string{} : " --operation " + std::string{w.operation}) +
                   "` measures it\n";
}

std::string origin(const CostTable& table) {
  return "costs: " + (table.file.empty() ? "shipped" : printable(table.file)) + ", measured on " +
         printable(table.machine) +
         (table.corrupt > 0 ? "; " + std::to_string(table.corrupt) + " corrupt lines skipped" : "") +
         (table.passed_over.empty() ? "" : "; not used: " + printable(table.passed_over)) +
         (table.file.empty() ? "; `samesum calibrate` measures this machine" : "");
}

/// The assumption about the condition number that nothing given replaces; empty if there is none.
std::string assumption(const ChooseOptions& o) {
  if (o.condition || !o.files.empty() || !depends_on_condition(o.operation)) return "";
  return wrapped("assumed: all " + std::string{o.operation == "dot" ? "products" : "elements"} +
                 " have one sign (condition number 1); otherwise give --condition or a file") +
         '\n';
}

std::string as_text(const Requirements& w, const Choice& choice, const CostTable& table,
                    const std::string& assumed) {
  std::string text = wrapped(asked(w)) + '\n' + wrapped(origin(table)) + "\n\n";
  text += choice_row("method", "bound", "time", "");
  const bool ulps = w.ulps.has_value();
  text += choice_row(choice.best, ulps, "");
  for (const Candidate& c : choice.others) text += choice_row(c, ulps, c.reason);
  const bool unbounded =
      std::ranges::any_of(choice.others, [](const Candidate& c) { return std::isinf(c.bound); });
  text += '\n' +
          wrapped("bound: upper limit on the error, " +
                  (ulps ? "in ulps (units in the last place of the " + result_name(w) + " in " +
                              std::string{w.input} + ")"
                        : "relative to the " + result_name(w)) +
                  (w.probability < 1
                       ? ", which holds with this probability if rounding errors have mean 0; not valid for "
                         "equal, sorted or patterned data"
                       : "")) +
          '\n';
  if (unbounded)
    text += wrapped(
                "inf, no finite bound: an overflow cannot be excluded, or the theory has no bound for so "
                "many elements") +
            '\n';
  return text + "time: without transfers to a GPU\n" + missing_costs(w, choice) + assumed +
         wrapped("Use " + choice.best.method->name + ": " + choice.best.reason) + '\n';
}

}  // namespace

Report choose_command(const ChooseOptions& options) {
  Requirements required = requirements_of(options);
  std::vector<std::string> notes;
  const CostTable table = options.costs.empty()        ? default_costs()
                          : options.costs == "shipped" ? shipped_table()
                                                       : read_costs(options.costs);
  if (!options.files.empty()) {
    const std::vector<InputArray> arrays =
        read_inputs(options.operation, options.files, format_named(options.format), options.table);
    notes = notes_on(arrays);
    required = about_data(required, inputs_of(arrays), listed(options.files));
  }
  const Choice choice = choice_of(required, table);
  return {
      options.json ? as_json(required, choice, table) : as_text(required, choice, table, assumption(options)),
      {},
      notes};
}

}  // namespace samesum::harness
