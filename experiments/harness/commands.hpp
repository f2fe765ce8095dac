/// The commands of the command-line tool: each takes parsed options and returns its output as text.
///
/// All commands throw UsageError for wrong options, InputError for files that cannot be read, OutputError for
/// files that cannot be written, and std::invalid_argument for unknown methods.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/input.hpp"
#include "harness/ranks.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// A wrong argument. what() is one line that names the argument and the remedy.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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

/// The library's default method of an operation. Throws UsageError if it has none for such elements.
const Method& method_without_name(const std::string& operation, const FormatInfo& input);

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

/// The operations with one number or index as their result, which a tolerance can refer to.
std::vector<std::string> operations_to_choose_for();

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

// --- names and globs, shared by the commands and the experiments --------------------------------------

/// The operations of the catalogue, in its order: those without keys, or those by key.
std::vector<std::string> operations(bool by_key = false);

/// The names of all formats.
std::string format_names(const std::string& separator);

/// The names of all promises, weakest first.
std::string promise_names(const std::string& separator);
std::string backend_names();

/// Validator of an option for CLI11: returns an error message, or "" for a whole number of at most 18 digits.
/// CLI11 alone would read -1 as 2^64 - 1, and a number with more digits as the largest one.
std::string is_whole_number(const std::string& text);
/// The same for a number of at least 1.
std::string is_positive_number(const std::string& text);

/// Validator of an option for CLI11: returns an error message, or "" for a text that is not empty.
std::string is_given(const std::string& text);

// What --help says of the options of TableOptions.
inline constexpr char column_help[] =
    "Column of a table: its name in the first line, or\nits number, counted from 1";
inline constexpr char by_help[] =
    "Column of the keys, which may be any text: its\nname in the first line, or its number";
inline constexpr char header_help[] = "The first line of a table holds names of columns";

/// Throws UsageError if there is no promise with this name.
Promise promise_named(const std::string& name);

/// Returns nullptr for an empty name, which stands for the format of the file. Throws UsageError for an
/// unknown name.
const FormatInfo* format_named(const std::string& name);

/// Whether the glob matches the whole name. * stands for any text, ? for any character.
bool matches(std::string_view glob, std::string_view name);

/// Splits a list of globs at its commas.
std::vector<std::string> globs_in(const std::string& list);

/// Whether the glob matches the full name of a method. A glob without "@" is compared with the name without
/// the backend. The name of the operation, a sum by default, may be left out.
bool matches_method(const std::string& glob, const std::string& full_name,
                    const std::string& operation = "sum");
bool matches(const std::string& glob, const Method& method);

/// The reason why a glob matches no method, for example that its backend is absent; empty if none is known.
std::string reason_for_no_match(const std::string& glob);

/// Name in a table of one operation: "tree/kahan/fp32" for mean/tree/kahan/fp32@cpu, "exact/fp32@cuda".
std::string short_name(const Method& method);

/// Name in a table of one format: "tree/kahan" for sum/tree/kahan/fp32@cpu, "eigen@peer" for eigen/fp32@peer.
std::string name_without_format(const Method& method);

/// The method of the operation with this name. A name without a format stands for the format of the input.
/// Throws UsageError if the name is that of another operation, and what `find` throws.
const Method& method_named(const std::string& operation, const std::string& name, const FormatInfo& input,
                           const std::string& option);
const Method& sum_named(const std::string& name, const FormatInfo& input, const std::string& option);

/// Throws UsageError, which names --operation, unless the operation is in the list, whose meaning is `which`.
void check_operation(const std::string& operation, const std::vector<std::string>& list,
                     const std::string& which);

/// Checks names before a file is read. If the format is not known yet, calls `check` with each format, and
/// throws only if it throws the same message for all: another message may depend on the format of the file.
void check_before_reading(const FormatInfo* format, const std::function<void(const FormatInfo&)>& check);

/// The methods of an operation that match one of the globs, including those of peers for vectors. Without an
/// operation, sums, for a command that has no --operation.
///
/// A glob without "@" excludes the backend "reference" and inherently slow methods; if it then matches
/// nothing, it is compared with full names. A name without * and ? stands for one method: without "@", the
/// one on the CPU; without a format, the one in the format of the input. Peers that do not take this input
/// are left out, so the result may be empty. Throws UsageError if a glob matches nothing for any input, and
/// what `method_named` throws.
std::vector<const Method*> methods_matching(const std::string& globs, const FormatInfo& input,
                                            const std::string& option = "--methods",
                                            const std::optional<std::string>& operation = {});

/// The methods of an operation that match one of the globs, for an experiment in which each reduces elements
/// of its own format. A name without a format stands for all four. An empty list stands for the peers and for
/// all methods on the CPU and on the GPU except inherently slow ones.
std::vector<const Method*> methods_in_own_format(const std::string& globs,
                                                 const std::optional<std::string>& operation = {});

/// Throws OutputError if the file of an option cannot be written, and UsageError if it is "-", or one of the
/// files with the elements. Called before hours of work.
void check_output(const std::string& option, const std::string& path, const std::vector<std::string>& inputs);

/// Throws UsageError if the number is negative.
void check_threads(int threads);

}  // namespace samesum::harness
