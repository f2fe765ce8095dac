/// The command-line tool: exact sums of files, and the errors of all the other ways to sum them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

#include "harness/build.hpp"
#include "harness/commands.hpp"
#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum::harness;

enum ExitCode { success = 0, check_failed = 1, bad_usage = 2 };

void add_data(CLI::App* command, std::string& file, std::string& format) {
  command->add_option("file", file, known_extensions() + ", or - for text")->required()->type_name("FILE");
  command->add_option("--format", format, format_names(" ") + ": round elements to it once")->type_name("F");
}

void add_threads(CLI::App* command, int& threads) {
  command->add_option("--threads", threads, "0: as many as the data deserve (default)")->type_name("N");
}

void add_list(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("list", "List the methods and what each promises");
  auto json = std::make_shared<bool>(false);
  auto glob = std::make_shared<std::string>();
  command->add_option("glob", *glob, "With * and ? (default: all)")->type_name("GLOB");
  command->add_flag("--json", *json, "Print one JSON object");
  command->footer("Examples:\n  samesum list\n  samesum list 'dot/*@cpu'\n  samesum list --json");
  command->callback([=, &report] { report = list_command(*glob, *json); });
}

void add_sum(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("sum", "Sum a file, exactly unless told otherwise");
  auto options = std::make_shared<SumOptions>();
  add_data(command, options->file, options->format);
  command->add_option("--method", options->method, "One of `samesum list` (default exact)")
      ->type_name("NAME");
  add_threads(command, options->threads);
  CLI::Option* hex = command->add_flag("--hex", options->hex, "Print the result as %a does");
  command->add_flag("--json", options->json, "Print one JSON object with error and bound")->excludes(hex);
  command->footer(
      "Prints the shortest decimal that reads back as the same number of its format;\n"
      "exact rounds once, to the input's format.\n\nExamples:\n"
      "  samesum sum data.npy\n  seq 100 | samesum sum -\n  samesum sum data.f32 --method tree/kahan/fp32 "
      "--json");
  command->callback([=, &report] { report = sum_command(*options); });
}

void add_compare(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("compare", "Compare the errors and speeds of methods");
  auto options = std::make_shared<CompareOptions>();
  add_data(command, options->file, options->format);
  command->add_option("--methods", options->methods, "With * and ?; no @: @cpu and @cuda (default *)")
      ->type_name("GLOB,…");
  CLI::Option* repeat = command
                            ->add_option("--repeat", options->measure.repeats,
                                         "Timed runs of each (default 5; slow methods fewer)")
                            ->type_name("R");
  add_threads(command, options->measure.threads);
  CLI::Option* csv = command->add_flag("--csv", options->csv, "Print comma-separated values");
  command->add_flag("--json", options->json, "Print one line of JSON")->excludes(csv);
  command->add_option("--output", options->output, "Write there instead: all or nothing")->type_name("PATH");
  command->footer(
      "The best error comes first. Exits with 1 if a bound or a promise is broken.\n\nExamples:\n"
      "  samesum compare data.npy\n  samesum compare data.f32 --methods 'tree/*/fp32' --repeat 20\n"
      "  samesum compare data.f32 --methods '*,*@peer'\n"
      "  samesum compare data.csv --json --output results.jsonl");
  command->callback([=, &report] {
    if (repeat->count() == 0) options->measure.patience = 0.5;
    report = compare_command(*options);
  });
}

void add_report(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "Make report.html and report.md of results files");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("folder", options->folder, "With results.jsonl or EXPERIMENT.jsonl")
      ->required()
      ->type_name("DIR");
  command->add_option("--out", options->output, "Where the report goes (default DIR)")->type_name("FOLDER");
  command->add_flag("--alone", options->alone, "Without the results of other machines");
  command->footer(
      "Prints what was found. Exits with 1 if a bound or a promise is broken. Needs the\n"
      "source tree, here or where SAMESUM_SOURCE says, and Python with the packages of\n"
      "its experiments/requirements.txt.\n\n"
      "Examples:\n  samesum report build/study\n  samesum report build/study --alone --out /tmp");
  command->callback([=] { report_command(*options); });
}

void add_choose(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("choose", "Choose the cheapest method that is exact enough");
  auto o = std::make_shared<ChooseOptions>();
  CLI::Option* file = command->add_option("file", o->file, "Data to take the next four from");
  file->type_name("FILE");
  const auto without_file = [=](CLI::Option* option, const char* type) {
    option->type_name(type)->excludes(file);
  };
  without_file(command->add_option("--length", o->length, "Elements")->check(is_whole_number, ""), "N");
  without_file(command->add_option("--input", o->input, format_names(" ") + " (default fp64)"), "F");
  without_file(command->add_option("--condition", o->condition, "Sum of |x| over |sum| (default 1)"), "K");
  without_file(command->add_option("--magnitudes", o->magnitudes, "Sum of |x| (default N)"), "M");
  command->add_option("--format", o->format, "Of the file: round elements to it once")
      ->type_name("F")
      ->needs(file);
  command->add_option("--relative-error", o->relative_error, "At most so much of |sum|")->type_name("E");
  command->add_option("--ulps", o->ulps, "At most so many ulps of the input's format")->type_name("U");
  command->add_option("--promise", o->promise, promise_names() + "\n(default " + o->promise + ")")
      ->type_name("P");
  command
      ->add_option("--probability", o->probability,
                   "Of the bound (default 1: rigorous); below 1 if\n"
                   "roundings have mean 0; equal or structured\n"
                   "elements break that")
      ->type_name("Q");
  command->add_option("--backend", o->backend, backend_names() + " (default: all but reference)")
      ->type_name("B");
  command->add_option("--costs", o->costs, "Of calibrate, or 'shipped' (default: see below)")
      ->type_name("FILE");
  command->add_flag("--json", o->json, "Print one JSON object");
  command->footer(
      "Costs are those that `samesum calibrate` measured on this machine, in\n"
      "$XDG_CACHE_HOME/samesum/speed_vs_length.jsonl or below ~/.cache; else those that\n"
      "are shipped, of a server with an NVIDIA H200. Data lie where they are summed.\n"
      "The sum of magnitudes matters only where a format might overflow or underflow.\n\nExamples:\n"
      "  samesum choose --length 1000000 --input fp32 --relative-error 1e-6\n"
      "  samesum choose --length 4096 --input bf16 --ulps 1 --condition 100 --json\n"
      "  samesum choose data.npy --relative-error 1e-9 --promise order_free");
  command->callback([=, &report] { report = choose_command(*o); });
}

void add_calibrate(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure what each method costs on this machine");
  auto options = std::make_shared<CalibrateOptions>();
  command->add_option("--out", options->out, "Write there (default: see below)")->type_name("FILE");
  command->add_option("--methods", options->methods, "With * and ?; others stay unknown (default *)")
      ->type_name("GLOB,…");
  command->add_flag("--quick", options->quick, "Arrays of at most 2^20 elements");
  command->footer(
      "Takes about a minute; nothing else should run meanwhile. All or nothing is\n"
      "written, to $XDG_CACHE_HOME/samesum/speed_vs_length.jsonl or below ~/.cache,\n"
      "where `samesum choose` looks. Times are medians of one thread of the CPU, and of\n"
      "the GPU where there is one, on data that are there already.\n\nExamples:\n"
      "  samesum calibrate\n  samesum calibrate --quick --out costs.jsonl");
  command->callback([=, &report] { report = calibrate_command(*options); });
}

int refuse(std::string message) {
  message = one_line(std::move(message));
  const bool named = message.rfind("samesum: ", 0) == 0;
  std::cerr << (named ? "" : "samesum: ") << message << std::endl;
  return bad_usage;
}

/// A reader who has seen enough, like head, is no error; a full disk is.
int print(const std::string& text, int code) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return code;
  return refuse(std::string{"standard output: cannot be written: "} + std::strerror(errno));
}

int finish(const Report& report) {
  const int printed = print(report.text, success);
  if (printed != success) return printed;
  for (const std::string& failure : report.failures)
    std::cerr << "samesum: check failed: " << failure << std::endl;
  return report.failures.empty() ? success : check_failed;
}

int run(int argc, char** argv) {
  CLI::App app{"Sums with the same bits everywhere that know how far they are from the truth.", "samesum"};
  app.set_version_flag("--version", std::string{"samesum "} + build().version);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  samesum sum data.npy\n  samesum compare data.npy\n  samesum sum --help\n\n"
      "Exit codes: 0, 1 when a check failed, 2 for wrong usage or input.");
  Report report;
  add_list(app, report);
  add_sum(app, report);
  add_compare(app, report);
  add_report(app);
  add_choose(app, report);
  add_calibrate(app, report);
  const auto is_command = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && !std::ranges::any_of(app.get_subcommands({}), is_command))
    return refuse(std::string{"there is no command '"} + argv[1] + "' (see samesum --help)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    if (app.exit(e, out, err) == 0) return print(out.str(), success);
    return refuse(std::string{e.what()} + " (see samesum --help)");
  }
  return finish(report);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write that fails says so itself
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return refuse("the data do not fit into memory");
  } catch (const std::exception& e) {  // bad input, bad usage, an unknown method: each says what is wrong
    return refuse(e.what());
  }
}
