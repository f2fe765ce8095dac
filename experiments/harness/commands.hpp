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

/// `glob` is empty for all methods.
Report list_command(const std::string& glob, bool json);

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
  std::string methods = "*";
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

/// * stands for any text, ? for any character.
bool matches(std::string_view glob, std::string_view name);

/// Globs with commas between them.
std::vector<std::string> globs_in(const std::string& list);

/// Whether a glob means the method. Without "@" it means the names without a backend, and a sum is named with
/// and without "sum/".
bool matches(const std::string& glob, const Method& method);

/// In a table about sums: "tree/kahan/fp32" for sum/tree/kahan/fp32@cpu, "exact/fp32@cuda".
std::string short_name(const Method& method);

/// In a table of one format: "tree/kahan" for sum/tree/kahan/fp32@cpu, "eigen@peer" for eigen/fp32@peer.
std::string name_without_format(const Method& method);

/// The sum of that name; a name without a format means that of the input. Throws UsageError where it names
/// another operation, and as `find` does.
const Method& sum_named(const std::string& name, const FormatInfo& input, const std::string& option);

/// The sums, ours and those of peers, that one of the globs means. A glob without "@" leaves out the backend
/// "reference" and what is slow by its nature; if no such name matches, it is taken for the full name. A name
/// without * and ? means one method: without "@" that on the CPU, without a format that of the input. Peers
/// that do not take this input are left out, so the result may be empty. Throws UsageError where a glob
/// matches nothing for any input, and as `sum_named` does.
std::vector<const Method*> methods_matching(const std::string& globs, const FormatInfo& input,
                                            const std::string& option = "--methods");

/// The same for an experiment that gives each method elements of the method's own format; a name without a
/// format means all four. Empty means all on a CPU and on a GPU, but for those that are slow by their nature,
/// and the peers.
std::vector<const Method*> methods_in_own_format(const std::string& globs);

void check_threads(int threads);

}  // namespace samesum::harness
