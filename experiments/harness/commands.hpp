/// What the command-line tool does, without the command line: each command gives its output as text.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/input.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// A wrong argument: what() is one line that names it and the remedy.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Report {
  std::string text;                   ///< for standard output
  std::vector<std::string> failures;  ///< checks that failed, a line each
};

Report list_command(bool json);

struct SumOptions {
  std::string file, format, method = "exact";
  int threads = 0;
  bool hex = false, json = false;
};
Report sum_command(const SumOptions& options);

struct CompareOptions {
  std::string file, format, methods = "*", output;
  MeasureOptions measure{.repeats = 5, .threads = 0};
  bool json = false, csv = false;
};
Report compare_command(const CompareOptions& options);

/// All methods that the globs match, on data whose exact sum is known. Throws UsageError, by the option that
/// the globs are from, where none takes such data.
Comparison compare(const std::string& name, const Column& column, const Truth& truth,
                   const std::string& methods, MeasureOptions options,
                   const std::string& option = "--methods");

/// What a row says that comparison_json made of the same data in this build.
Comparison comparison_of(const Json& row, Values x, const Truth& truth);

/// A table of 80 columns with its legend and advice.
std::string as_text(const Comparison& comparison);

struct ReportOptions {
  std::string folder, output;
  bool alone = false;  ///< without the committed results of other machines
};
/// Becomes notebooks/report.py of the source tree, in the Python of build/venv or else python3.
[[noreturn]] void report_command(const ReportOptions& options);

struct ChooseOptions {
  std::string file, format;  ///< empty, or data from which length, input, condition and magnitudes are taken
  std::int64_t length = 0;
  std::string input = "fp64", promise = "everywhere", backend, costs;
  std::optional<double> relative_error, ulps, magnitudes;
  double probability = 1, condition = 1;
  bool json = false;
};
Report choose_command(const ChooseOptions& options);

struct CalibrateOptions {
  std::string out;  ///< empty for calibration_file()
  bool quick = false;
};
Report calibrate_command(const CalibrateOptions& options);

// What the commands share.

/// The names of all formats.
std::string format_names(const std::string& separator);

/// The names of all promises, the weakest first.
std::string promise_names();
std::string backend_names();

/// For CLI11, which takes -1 for 2^64 - 1 and more digits for the largest number: what is wrong, or "".
std::string is_whole_number(const std::string& text);

Promise promise_named(const std::string& name);

/// nullptr for an empty name, which means the file's own format.
const FormatInfo* format_named(const std::string& name);

/// "exact", with or without a backend, means the exact sum in the input's format.
std::string complete_method(const std::string& name, const FormatInfo& input);

/// * stands for any text, ? for any character.
bool matches(std::string_view glob, std::string_view name);

/// The variants and peers whose full names match one of the globs, which are separated by commas. A glob
/// without "@" means the names without "@cpu" and "@cuda", but for those that are slow by their nature; if no
/// such name matches, it is taken for the full name. A name without *, ? and @ means "@cpu". Peers that do
/// not take this input are left out, so the result may be empty. Throws UsageError where a glob matches
/// nothing for any input, and what `find` throws for a name without * and ? that no variant has.
std::vector<const Variant*> variants_matching(const std::string& globs, const FormatInfo& input,
                                              const std::string& option = "--methods");

/// The same for an experiment that gives each method elements of the method's own format; "exact" means all
/// four. Empty means all on a CPU and on a GPU, but for those that are slow by their nature, and the peers.
std::vector<const Variant*> variants_in_own_format(const std::string& globs);

void check_threads(int threads);

}  // namespace samesum::harness
