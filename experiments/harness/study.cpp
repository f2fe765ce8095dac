#include "harness/study.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "harness/names.hpp"
#include "harness/text.hpp"
#include "harness/timed_row.hpp"

namespace samesum::harness {
namespace {

namespace fs = std::filesystem;

enum ExitCode { success = 0, check_failed = 1, bad_usage = 2 };

/// Starts this program with the arguments in another process, which ends with this one. Its standard output
/// is discarded if `silent`. Returns its exit code.
int run_again(std::vector<std::string> arguments, bool silent) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (const int null = silent ? open("/dev/null", O_WRONLY) : -1; null >= 0) dup2(null, STDOUT_FILENO);
    execv("/proc/self/exe", argv.data());
    _exit(bad_usage);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    throw std::runtime_error{std::string{"--processes: no other process can be started: "} +
                             std::strerror(errno)};
  if (!WIFEXITED(status)) throw std::runtime_error{"--processes: a process was stopped"};
  return WEXITSTATUS(status);
}

/// The JSON object in the text, or null if it is not one.
Json parse_object(const std::string& line) {
  const Json object = Json::parse(line, nullptr, false);
  return object.is_object() ? object : Json(nullptr);
}

/// The text with which the line of a row with this key begins. Rows are found by their text.
std::string beginning(const Json& key) {
  std::string text = json_line(key);
  text.erase(text.rfind('}'));
  return text + ',';
}

/// The first of NAME, NAME.2, NAME.3 … that does not exist, so that no file is overwritten.
std::string free_name(const std::string& name) {
  std::string free = name;
  for (int i = 2; fs::exists(fs::symlink_status(free)); ++i) free = name + '.' + std::to_string(i);
  return free;
}

/// The lines with their ends.
std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// The values of the key as text for the progress display.
std::string key_in_words(const Json& key) {
  std::string words;
  for (const auto& [name, value] : key.items()) {
    const Json& word = value.is_object() ? value["name"] : value;
    if (name != "kind") words += (word.is_string() ? word.get<std::string>() : word.dump()) + ' ';
  }
  return words;
}

// --- help ------------------------------------------------------------------------------------------

constexpr std::size_t columns = 80;

/// Indents each line by `blanks`.
std::string indented(const std::string& text, std::size_t blanks) {
  std::istringstream in{text};
  std::string all;
  for (std::string line; std::getline(in, line);) all += std::string(blanks, ' ') + line + '\n';
  return all;
}

/// Wraps and indents the paragraphs, which are separated by empty lines.
std::string paragraphs(const std::string& text) {
  const std::size_t end = text.find("\n\n");
  const std::string first = indented(wrapped(text.substr(0, end), columns - 2, 0), 2);
  return end == text.npos ? first : first + '\n' + paragraphs(text.substr(end + 2));
}

/// The meaning and the unit of each column of rows of a kind.
std::string columns_in_words(const Schema& schema, const std::string& kind) {
  constexpr std::size_t name_width = 20;
  std::string text = wrapped("Rows of kind \"" + kind + "\": " + schema.meaning(kind), columns, 2) + '\n';
  for (const Schema::Column& c : schema.columns(kind)) {
    const std::string meaning = (c.required ? "" : "(not in every row) ") + c.meaning;
    std::string entry = indented(wrapped(meaning, columns - name_width, 0), name_width);
    text += entry.replace(0, name_width, left("  " + c.name, name_width));
  }
  return text;
}

/// Checks the range without printing it: the help text of the option names it where it matters.
CLI::Validator within(Study::Range range) {
  CLI::Range validator{range.least, range.most};
  validator.description("");
  return validator;
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw OutputError{"--out: " + path + ": cannot be written: " + why +
                    "; name a folder that exists or can be created"};
}

}  // namespace

Study::Study(const std::string& name, const std::string& question, const std::string& method,
             const std::vector<std::string>& kinds, const std::string& examples, const Schema& schema)
    : name_{name},
      question_{question},
      kinds_{kinds},
      schema_{schema},
      app_{std::make_unique<CLI::App>(wrapped(question, columns, 0), name)} {
  CLI::Option* quick = app_->add_flag("--quick", quick_, "A minute or less on 2 cores (default)");
  app_->add_flag("--full", full_, "Measure everything: tens of minutes")->excludes(quick);
  app_->add_option("--seed", seed_, "Seed of the data (default 1)")
      ->type_name("N")
      ->check(is_whole_number, "");
  app_->add_option("--filter", filter_, "Methods, as for samesum compare --methods")->type_name("GLOB,…");
  app_->add_option("--out", folder_, "Write or continue a results file in DIR")->type_name("DIR");
  app_->add_flag("--json", json_, "Print one JSON object per row");
  std::string footer = "How it is measured:\n" + paragraphs(method);
  for (const std::string& kind : kinds) footer += '\n' + columns_in_words(schema, kind);
  app_->footer(footer + "\n--out DIR writes DIR/" + name +
               ".jsonl; the same command continues it.\n\n"
               "Terms: ulp, unit in the last place; condition number, the largest relative\n"
               "change of the result per relative change of the elements, for a sum\n"
               "(sum of |x|) / |sum of x|; bound, an upper limit on |result - exact result|;\n"
               "promise, what a method guarantees about its bits, from none to order_free;\n"
               "height, the largest number of additions between an element and the result;\n"
               "binade, the numbers with the same exponent.\n\nExamples:\n" +
               examples +
               "\n\nExit codes: 0 success; 1 wrong bound, promise or bits; 2 wrong usage or input.");
}

Study::~Study() = default;

void Study::add_option(const std::string& name, const std::string& type, std::string& value,
                       const std::string& help) {
  app_->add_option(name, value, help)->type_name(type)->check(is_given, "");
}

void Study::add_option(const std::string& name, const std::string& type, int& value, const std::string& help,
                       Range range) {
  app_->add_option(name, value, help)->type_name(type)->check(within(range));
}

void Study::add_option(const std::string& name, const std::string& type, std::optional<int>& value,
                       const std::string& help, Range range) {
  app_->add_option(name, value, help)->type_name(type)->check(within(range));
}

void Study::add_flag(const std::string& name, bool& value, const std::string& help) {
  CLI::Option* flag = app_->add_flag(name, value, help);
  if (help.empty()) flag->group("");
}

void Study::add_operations(const std::vector<std::string>& others) {
  other_operations_ = others;
  app_->add_option(
          "--operation", operation_,
          wrapped("Only these of sum, " + listed(others) + " (default: all; with --filter, sum)", 50))
      ->type_name("NAME,…");
}

std::vector<std::string> Study::operations() const {
  std::vector<std::string> all{"sum"};
  all.insert(all.end(), other_operations_.begin(), other_operations_.end());
  if (operation_.empty()) return filter_.empty() ? all : std::vector<std::string>{"sum"};
  const std::vector<std::string> chosen = globs_in(operation_);
  for (const std::string& name : chosen)
    if (std::ranges::find(all, name) == all.end())
      throw UsageError{"--operation: '" + printable(name) + "' is not one of " + listed(all)};
  return chosen;
}

void Study::add_processes() {
  app_->add_option("--processes", processes_,
                   wrapped("Times from N processes, one after the other (default 1; with --out)", 50))
      ->type_name("N")
      ->check(within({1, 1000}));
  app_->add_option("--process", process_, "")->group("");  // hidden: the number of this one of them
}

void Study::add_files(std::vector<std::string>& names, const std::string& help) {
  app_->add_option("files", names, help)->required()->type_name("FILE…");
}

int Study::run(int argc, const char* const* argv, const std::function<void(Study&)>& experiment) {
  try {
    app_->parse(argc, argv);
    if (app_->count("--out") > 0 && folder_.empty()) throw UsageError{"--out: '' is not a folder"};
    if (!folder_.empty()) {
      path_ = (fs::path{folder_} / (name_ + ".jsonl")).string();
      std::error_code error;
      fs::create_directories(folder_, error);
      if (error) cannot_write(folder_, error.message());
      check_writable(path_);
    }
    if (processes_ > 1) {
      if (path_.empty()) throw UsageError{"--processes: needs --out DIR, whose rows the processes complete"};
      if (process_ == 0) return run_processes(argc, argv);
      depend_on("processes", processes_);
    }
    experiment(*this);
    if (expected_ + done_ == 0) return refuse(nothing_to_measure());
    for (const std::string& what : left_out_) print(wrapped(what));
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    if (app_->exit(e, out, err) != success) return refuse(std::string{e.what()} + " (see --help)");
    std::cout << out.str();
  } catch (const std::bad_alloc&) {
    return refuse("the data do not fit into memory");
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
  progress_.clear();
  return failed_ ? check_failed : passed_over_ ? bad_usage : success;
}

/// Measures in fresh processes, one after the other, of which the last prints the rows.
int Study::run_processes(int argc, const char* const* argv) const {
  int code = success;
  for (int process = 1; process <= processes_ && code <= check_failed; ++process) {
    std::vector<std::string> arguments{argv, argv + argc};
    arguments.insert(arguments.end(), {"--process", std::to_string(process)});
    code = run_again(std::move(arguments), process < processes_);
  }
  return code;
}

Repeats Study::repeats(int in_full) const {
  return {full_ ? in_full : 5, seed_ + (static_cast<std::uint64_t>(process_) << 32)};
}

Json Study::row(const Json& key, const std::function<Json()>& measure) {
  return rows({key}, [&] { return std::vector{measure()}; }).front();
}

std::vector<Json> Study::rows(const std::vector<Json>& keys,
                              const std::function<std::vector<Json>()>& measure) {
  return completed(keys, 0, [&](std::vector<Json>& all) {
    const std::vector<Json> values = measure();
    all = keys;
    for (std::size_t i = 0; i < keys.size(); ++i) all[i].update(values.at(i));
  });
}

std::vector<Json> Study::rows_in_turns(const std::vector<Json>& keys, const Rows& measure,
                                       const Rows& derive) {
  const int processes = std::max(process_, 1);
  return completed(keys, static_cast<std::size_t>(processes), [&](std::vector<Json>& all) {
    if (all.empty() || processes_of(all.front()) == 0) {
      all.clear();
      ++last_turns_;
      for (const Json& key : keys) all.push_back(row_without_rounds(key, last_turns_));
    }
    measure(all);
    std::ranges::for_each(all, derive_times);
    derive(all);
  });
}

/// Returns the rows of the file if it has all of them with the rounds of enough processes. Otherwise writes
/// what `complete` makes of them, or of no rows if the file lacks some.
std::vector<Json> Study::completed(const std::vector<Json>& keys, std::size_t processes,
                                   const Rows& complete) {
  if (!begun_) begin();
  progress_.show(done_, expected_, key_in_words(keys.front()));
  done_ += keys.size();
  const std::vector<std::string> old = lines_of(keys);
  std::vector<Json> all;
  if (old.size() == keys.size())
    for (const std::string& line : old) all.push_back(Json::parse(line));
  const auto is_complete = [&](const Json& row) { return processes_of(row) >= processes; };
  if (!all.empty() && std::ranges::all_of(all, is_complete)) {
    if (json_) put(text_of(old));
    return all;
  }
  complete(all);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < keys.size(); ++i) lines.push_back(line_of(keys[i], all[i]));
  write(old, lines);
  return all;
}

void Study::print(const std::string& line) {
  if (!json_) put(line + '\n');
}

void Study::fail(const std::string& why) {
  failed_ = true;
  if (is_last_process()) warn("check failed: " + why);
}

void Study::pass_over(const std::string& why) {
  passed_over_ = true;
  warn(why);
}

void Study::leave_out(const std::string& part, const std::string& why) {
  left_out_.push_back("without " + part + ": " + why);
}

std::string Study::nothing_to_measure() const {
  std::string text = filter_.empty() ? "there is nothing to measure"
                                     : "--filter: '" + filter_ + "' leaves nothing to measure";
  for (const std::string& what : left_out_) text += "; " + what;
  return text;
}

void Study::begin() {
  begun_ = true;
  Json header = study_json(name_, question_, full_, seed_, filter_);
  if (!options_.empty()) header["options"] = options_;
  if (!left_out_.empty()) header["left_out"] = left_out_;
  for (const std::string& what : left_out_)
    if (is_last_process()) warn(what);
  if (!path_.empty()) continue_or_replace(header);
  if (json_) put(json_line(header));
}

void Study::continue_or_replace(Json& header) {
  if (!continues(header)) write_file(path_, json_line(header));
  open();
}

void Study::open() {
  file_.reset(std::fopen(path_.c_str(), "ab"));
  if (!file_) cannot_write(path_, std::strerror(errno));
}

/// Whether a line is the row with this key. A longer key begins with the same fields, but the next one is
/// optional: what is measured begins with a field that every row has.
bool Study::has_key(const std::string& line, const Json& key) const {
  const std::string begins = beginning(key) + '"';
  if (!line.starts_with(begins)) return false;
  const std::string next = line.substr(begins.size(), line.find('"', begins.size()) - begins.size());
  return schema_.is_required(key["kind"], next);
}

/// The rows in the file that have one of the keys, in the order of the keys.
std::vector<std::string> Study::lines_of(const std::vector<Json>& keys) const {
  std::vector<std::string> found;
  for (const Json& key : keys) {
    const std::string begins = beginning(key);
    auto line = lines_.lower_bound(begins);
    while (line != lines_.end() && line->starts_with(begins) && !has_key(*line, key)) ++line;
    if (line != lines_.end() && line->starts_with(begins)) found.push_back(*line);
  }
  return found;
}

/// Replaces lines of the file: by as many others in their places, else by others at its end.
void Study::replace(const std::vector<std::string>& old, const std::vector<std::string>& lines) {
  const bool in_place = old.size() == lines.size();
  std::string text;
  std::ifstream in{path_, std::ios::binary};
  for (std::string line; std::getline(in, line);) {
    const auto found = std::ranges::find(old, line);
    if (found == old.end())
      text += line + '\n';
    else if (in_place)
      text += lines[static_cast<std::size_t>(found - old.begin())] + '\n';
  }
  write_file(path_, in_place ? text : text + text_of(lines));
  open();
}

/// Whether the file exists and has this header. If so, reads its rows, and takes its header, with its date
/// and clocks. Removes broken lines from the file, with a warning for each.
bool Study::continues(Json& header) {
  std::ifstream in{path_, std::ios::binary};
  if (!in.is_open()) return false;
  std::string line;
  std::getline(in, line);
  if (const Json old = parse_object(line); without_what_varies(old) != without_what_varies(header)) {
    const std::string aside = free_name(path_ + ".old");
    fs::rename(path_, aside);
    warn(
        path_ +
        (old.is_null() ? ":1: not a JSON object" : ": has other settings, another machine or another build") +
        ": moved to " + aside);
    return false;
  } else {
    header = old;
  }
  bool whole = !in.eof();
  std::string kept = line + '\n';
  for (int number = 2; std::getline(in, line); ++number) {
    const Json row = parse_object(line);
    const std::string why = in.eof() ? "incomplete line" : problem(row);
    if (why.empty()) {
      last_turns_ = std::max(last_turns_, row.value("turns", 0));
      lines_.insert(line);
      kept += line + '\n';
    } else {
      warn(path_ + ':' + std::to_string(number) + ": " + why + ": skipped, will be measured again");
      whole = false;
    }
  }
  if (!whole) write_file(path_, kept);
  return true;
}

/// Why the object is not a row of this experiment, or "".
std::string Study::problem(const Json& row) const {
  if (row.is_null()) return "not a JSON object";
  const std::string kind = row.contains("kind") && row["kind"].is_string() ? row["kind"] : Json("");
  if (std::ranges::count(kinds_, kind) == 0) return "not a row of this experiment";
  return schema_.problem(row, kind);
}

void Study::warn(const std::string& message) const {
  progress_.clear();
  std::cerr << name_ << ": " << one_line(message) << std::endl;
}

/// The line of a row, without its end, which is checked.
std::string Study::line_of(const Json& key, const Json& row) const {
  std::string line = json_line(row);
  const std::string begins = beginning(key);
  if (!line.starts_with(begins))
    throw std::logic_error{"the row " + line + " has another key than " + begins};
  if (const std::string why = problem(row); !why.empty())
    throw std::logic_error{"the row " + line + " does not fit the schema: " + why};
  if (!has_key(line, key))
    throw std::logic_error{"the row " + line + " has an optional field after its key " + begins};
  line.pop_back();
  return line;
}

/// Writes rows, in place of old ones.
void Study::write(const std::vector<std::string>& old, const std::vector<std::string>& lines) {
  const std::string text = text_of(lines);
  if (json_) put(text);
  for (const std::string& line : old) lines_.erase(line);
  lines_.insert(lines.begin(), lines.end());
  if (!file_) return;
  if (!old.empty()) return replace(old, lines);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0;
  if (!written) cannot_write(path_, std::strerror(errno));
}

void Study::put(const std::string& text) {
  progress_.clear();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw OutputError{std::string{"standard output: cannot be written: "} + std::strerror(errno)};
}

int Study::refuse(const std::string& message) const {
  warn(message);
  return bad_usage;
}

std::string power_or_number(std::size_t n) {
  return std::has_single_bit(n) ? "2^" + std::to_string(std::countr_zero(n)) : std::to_string(n);
}

}  // namespace samesum::harness
