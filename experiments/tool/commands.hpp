/// The commands of the command-line tool: each takes parsed options and returns its output as text.
///
/// All commands throw UsageError for wrong options, InputError for files that cannot be read, OutputError for
/// files that cannot be written, and std::invalid_argument for unknown methods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/input.hpp"
#include "harness/names.hpp"
#include "harness/results.hpp"
#include "tool/ranks.hpp"

namespace samesum::harness {

struct Report {
  std::string text;                     ///< for standard output
  std::vector<std::string> failures;    ///< failed checks, one line each
  std::vector<std::string> notes = {};  ///< for standard error, one line each
};

struct ListOptions {
  std::string which;  ///< an operation, a part of a name, or a glob; empty: all methods
  bool all = false, unsupported = false, json = false;
};

/// Lists the selected methods as a table of 80 columns or as JSON. Without a selection, the table has a row
/// for each operation with the names of its methods in short; with `all` it has a row for each method, and
/// then lists peers, and what is absent, with the reasons. With `unsupported`, lists the combinations that
/// are not methods, grouped by reason. Throws UsageError with the reason if nothing is selected.
Report list_command(const ListOptions& options);

struct SumOptions {
  std::vector<std::string> files;  ///< one vector together
  std::string format, method = "exact";
  TableOptions table = {};
  std::optional<int> grid = {};  ///< for fixed_point
  int threads = 0;               ///< 0: chosen by the library
  std::string save_partial;      ///< file for the Partial of the elements so far; empty: none
  std::string resume;            ///< file with the Partial to go on from; empty: none
  bool hex = false, json = false;
  const Ranks* ranks = nullptr;  ///< the ranks that share the elements; nullptr for one process
};

/// Sums files with one method. As JSON, the result comes with its error and its bound, and is checked
/// against them; the exact sum needs all elements, so `resume` must then be empty.
///
/// Sums the files while reading them, in portions, unless the method has no partials. Saves the partial once
/// per second and at the end, so that a run that was killed can be resumed, with the same bits. `resume` need
/// not exist yet if it is `save_partial`.
///
/// With `ranks`, each of them sums its part of the files, and all return the same report. Files whose number
/// of elements is known only when they have been read (texts, pipes) are summed by rank 0 alone.
Report sum_command(const SumOptions& options);

struct ReduceOptions {
  std::string operation = {};           ///< one of those of the catalogue
  std::vector<std::string> files = {};  ///< one vector together; for two inputs exactly two vectors
  std::string format = {};
  TableOptions table = {};
  std::optional<std::string> method = {};  ///< unset: the default one
  std::string axis = {};                   ///< "rows", "columns" or a number; empty: all elements
  std::string output = {};                 ///< .npy file for the results; empty: none
  int threads = 0;                         ///< 0: chosen by the library
  double ddof = 0;                         ///< for moments
  bool exclusive = false;                  ///< for scans
  std::optional<int> grid = {};            ///< for fixed_point
  std::size_t window = 0;                  ///< for rolling operations, as the next two
  std::optional<std::size_t> min_periods = {};
  bool centred = false;
  bool hex = false, json = false, bound = false;
};

/// Prints the sum, Σwx, or the mean, Σwx / Σw, of the column of a table with the weights in the column
/// `table.by`: exact sums of exact products in fp64, rounded once. Reads `operation`, `files`, `table`, `hex`
/// and `json`.
Report weighted_command(const ReduceOptions& options);

/// The elements of one input, and the lengths of their axes.
struct InputArray {
  Column column;
  std::vector<std::uint64_t> shape;
};

/// The names of files, with the column that is read of a table: "t.csv:price".
std::vector<std::string> names_of(const std::vector<std::string>& files, const TableOptions& table);

/// Reads the inputs of an operation: for two inputs, two files of one format and shape, whose elements are
/// pairs of records: one that is left out of a file is left out of both; otherwise all files as one vector.
std::vector<InputArray> read_inputs(const std::string& operation, const std::vector<std::string>& files,
                                    const FormatInfo* format, const TableOptions& table = {});

/// The elements of these arrays, which must outlive the result.
Inputs inputs_of(const std::vector<InputArray>& arrays);

/// The note that so many integers were rounded.
std::string rounded_integers(std::size_t count);

/// The notes of readers, and a note if integers were rounded to fp64. `is_rounded` is false for a method that
/// adds them unrounded.
std::vector<std::string> notes_on(std::vector<std::string> notes, std::size_t rounded);
std::vector<std::string> notes_on(const std::vector<InputArray>& arrays, bool is_rounded = true);

/// Reduces files with one method of any operation: all elements, or those along an axis of an array. As text,
/// a line per result, with its error bound if `bound` is set.
Report reduce_command(const ReduceOptions& options);

/// Reduces, by a method of an operation by key, the elements of a table that have the same text in the column
/// `table.by`. As text, a line per key, in the order in which the keys appear first: the key, a tab, and the
/// result, with its error bound if `bound` is set. Ignores `axis` and `output`.
Report by_key_command(const ReduceOptions& options);

/// The method that the options name, or else the default one, for elements of a format. Throws what
/// `method_named` and `method_without_name` throw.
const Method& chosen_method(const ReduceOptions& options, const FormatInfo& input);

/// The elements without their signs.
Column absolute(Values x);

struct CompareOptions {
  std::vector<std::string> files;  ///< one vector together; for two inputs exactly two vectors
  std::string operation = "sum", format, methods = "*", output;
  TableOptions table = {};
  MeasureOptions measure{.repeats = 5, .threads = 0};
  bool all = false;  ///< whether the text has every row
  bool json = false, csv = false;
};

/// Compares methods of one operation on files: results, errors, bounds, distinct bit patterns and times. If
/// `output` is set, writes there and returns no text.
Report compare_command(const CompareOptions& options);

/// Measures all methods of an operation that match the globs on data whose exact result is known. Throws
/// UsageError, which names `option` as the origin of the globs, if no matching method takes the format of the
/// data.
Comparison compare(const std::vector<std::string>& files, const Inputs& inputs, const Truth& truth,
                   const std::string& methods, MeasureOptions options,
                   const std::string& option = "--methods", const std::string& operation = "sum");

/// Restores a comparison from the row that comparison_json wrote for the same data in this build.
Comparison comparison_of(const Json& row, const Inputs& inputs, const Truth& truth);

/// The comparison as a table of 80 columns with a recommendation and a legend. Unless `all` is set, the table
/// has at most ten rows: `samesum compare --help` says which.
std::string as_text(const Comparison& comparison, bool all);

struct ReportOptions {
  std::string folder;     ///< empty: only the results of other machines
  std::string committed;  ///< results of other machines; empty: those of samesum
  std::string output;     ///< empty: `folder`
  bool alone = false;     ///< leave out the results of other machines
};

/// Replaces this process with notebooks/report.py, which writes report.html and report.md. Runs it with the
/// Python of build/venv if that has the packages, else with python3. Throws UsageError if the folder, the
/// script or the packages are missing.
[[noreturn]] void report_command(const ReportOptions& options);

struct ChooseOptions {
  std::string operation = "sum";
  TableOptions table = {};
  std::vector<std::string> files = {};  ///< if given, the data set length, input, condition and magnitudes
  std::string format = {};              ///< of the files
  std::optional<std::int64_t> length;
  std::string input = "fp64", promise = "everywhere", backend, costs;
  std::optional<double> relative_error, ulps, condition, magnitudes;
  double probability = 1;
  bool json = false;
};

/// Names the cheapest method that satisfies a tolerance and a promise, and lists the others with reasons.
Report choose_command(const ChooseOptions& options);

struct CalibrateOptions {
  std::string operation = "sum";
  std::string out = {};  ///< empty: calibration_file()
  std::string methods = "*";
  bool quick = false;
};

/// Measures the time of each method of an operation on this machine and writes a file of costs for
/// choose_command. Keeps the costs of other operations in an existing file if they were measured on this
/// machine. Writes the whole file or nothing.
Report calibrate_command(const CalibrateOptions& options);

/// A command of the tool as a shell completes it.
struct CommandWords {
  std::string name;
  std::vector<std::string> options;  ///< as they are typed
};

/// A script that makes a shell, "bash" or "zsh", complete the commands, their options, and the values that
/// the catalogue has for these; otherwise names of files. Throws UsageError for another shell.
std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace samesum::harness
