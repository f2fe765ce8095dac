/// The command-line tool: reduces files, and compares and chooses methods.
#include "samesum/samesum.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

#include "harness/build.hpp"
#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "tool/commands.hpp"

namespace {

using namespace samesum::harness;
using samesum::Method;

/// The ranks of this run; nullptr if there is one process. Only rank 0 prints.
const Ranks* ranks = nullptr;
bool prints() { return !ranks || ranks->rank() == 0; }

enum ExitCode { success = 0, check_failed = 1, bad_usage = 2 };

void add_format(CLI::App* command, std::string& format) {
  command->add_option("--format", format, "Round the elements to F first\n(" + format_names(", ") + ")")
      ->type_name("F");
}

CLI::Option* add_skip_missing(CLI::App* command, TableOptions& table) {
  return command->add_flag(
      "--skip-missing", table.skip_missing,
      "Leave out missing elements: in a table empty, NA,\nN/A, #N/A, NaN or null, in other files NaN");
}
CLI::Option* add_where(CLI::App* command, TableOptions& table) {
  const auto wrong = [](const std::string& text) {
    return samesum::harness::parse_condition(text) ? ""
                                                   : "'" + text +
                                                         "' is not a condition; write a column, one of < <= "
                                                         "> >= == !=, and a number: 'price > 0'";
  };
  return command
      ->add_option(
          "--where", table.where,
          "Read only the records of a table that meet a\ncondition, such as 'price >= 10' or '2 != 0'")
      ->check(wrong, "")
      ->type_name("'COLUMN OP NUMBER'");
}

/// Returns the options.
std::vector<CLI::Option*> add_table(CLI::App* command, TableOptions& table) {
  return {
      command->add_option("--column", table.column, column_help)->check(is_given, "")->type_name("NAME|N"),
      command->add_flag("--header", table.header, header_help), add_skip_missing(command, table),
      add_where(command, table)};
}

const std::string default_input = "(default: standard input unless it is a terminal)",
                  one_vector = "several files are one vector\n" + default_input;

/// Names standard input if no file is named. On several ranks, the launcher connects it.
void set_default_input(std::vector<std::string>& files) {
  if (!files.empty()) return;
  if (!ranks && isatty(STDIN_FILENO))
    throw UsageError{"FILE is missing; name one, pipe data to standard input, or give - to type them"};
  files = {"-"};
}

void add_data(CLI::App* command, std::vector<std::string>& files, std::string& format, TableOptions& table,
              const std::string& together = one_vector) {
  command
      ->add_option("file", files,
                   known_extensions() + ",\nalso with .gz; " + extensions_without_gzip() +
                       ";\n- for text, .npy or .npz; x.npz:y is member y;\n" + together)
      ->type_name("FILE");
  add_format(command, format);
  add_table(command, table);
}

void add_threads(CLI::App* command, int& threads) {
  command->add_option("--threads", threads, "Number of threads; 0 (default): automatic")->type_name("N");
}

void add_operation(CLI::App* command, std::string& operation, const std::string& which) {
  command->add_option("--operation", operation, "What the methods compute (default sum);\n" + which)
      ->type_name("NAME");
}

void add_list(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("list", "List the methods and their promises");
  auto options = std::make_shared<ListOptions>();
  command
      ->add_option(
          "methods", options->which,
          "An operation, a part of a name, or a pattern\nwith * and ?; lists the methods (default: a row\n"
          "for each operation)")
      ->type_name("METHODS");
  command->add_flag("--all", options->all, "List all methods");
  CLI::Option* unsupported = command->add_flag("--unsupported", options->unsupported,
                                               "List the combinations that are not methods,\nand why");
  command->add_flag("--json", options->json, "Print one JSON object")->excludes(unsupported);
  command->footer(
      "Examples:\n  samesum list\n  samesum list sum\n  samesum list kahan\n  samesum list 'dot/*@cpu'\n"
      "  samesum list 'sum/atomic/*' --unsupported\n  samesum list --json");
  command->callback([=, &report] { report = list_command(*options); });
}

void add_method(CLI::App* command, ReduceOptions& options) {
  const samesum::FormatInfo& fp32 = samesum::format_info<samesum::fp32>();
  const Method& usual = *samesum::default_method(options.operation, fp32);
  command
      ->add_option("--method", options.method,
                   "A name from `samesum list '" + options.operation +
                       "/*'`\n(default for fp32: " + short_name(usual) + ")")
      ->type_name("NAME");
}

/// Adds --grid if the operation has methods with one.
void add_grid(CLI::App* command, ReduceOptions& options) {
  const auto all = samesum::methods(options.operation);
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
  const Method& first = samesum::methods(options.operation).front();
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
  const Method& first = samesum::methods(options->operation).front();
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
  return samesum::harness::weighted_command(options);
}

/// Adds a command for each operation of the catalogue without keys but sum.
void add_reductions(CLI::App& app, Report& report) {
  for (const std::string& operation : operations()) {
    if (operation == "sum") continue;
    const Method& m = samesum::methods(operation).front();
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

/// Adds a command for each operation of the catalogue by key.
void add_reductions_by_key(CLI::App& app, Report& report) {
  for (const std::string& operation : operations(true)) {
    const Method& m = samesum::methods(operation).front();
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

void add_sum(CLI::App& app, Report& report) {
  const auto reduction = std::make_shared<ReduceOptions>();
  reduction->operation = "sum";
  CLI::App* command = add_reduction(app, reduction, "Sum files, exactly unless a method is named");
  const auto options = std::make_shared<SumOptions>();
  CLI::Option *axis = command->get_option("--axis"), *output = command->get_option("--output"),
              *bound = command->get_option("--bound"), *json = command->get_option("--json");
  command
      ->add_option("--save-partial", options->save_partial,
                   "Save the partial, the state of the elements\nsummed so far, about once per second and at "
                   "the\nend; "
                   "replaces an earlier file")
      ->type_name("PATH")
      ->excludes(axis)
      ->excludes(output)
      ->excludes(bound);
  command
      ->add_option("--resume", options->resume,
                   "Go on from the partial at PATH, which must exist\nunless --save-partial names it too")
      ->type_name("PATH")
      ->excludes(json)
      ->excludes(axis)
      ->excludes(output)
      ->excludes(bound);
  CLI::Option* const weights = add_weights(command, *reduction);
  command->footer(
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
      "  mpirun -n 8 samesum sum data.f64");
  command->callback([=, &report] {
    for (const CLI::Option* option : {weights, axis, output, bound, json,
                                      command->get_option("--save-partial"), command->get_option("--resume")})
      if (ranks && option->count() > 0)
        throw UsageError{option->get_name() +
                         ": not on several ranks; leave it out, or run samesum without the launcher"};
    set_default_input(reduction->files);
    if (weights->count() > 0) {
      report = weighted(command, *reduction);
      return;
    }
    if (!reduction->axis.empty() || !reduction->output.empty() || reduction->bound) {
      report = reduce_command(*reduction);
      return;
    }
    options->files = reduction->files;
    options->format = reduction->format;
    options->table = reduction->table;
    options->method = reduction->method.value_or(options->method);
    options->grid = reduction->grid;
    options->threads = reduction->threads;
    options->hex = reduction->hex;
    options->json = reduction->json;
    options->ranks = ranks;
    report = sum_command(*options);
  });
}

void add_compare(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("compare", "Compare results, errors and speeds of methods");
  auto options = std::make_shared<CompareOptions>();
  add_data(command, options->files, options->format, options->table);
  add_operation(command, options->operation, "dot takes two files, others take files as one\nvector");
  command
      ->add_option("--methods", options->methods,
                   "Patterns with * and ? (default *); a pattern\nwithout @ selects the CPU and the GPU")
      ->type_name("GLOB,…");
  CLI::Option* repeat = command
                            ->add_option("--repeat", options->measure.repeats,
                                         "Timed runs per method (default 5; fewer if slow)")
                            ->type_name("R");
  add_threads(command, options->measure.threads);
  command->add_flag("--all", options->all, "Print a row for every method (default: ten rows)");
  CLI::Option* csv = command->add_flag("--csv", options->csv, "Print comma-separated values");
  command->add_flag("--json", options->json, "Print one JSON object on one line")->excludes(csv);
  command
      ->add_option("--output", options->output,
                   "Write to PATH instead; an existing file is\nreplaced only if the command succeeds")
      ->type_name("PATH");
  command->footer(
      "The smallest error comes first. Exits with 1 if a bound or a promise is broken.\n\n"
      "The ten rows: the recommended method; those that broke a bound or a promise; the\n"
      "plain loop (serial/plain) in the format of the elements; among the methods whose\n"
      "format holds the elements, the fastest of each promise and the fastest of each\n"
      "accumulator; then the smallest errors. --csv and --json have every method.\n\n"
      "bound: an upper limit on the error that is proven for the given elements\n"
      "promise: what leaves the bits the same; `samesum list sum` shows it\n\nExamples:\n"
      "  samesum compare data.npy\n  samesum compare data.f32 --methods 'tree/*/fp32' --repeat 20\n"
      "  samesum compare data.f32 --methods '*,*@peer'\n"
      "  samesum compare x.npy y.npy --operation dot\n"
      "  samesum compare data.csv --json --output results.jsonl");
  command->callback([=, &report] {
    set_default_input(options->files);
    if (repeat->count() == 0) options->measure.patience = 0.5;
    report = compare_command(*options);
  });
}

void add_report(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "Write report.html and report.md from results files");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("folder", options->folder, "Folder with results.jsonl or EXPERIMENT.jsonl")
      ->type_name("DIR");
  command
      ->add_option("--out", options->output,
                   "Folder of the report (default DIR); created if\nit does not exist")
      ->type_name("FOLDER");
  CLI::Option* committed =
      command
          ->add_option("--committed", options->committed,
                       "Results of other machines, files named\nMACHINE.EXPERIMENT.jsonl (default: those of\n"
                       "samesum for the experiments in DIR)")
          ->type_name("FOLDER");
  command->add_flag("--alone", options->alone, "Leave out the results of other machines")
      ->excludes(committed);
  command->footer(
      "Results of your own data (own_data, or compare --json) come first; questions\n"
      "without results have no section.\n"
      "Prints the findings. Exits with 1 if a bound or a promise is broken. Needs\n"
      "Python with the packages jsonschema and plotly, and the source tree or the\n"
      "installed share/samesum; SAMESUM_SOURCE sets its path if it is not found.\n\n"
      "Examples:\n  samesum report build/study\n  samesum report build/study --alone --out /tmp\n"
      "  samesum report --committed experiments/results --out /tmp");
  command->callback([=] { report_command(*options); });
}

void add_choose(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("choose", "Choose the cheapest method within a tolerance");
  auto o = std::make_shared<ChooseOptions>();
  CLI::Option* file = command->add_option(
      "file", o->files,
      "Data files, as for samesum compare; replace\n--length, --input, --condition and --magnitudes");
  file->type_name("FILE");
  const auto without_file = [=](CLI::Option* option, const char* type) {
    option->type_name(type)->excludes(file);
  };
  add_operation(command, o->operation, "any with one result");
  without_file(command->add_option("--length", o->length, "Number of elements")->check(is_whole_number, ""),
               "N");
  without_file(command->add_option("--input", o->input, format_names(" ") + " (default fp64)"), "F");
  without_file(command->add_option("--condition", o->condition,
                                   "Condition number, sum of |x| / |sum of x|, for dot\nof |xy| (default 1)"),
               "K");
  without_file(command->add_option("--magnitudes", o->magnitudes,
                                   "Sum of |x|, for dot of |xy|, for others |result|\n(default N)"),
               "M");
  command->add_option("--format", o->format, "Round the elements of the files to F first")
      ->type_name("F")
      ->needs(file);
  for (CLI::Option* option : add_table(command, o->table)) option->needs(file);
  command->add_option("--relative-error", o->relative_error, "Largest error relative to |exact result|")
      ->type_name("E");
  command
      ->add_option(
          "--ulps", o->ulps,
          "Largest error in ulps, units in the last place of\nthe exact result in the input's format")
      ->type_name("U");
  command
      ->add_option("--promise", o->promise,
                   "Weakest promise that is accepted (default\n" + o->promise +
                       ")\n"
                       "none: bits may differ per run\n"
                       "run_to_run: the same bits on the same machine\n  with the same settings\n"
                       "everywhere: the same bits on any machine and with\n  any number of threads\n"
                       "order_free: the same bits for any element order\n  too")
      ->type_name("P");
  command
      ->add_option("--probability", o->probability,
                   "Probability with which the bound holds (default 1:\n"
                   "always). Below 1, rounding errors are assumed to\n"
                   "have mean 0; not valid for equal, sorted or\npatterned data")
      ->type_name("Q");
  command->add_option("--backend", o->backend, backend_names() + " (default: all but reference)")
      ->type_name("B");
  command
      ->add_option("--costs", o->costs,
                   "Costs: a file written by `samesum calibrate`, or\n'shipped' (default: see below)")
      ->type_name("FILE");
  command->add_flag("--json", o->json, "Print one JSON object");
  command->footer(
      "Uses the costs that `samesum calibrate` measured on this machine, in\n"
      "$XDG_CACHE_HOME/samesum/speed_vs_length.jsonl or below ~/.cache; otherwise the\n"
      "shipped costs of a server with an NVIDIA H200. Costs exclude transfers to a GPU.\n"
      "The sum of |x| matters only if a format might overflow or underflow.\n\nExamples:\n"
      "  samesum choose --length 1000000 --input fp32 --relative-error 1e-6\n"
      "  samesum choose --length 4096 --input bf16 --ulps 1 --condition 100 --json\n"
      "  samesum choose data.npy --relative-error 1e-9 --promise order_free\n"
      "  samesum choose x.npy y.npy --operation dot --relative-error 1e-6");
  command->callback([=, &report] { report = choose_command(*o); });
}

void add_calibrate(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure the time of each method on this machine");
  auto options = std::make_shared<CalibrateOptions>();
  add_operation(command, options->operation,
                "any with one result. Costs of others in an\nexisting file are kept");
  command->add_option("--out", options->out, "Output file (default: see below)")->type_name("FILE");
  command
      ->add_option("--methods", options->methods,
                   "Patterns with * and ?; other methods get no cost\n(default *)")
      ->type_name("GLOB,…");
  command->add_flag("--quick", options->quick, "Arrays of at most 2^20 elements");
  command->footer(
      "Takes about a minute, during which nothing else should run. An existing file is\n"
      "replaced only if the command succeeds. The default is\n"
      "$XDG_CACHE_HOME/samesum/speed_vs_length.jsonl or the same file below ~/.cache,\n"
      "where `samesum choose` finds it. Times are medians for one thread of the CPU and\n"
      "for the GPU, if there is one; they exclude transfers.\n\nExamples:\n"
      "  samesum calibrate\n  samesum calibrate --operation dot\n"
      "  samesum calibrate --quick --out costs.jsonl");
  command->callback([=, &report] { report = calibrate_command(*options); });
}

/// The commands and their options, for completion; first those of the program itself.
std::vector<CommandWords> words_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands = app.get_subcommands({});
  commands.insert(commands.begin(), &app);
  std::vector<CommandWords> all;
  for (const CLI::App* command : commands) {
    CommandWords words{command == &app ? "" : command->get_name(), {}};
    for (const CLI::Option* option : command->get_options())
      if (option->nonpositional()) words.options.push_back("--" + option->get_lnames().front());
    all.push_back(words);
  }
  return all;
}

void add_completion(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands in a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash or zsh")->required()->type_name("SHELL");
  command->footer(
      "Completes commands, options, and names of methods, operations and formats.\n\nExamples:\n"
      "  source <(samesum completion bash)      in ~/.bashrc\n"
      "  source <(samesum completion zsh)       in ~/.zshrc, after compinit");
  command->callback([=, &app, &report] { report = {completion_script(*shell, words_of(app)), {}}; });
}

int refuse(std::string message) {
  if (!prints()) return bad_usage;
  message = one_line(std::move(message));
  const bool named = message.rfind("samesum: ", 0) == 0;
  std::cerr << (named ? "" : "samesum: ") << message << std::endl;
  return bad_usage;
}

/// Writes to standard output. A closed pipe, as after `| head`, is not an error; a full disk is one.
int print(const std::string& text, int code) {
  if (!prints()) return code;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return code;
  return refuse(std::string{"standard output: cannot be written: "} + std::strerror(errno));
}

int finish(const Report& report) {
  if (!prints()) return success;
  for (const std::string& note : report.notes) std::cerr << "samesum: " << note << std::endl;
  const int printed = print(report.text, success);
  if (printed != success) return printed;
  for (const std::string& failure : report.failures)
    std::cerr << "samesum: check failed: " << failure << std::endl;
  return report.failures.empty() ? success : check_failed;
}

/// The version and the arguments, for a comparison between ranks.
std::string words_of(int argc, char** argv) {
  std::string words = std::string{"samesum "} + build().version;
  for (int i = 1; i < argc; ++i) words.append(" ").append(argv[i]);
  return words;
}

/// The version, and what bits and speeds may depend on: the commit and the backends.
std::string version() {
  std::string text = std::string{"samesum "} + build().version + "\ncommit " + build().commit +
                     "\ncpu with the instruction set " +
                     std::string{samesum::cpu::name_of(samesum::cpu::instruction_set())};
  for (const samesum::Absent& a : samesum::absent()) text += "\nno " + a.backend + ": " + a.reason;
  if (samesum::absent().empty()) text += "\ncuda";
  return text;
}

int run(int argc, char** argv) {
  CLI::App app{"Reproducible and exact reductions of floating-point numbers, with error bounds.", "samesum"};
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  samesum sum data.npy\n  samesum compare data.npy\n  samesum sum --help\n\n"
      "Exit codes: 0 success; 1 a check failed; 2 wrong usage or input.");
  Report report;
  add_list(app, report);
  add_sum(app, report);
  add_reductions(app, report);
  add_reductions_by_key(app, report);
  add_compare(app, report);
  add_report(app);
  add_choose(app, report);
  add_calibrate(app, report);
  add_completion(app, report);
  const auto is_command = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && !std::ranges::any_of(app.get_subcommands({}), is_command))
    return refuse(std::string{"unknown command '"} + argv[1] + "' (see samesum --help)");
  if (ranks && argc > 1 && argv[1][0] != '-' && argv[1] != std::string_view{"sum"})
    return refuse(std::string{argv[1]} + ": only sum runs on several ranks; run it without the launcher");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    if (app.exit(e, out, err) == 0) return print(out.str(), success);
    const std::string command = argc > 1 && argv[1][0] != '-' ? std::string{argv[1]} + ' ' : "";
    return refuse(std::string{e.what()} + " (see samesum " + command + "--help)");
  }
  return finish(report);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a failed write returns an error, which is reported there
  std::signal(SIGXFSZ, SIG_IGN);
  std::unique_ptr<Ranks> all_ranks;
  try {
    all_ranks = start_ranks();
    ranks = all_ranks.get();
    // Until the command opens files, ranks with equal arguments do the same.
    if (ranks) ranks->together(words_of(argc, argv), [] {});
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    const int code = refuse("the data do not fit into memory");
    if (ranks) ranks->abort(code);  // the others do not know
    return code;
  } catch (const std::exception& e) {  // bad input, bad usage, an unknown method: the message names it
    return refuse(e.what());
  }
}
