#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "harness/build.hpp"
#include "harness/commands.hpp"

namespace samesum::harness {
namespace {

/// Converts the words of a command to arguments of execvp.
std::vector<char*> arguments(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// Runs a command without output. Returns whether it exits with 0.
bool succeeds(std::vector<std::string> command) {
  const std::vector<char*> argv = arguments(command);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) && std::freopen("/dev/null", "w", stderr))
      execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The folder with notebooks/ and experiments/: SAMESUM_SOURCE, the share/ of an installed tool, or the
/// source tree.
std::string source_folder() {
  if (const char* elsewhere = std::getenv("SAMESUM_SOURCE")) return elsewhere;
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  const auto installed = (program.parent_path() / SAMESUM_TO_SHARE).lexically_normal();
  const bool is_installed =
      !program.empty() && std::filesystem::exists(installed / "notebooks/report.py", none);
  return is_installed ? installed.string() : build().source;
}

}  // namespace

void report_command(const ReportOptions& options) {
  std::error_code ignored;
  if (options.folder.empty() && options.committed.empty()) throw UsageError{"DIR or --committed is missing"};
  if (!options.folder.empty() && !std::filesystem::is_directory(options.folder, ignored))
    throw UsageError{options.folder + ": not a folder; name one with results.jsonl or EXPERIMENT.jsonl"};
  const std::string source = source_folder();
  const std::string program = source + "/notebooks/report.py";
  if (access(program.c_str(), R_OK) != 0)
    throw UsageError{program + ": " + std::strerror(errno) +
                     "; set SAMESUM_SOURCE to the source folder of samesum"};
  for (const std::string& python : {source + "/build/venv/bin/python", std::string{"python3"}}) {
    if (!succeeds({python, "-c", "import jsonschema, plotly"})) continue;
    std::vector<std::string> command = {python, "-B", program, "--program", "samesum report"};
    // The results of samesum's own study are shown only for the questions that DIR answers.
    const bool beside = !options.alone && options.committed.empty();
    for (const auto& [name, value] : {std::pair{"--committed", options.committed},
                                      std::pair{"--beside", beside ? source + "/experiments/results" : ""},
                                      std::pair{"--out", options.output}})
      if (!value.empty()) command.insert(command.end(), {name, value});
    if (!options.folder.empty()) command.insert(command.end(), {"--", options.folder});
    execvp(command[0].c_str(), arguments(command).data());
    throw std::runtime_error{python + ": " + std::strerror(errno)};
  }
  throw UsageError{
      "no Python with jsonschema and plotly was found; install them with python3 -m pip install -r " +
      source + "/experiments/requirements.txt"};
}

}  // namespace samesum::harness
