/// The commands about methods, and the one that completes commands in a shell.
#include <memory>

#include "tool/arguments.hpp"

namespace samesum::harness {

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

namespace {

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

/// Adds the data for which a method is chosen: files, or a description of them.
void add_chosen_data(CLI::App* command, const std::shared_ptr<ChooseOptions>& o) {
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
}
/// Adds the tolerance and the promise.
void add_requirements(CLI::App* command, const std::shared_ptr<ChooseOptions>& o) {
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
}

void add_choose(CLI::App& app, Report& report) {
  CLI::App* command = app.add_subcommand("choose", "Choose the cheapest method within a tolerance");
  auto o = std::make_shared<ChooseOptions>();
  add_chosen_data(command, o);
  add_requirements(command, o);
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

}  // namespace

void add_study(CLI::App& app, Report& report) {
  add_compare(app, report);
  add_report(app);
  add_choose(app, report);
  add_calibrate(app, report);
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

}  // namespace samesum::harness
