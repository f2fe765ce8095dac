/// The command-line tool: reduces files, and compares and chooses methods.
#include "samesum/samesum.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

#include "harness/build.hpp"
#include "harness/text.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "tool/arguments.hpp"

namespace {

using namespace samesum::harness;

/// The ranks of this run; nullptr if there is one process. Only rank 0 prints.
const Ranks* ranks = nullptr;
bool prints() { return !ranks || ranks->rank() == 0; }

enum ExitCode { success = 0, check_failed = 1, bad_usage = 2 };

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
  add_sum(app, report, ranks);
  add_reductions(app, report);
  add_reductions_by_key(app, report);
  add_study(app, report);
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
