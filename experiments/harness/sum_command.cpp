#include <chrono>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>

#include "harness/commands.hpp"
#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

namespace fs = std::filesystem;

void write_json(Report& report, const Method& method, const FormatInfo& input, const Truth& truth,
                Number value, std::optional<int> grid) {
  const Measurement m = judge(method, input, truth, value, 0, grid);
  report.text = json_line(result_json(m, input, truth));
  if (const auto broken = failure(m)) report.failures.push_back(*broken);
}

bool is_same_path(const std::string& a, const std::string& b) {
  const auto whole = [](const std::string& path) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  return !b.empty() && whole(a) == whole(b);
}

/// Returns what went wrong; empty if the partial is saved.
std::string save(const Partial& partial, const std::string& path) try {
  const std::vector<std::byte> bytes = partial.serialise();
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return {};
} catch (const OutputError& error) {
  return error.what();
}

/// Reads a partial of the method that begins at element 0.
Partial saved_partial(const std::string& path, const Method& method) {
  const std::string otherwise = "leave out --resume to start at the first element";
  std::ifstream in{path, std::ios::binary};
  if (!in) throw InputError{path, "cannot be read; " + otherwise};
  std::ostringstream bytes;
  bytes << in.rdbuf();
  try {
    Partial partial = Partial::deserialise(std::as_bytes(std::span{bytes.view()}), method.backend);
    if (const std::string& name = partial.method().name; name != method.name)
      throw InputError{path, "holds a partial of " + name + ", not of " + method.name + "; pass --method " +
                                 name + ", or " + otherwise};
    if (partial.begin() != 0)
      throw InputError{path, "begins at element " + std::to_string(partial.begin()) + "; " + otherwise};
    return partial;
  } catch (const std::invalid_argument& damaged) {
    const std::string_view reason{damaged.what()};  // begins with "samesum: "
    throw InputError{path, std::string{reason.substr(reason.find(' ') + 1)} + "; " + otherwise};
  }
}

/// Returns the partial from which --resume goes on, or that of no elements, and passes over its elements.
Partial start(ElementReader& elements, const Method& method, const SumOptions& options) {
  const bool anew = options.resume.empty() ||
                    (is_same_path(options.resume, options.save_partial) && !fs::exists(options.resume));
  if (anew) return Partial{method, 0, options.grid};
  const Partial partial = saved_partial(options.resume, method);
  if (const std::uint64_t present = elements.skip(partial.end()); present < partial.end())
    throw InputError{options.resume, "covers " + std::to_string(partial.end()) +
                                         " elements, but FILE has only " + std::to_string(present) +
                                         "; resume with the file of the run that saved it"};
  return partial;
}

[[noreturn]] void refuse_partial_of_rounded(const SumOptions& options) {
  throw InputError{options.files.front(),
                   "has integers beyond 2^53, whose sum cannot be saved or resumed; leave out --save-partial "
                   "and --resume, or pass --format fp64 to round them"};
}

/// Sums portions as they are read. Adds them to `truth` too, unless that is null. A save that fails on the
/// way is tried again a second later; only the last one counts.
Number sum_portions(ElementReader& elements, const Method& method, const SumOptions& options, Truth* truth,
                    Report& report) {
  using Clock = std::chrono::steady_clock;
  Partial partial = start(elements, method, options);
  Clock::time_point last_saved = Clock::now();
  std::size_t rounded = 0;
  while (elements.next()) {
    const Column& portion = elements.portion();
    if (truth) truth->add(portion.values());
    partial.add(portion.values(), {.threads = options.threads});
    if (method.accumulator != "exact") {
      rounded += portion.rounded();
    } else if (!portion.lost.empty()) {
      if (!options.save_partial.empty() || !options.resume.empty()) refuse_partial_of_rounded(options);
      for (const Values& lost : portion.lost_values()) {
        if (truth) truth->add_parts(lost);
        partial.add(lost, {.threads = options.threads});
      }
    }
    if (options.save_partial.empty() || Clock::now() - last_saved < std::chrono::seconds{1}) continue;
    static_cast<void>(save(partial, options.save_partial));
    last_saved = Clock::now();
  }
  if (!options.save_partial.empty())
    if (const std::string wrong = save(partial, options.save_partial); !wrong.empty())
      report.failures.push_back(wrong);
  report.notes = rounding_notes(rounded);
  return partial.finish({.threads = options.threads});
}

/// Sums with a method that has no partials, or needs all elements to find its grid.
Number sum_at_once(ElementReader& elements, const Method& method, const SumOptions& options, Truth* truth,
                   Report& report) {
  const Column column = read_all(elements);
  if (truth) truth->add(column.values());
  report.notes = rounding_notes(column.rounded());
  return method(column.values(), {.threads = options.threads, .grid = options.grid});
}

}  // namespace

Report sum_command(const SumOptions& options) try {
  check_threads(options.threads);
  if (!options.save_partial.empty()) check_output("--save-partial", options.save_partial, options.files);
  const FormatInfo* format = format_named(options.format);
  check_before_reading(format, [&](const FormatInfo& f) { sum_named(options.method, f, "--method"); });
  const std::unique_ptr<ElementReader> elements = open_elements(options.files, format, options.table);
  const Method& method = sum_named(options.method, elements->format(), "--method");
  const bool needs_partial = !options.save_partial.empty() || !options.resume.empty();
  Truth truth;
  // A partial of fixed_point needs a grid; without one the elements are read first.
  const bool has_partials =
      method.promise >= Promise::everywhere && (method.accumulator != "fixed_point" || options.grid);
  const auto sum = has_partials || needs_partial ? sum_portions : sum_at_once;
  Report report;
  const Number value = sum(*elements, method, options, options.json ? &truth : nullptr, report);
  if (options.json)
    write_json(report, method, elements->format(), truth, value, options.grid);
  else
    report.text = (options.hex ? hexadecimal(value) : shortest_decimal(value)) + '\n';
  return report;
} catch (const std::bad_alloc&) {
  throw InputError{options.files.front(), "does not fit in memory"};
}

}  // namespace samesum::harness
