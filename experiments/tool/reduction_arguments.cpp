/// The commands of operations: sum, the other reductions, and those by key.
#include <algorithm>
#include <cctype>
#include <memory>

#include "harness/input.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "tool/arguments.hpp"

namespace samesum::harness {
namespace {

void add_method(CLI::App* command, ReduceOptions& options) {
  const FormatInfo& format = format_info<fp32>();
  const Method& usual = *default_method(options.operation, format);
  command
      ->add_option("--method", options.method,
                   "A name from `samesum list '" + options.operation +
                       "/*'`\n(default for fp32: " + short_name(usual) + ")")
      ->type_name("NAME");
}

/// Adds --grid if the operation has methods with one.
void add_grid(CLI::App* command, ReduceOptions& options) {
  const auto all = methods(options.operation);
  if (std::ranges::any_of(all, [](const Method& m) { return m.accumulator == "fixed_point"; }))
    command
        ->add_option(
            "--grid", options.grid,
            all.front().takes_window
                ? "For fixed_point, which needs it: round terms to\nmultiples of 2^N"
                : "For fixed_point: round terms to multiples of 2^N\n(default: found from the largest term)")
        ->type_name("N");
}

/// Adds the options of rolling operations.
void add_window(CLI::App* command, ReduceOptions& options) {
  command
      ->add_option("--window", options.window,
                   "Number of elements of a window, which ends with\nthe element of its result")
      ->required()
      ->check(is_positive_number, "")
      ->type_name("N");
  command
      ->add_option("--min-periods", options.min_periods,
                   "The result is nan if a window has fewer elements\n(default: the window)")
      ->check(is_whole_number, "")
      ->type_name("N");
  command->add_flag("--center", options.centred, "The element is in the middle of its window");
}

/// Adds the options that say how results are printed.
void add_printing(CLI::App* command, ReduceOptions& options) {
  const Method& first = methods(options.operation).front();
  if (first.keeps_format || first.returns_index) {
    command->add_flag("--json", options.json, "Print one JSON object");
    return;
  }
  CLI::Option* hex = command->add_flag("--hex", options.hex, "Print results in hexadecimal, as %a does");
  CLI::Option* bound = command->add_flag("--bound", options.bound,
                                         "Print behind each result a bound, an upper limit\non |result - "
                                         "exact result| that is proven for the\ngiven elements");
  command
      ->add_flag("--json", options.json,
                 first.takes_keys ? "Print one JSON object with bounds"
                                  : "Print one JSON object with bits and bound")
      ->excludes(hex)
      ->excludes(bound);
}

/// Adds the options that all operations without keys share.
CLI::App* add_reduction(CLI::App& app, const std::shared_ptr<ReduceOptions>& options,
                        const std::string& description) {
  const Method& first = methods(options->operation).front();
  CLI::App* command = app.add_subcommand(options->operation, description);
  add_data(command, options->files, options->format, options->table,
           first.inputs == 2 ? "exactly two, of one shape" : one_vector);
  command->get_option("file")->required(first.inputs == 2);
  add_method(command, *options);
  command
      ->add_option("--axis", options->axis,
                   first.keeps_format
                       ? "rows, or -1 for the last axis of an array, which\nis the default and the only one"
                       : std::string{first.is_scan()      ? "Scan"
                                     : first.takes_window ? "Move in"
                                                          : "Reduce"} +
                             " each row, each column, or along axis N of\nan array (-1 is the last); a "
                             "line per result")
      ->type_name(first.keeps_format ? "rows|-1" : "rows|columns|N");
  if (first.takes_window) add_window(command, *options);
  if (first.is_scan())
    command->add_flag("--exclusive", options->exclusive,
                      "Leave out the element itself; the first result\nis that of no elements");
  add_grid(command, *options);
  command
      ->add_option("--output", options->output,
                   "Write the results to a .npy file instead" +
                       std::string{first.results > 1 ? ",\nmean and variance along its last axis" : ""})
      ->type_name("FILE.npy");
  if (first.results > 1 || options->operation == "rolling_var")
    command->add_option("--ddof", options->ddof, "Divide the sum of squares by n - D (default 0)")
        ->type_name("D");
  add_threads(command, options->threads);
  add_printing(command, *options);
  return command;
}

std::string capitalised(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

CLI::Option* add_weights(CLI::App* command, ReduceOptions& options) {
  return command
      ->add_option(
          "--weights", options.table.by,
          "Weigh each number of a table by that in another\ncolumn, in fp64; the result is rounded once")
      ->check(is_given, "")
      ->type_name("NAME|N");
}

Report weighted(const CLI::App* command, ReduceOptions options) {
  for (const char* other :
       {"--method", "--format", "--axis", "--grid", "--output", "--bound", "--save-partial", "--resume"})
    if (const CLI::Option* const found = command->get_option_no_throw(other); found && found->count() > 0)
      throw UsageError{std::string{other} + ": not with --weights; leave one of them out"};
  options.table.by_is_number = true;
  return weighted_command(options);
}

/// Adds the options of sums that are saved and resumed.
void add_partials(CLI::App* command, SumOptions& options) {
  CLI::Option *axis = command->get_option("--axis"), *output = command->get_option("--output"),
              *bound = command->get_option("--bound"), *json = command->get_option("--json");
  command
      ->add_option("--save-partial", options.save_partial,
                   "Save the partial, the state of the elements\nsummed so far, about once per second and at "
                   "the\nend; replaces an earlier file")
      ->type_name("PATH")
      ->excludes(axis)
      ->excludes(output)
      ->excludes(bound);
  command
      ->add_option("--resume", options.resume,
                   "Go on from the partial at PATH, which must exist\nunless --save-partial names it too")
      ->type_name("PATH")
      ->excludes(json)
      ->excludes(axis)
      ->excludes(output)
      ->excludes(bound);
}

constexpr char footer_of_sum[] =
    "Prints the shortest decimal that reads back as the same number in its format.\n"
    "The method exact rounds once, to the format of the input.\n\n"
    "Reads and sums in portions, so that a file of any length needs less than 64 MB.\n"
    "Exceptions are read as a whole: arrays in Fortran order, .npy files that are\n"
    "pipes or compressed, files for a method whose bits differ from run to run, such\n"
    "as atomic/plain/fp64, and files with --axis, --output or --bound.\n\n"
    "Under mpirun, each rank sums its part of the files (.npy, .npz and raw ones; a\n"
    "text or a pipe is summed by one rank), and one prints the same bits.\n\n"
    "A resumed run prints the same bits as an uninterrupted one. It needs the same\n"
    "--method and --format, and a file whose elements up to the saved partial have\n"
    "not changed; --format and the elements are not checked. Further elements may\n"
    "have been appended, to a text after a newline.\n\nExamples:\n"
    "  samesum sum data.npy\n  seq 100 | samesum sum\n"
    "  samesum sum data.csv --column price\n  samesum sum archive.npz:weights\n"
    "  samesum sum data.f32 --method tree/kahan/fp32 --json\n"
    "  samesum sum data.f64 --save-partial sum.partial --resume sum.partial\n"
    "  mpirun -n 8 samesum sum data.f64";

/// Sums in portions, or, with options that need all elements at once, reduces them.
Report sum(const CLI::App* command, ReduceOptions reduction, SumOptions options) {
  if (options.ranks)
    for (const char* name :
         {"--weights", "--axis", "--output", "--bound", "--json", "--save-partial", "--resume"})
      if (command->get_option(name)->count() > 0)
        throw UsageError{std::string{name} +
                         ": not on several ranks; leave it out, or run samesum without the launcher"};
  set_default_input(reduction.files, options.ranks);
  if (command->get_option("--weights")->count() > 0) return weighted(command, reduction);
  if (!reduction.axis.empty() || !reduction.output.empty() || reduction.bound)
    return reduce_command(reduction);
  options.files = reduction.files;
  options.format = reduction.format;
  options.table = reduction.table;
  options.method = reduction.method.value_or(options.method);
  options.grid = reduction.grid;
  options.threads = reduction.threads;
  options.hex = reduction.hex;
  options.json = reduction.json;
  return sum_command(options);
}

}  // namespace

void add_reductions(CLI::App& app, Report& report) {
  for (const std::string& operation : operations()) {
    if (operation == "sum") continue;
    const Method& m = methods(operation).front();
    const auto options = std::make_shared<ReduceOptions>();
    options->operation = operation;
    CLI::App* command = add_reduction(app, options, capitalised(m.summary));
    command->footer(
        std::string{m.results > 1 ? "The standard deviation is the root of the rounded variance.\n" : ""} +
        "Results have the format of the method. The files are read into memory.\n\nExamples:\n  samesum " +
        operation +
        (m.inputs == 2    ? " x.npy y.npy\n"
         : m.takes_window ? " data.npy --window 7\n"
         : m.keeps_format ? " x.npy --output y.npy\n"
                          : " data.npy\n  samesum " + operation + " matrix.npy --axis rows\n") +
        "  samesum list '" + operation + "/*'");
    CLI::Option* const weights = operation == "mean" ? add_weights(command, *options) : nullptr;
    command->callback([=, &report] {
      set_default_input(options->files);
      report = weights && weights->count() > 0 ? weighted(command, *options) : reduce_command(*options);
    });
  }
}

void add_reductions_by_key(CLI::App& app, Report& report) {
  for (const std::string& operation : operations(true)) {
    const Method& m = methods(operation).front();
    const auto options = std::make_shared<ReduceOptions>();
    options->operation = operation;
    options->table.counts = m.inputs == 0;
    CLI::App* command = app.add_subcommand(operation, capitalised(m.summary));
    command
        ->add_option("file", options->files,
                     "Tables: .txt .csv .tsv, also with .gz;\n" + extensions_without_gzip() +
                         "; - for text; the\nrecords of several files follow each other\n" + default_input)
        ->type_name("FILE");
    command->add_option("--by", options->table.by, by_help)
        ->required()
        ->check(is_given, "")
        ->type_name("NAME|N");
    if (m.inputs > 0) {
      add_table(command, options->table);
      add_format(command, options->format);
      add_method(command, *options);
    } else {
      command->add_flag("--header", options->table.header, header_help);
      add_where(command, options->table);
    }
    add_grid(command, *options);
    add_threads(command, options->threads);
    add_printing(command, *options);
    command->footer(
        "Prints a line per key, in the order in which the keys appear first: the key, a\n"
        "tab and the result. The files are read into memory.\n\nExamples:\n  samesum " +
        operation + " sales.csv --by city" +
        (m.inputs > 0 ? " --column price\n  samesum " + operation + " sales.csv --by 1 --column 3 --header\n"
                      : "\n") +
        "  samesum list '" + operation + "/*'");
    command->callback([=, &report] {
      set_default_input(options->files);
      report = by_key_command(*options);
    });
  }
}

void add_sum(CLI::App& app, Report& report, const Ranks* ranks) {
  const auto reduction = std::make_shared<ReduceOptions>();
  reduction->operation = "sum";
  CLI::App* command = add_reduction(app, reduction, "Sum files, exactly unless a method is named");
  const auto options = std::make_shared<SumOptions>();
  options->ranks = ranks;
  add_partials(command, *options);
  add_weights(command, *reduction);
  command->footer(footer_of_sum);
  command->callback([=, &report] { report = sum(command, *reduction, *options); });
}

}  // namespace samesum::harness
