#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include "harness/build.hpp"
#include "harness/input_program.hpp"
#include "tool/commands.hpp"

namespace samesum::harness {
namespace {

/// A Python, and the packages of the report that it lacks.
struct Python {
  std::string program;
  std::string missing;  ///< separated by blanks
};

/// Empty if the Python does not run.
std::optional<Python> python_of(const std::string& name) try {
  constexpr char program[] =
      "import importlib.util, sys\n"
      "print(sys.executable, *(p for p in sys.argv[1:] if not importlib.util.find_spec(p)), sep='\\n')";
  ProgramBytes output{{name, "-c", program, "jsonschema", "plotly"}, name};
  const std::vector<std::byte> bytes = read_rest(output);
  std::istringstream lines{std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  Python found;
  if (!std::getline(lines, found.program) || found.program.empty())
    found.program = name;  // a Python does not know its own path where it was embedded or renamed
  for (std::string package; std::getline(lines, package);)
    found.missing += (found.missing.empty() ? "" : " ") + package;
  return found;
} catch (const InputError&) {
  return {};
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

/// Replaces this process with the report.
[[noreturn]] void run_report(const std::string& python, const std::string& program, const std::string& source,
                             const ReportOptions& options) {
  std::vector<std::string> command = {python, "-B", program, "--program", "samesum report"};
  // The results of samesum's own study are shown only for the questions that DIR answers.
  const bool beside = !options.alone && options.committed.empty();
  for (const auto& [name, value] : {std::pair{"--committed", options.committed},
                                    std::pair{"--beside", beside ? source + "/experiments/results" : ""},
                                    std::pair{"--out", options.output}})
    if (!value.empty()) command.insert(command.end(), {name, value});
  if (!options.folder.empty()) command.insert(command.end(), {"--", options.folder});
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw std::runtime_error{python + ": " + std::strerror(errno)};
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
  std::string problem = "python3 does not run; install Python 3 with the packages jsonschema and plotly";
  for (const std::string& name : {source + "/build/venv/bin/python", std::string{"python3"}})
    if (const std::optional<Python> python = python_of(name)) {
      if (python->missing.empty()) run_report(python->program, program, source, options);
      problem = "the report needs packages that " + python->program + " lacks; install them with " +
                python->program + " -m pip install " + python->missing;
    }
  throw UsageError{problem};
}

}  // namespace samesum::harness
