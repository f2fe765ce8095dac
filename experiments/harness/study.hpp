/// The frame of all experiments: command line, results file, progress and exit code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/place.hpp"
#include "harness/progress.hpp"
#include "harness/results.hpp"
#include "harness/schema.hpp"

namespace CLI {
class App;
}

namespace samesum::harness {

/// An experiment, which measures rows and writes them to a results file.
///
/// The results file begins with a header: question, options, machine and build. A run continues a file that
/// has the same header and measures only rows that the file lacks. It moves a file with another header aside.
///
/// Times vary from process to process (Kalibera and Jones 2013). With --processes N, the program starts
/// itself N times, one process after the other: process k measures the rows that have the rounds of fewer
/// than k processes, and adds its own. All other fields of times are derived from the rounds of all
/// processes.
///
///   Study study{"squares", "How large are squares?", "Each number is multiplied by itself.", {"square"},
///               "  squares --quick"};
///   return study.run(argc, argv, [](Study& s) {
///     s.expect(10);
///     for (int i = 0; i < 10; ++i) {
///       const Json row = s.row({{"kind", "square"}, {"i", i}}, [&] { return Json{{"square", i * i}}; });
///       s.print(row["square"].dump());
///     }
///   });
class Study {
 public:
  /// Defines the experiment and the options that all experiments have.
  ///
  /// `name` is the name of the program and of the results file, NAME.jsonl. `method` describes in one or two
  /// paragraphs how the question is answered, and cites the sources. `kinds` are the kinds of the rows;
  /// `schema` describes their columns, and --help prints these descriptions. `examples`: one command per
  /// line.
  Study(const std::string& name, const std::string& question, const std::string& method,
        const std::vector<std::string>& kinds, const std::string& examples,
        const Schema& schema = harness::schema());
  ~Study();
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  /// Integers that an option accepts, both ends included.
  struct Range {
    int least, most;
  };
  static constexpr Range any{std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};

  /// Adds an option of this experiment. --help shows `type` in place of the value, and hides a flag whose
  /// `help` is empty.
  void add_option(const std::string& name, const std::string& type, std::string& value,
                  const std::string& help);
  void add_option(const std::string& name, const std::string& type, int& value, const std::string& help,
                  Range range);
  void add_option(const std::string& name, const std::string& type, std::optional<int>& value,
                  const std::string& help, Range range);
  void add_flag(const std::string& name, bool& value, const std::string& help);

  /// Adds --operation. `others` are the operations besides sum that the experiment measures.
  void add_operations(const std::vector<std::string>& others);

  /// Adds --processes, for an experiment with rows_in_turns.
  void add_processes();

  /// Adds positional arguments: the names of one or more files.
  void add_files(std::vector<std::string>& names, const std::string& help);

  /// Parses the arguments and runs the experiment. Returns the exit code: 0; 1 if the experiment called
  /// `fail`; 2 for wrong usage, unusable input, or output that cannot be written. Reports every exception
  /// that the experiment throws as one line on standard error, and returns 2.
  int run(int argc, const char* const* argv, const std::function<void(Study&)>& experiment);

  bool full() const { return full_; }  ///< --full
  std::uint64_t seed() const { return seed_; }
  const std::string& filter() const { return filter_; }
  /// 5 rounds, with --full `in_full`; each process has other orders.
  Repeats repeats(int in_full) const;
  /// Those that --operation names; without it sum, followed by all others if there is no --filter. Throws
  /// UsageError if the experiment does not measure it.
  std::vector<std::string> operations() const;

  /// Adds `rows` to the total that the progress display shows. If the experiment neither expects nor measures
  /// a row, `run` reports that there is nothing to measure, and returns 2.
  void expect(std::size_t rows) { expected_ += rows; }

  /// Returns the row that begins with the fields of `key`. Reads it from the results file if the file has it;
  /// otherwise calls `measure` for the other fields and writes the row at once. A program that is stopped
  /// loses only the row that it measures. Throws std::logic_error if the row does not fit the schema of its
  /// kind, or if `measure` returns another value for a field of the key.
  Json row(const Json& key, const std::function<Json()>& measure);

  /// Returns several rows that are measured together. `measure` returns one value per key, in the order of
  /// the keys. The rows are written together; if the file has only some of them, all are measured again.
  std::vector<Json> rows(const std::vector<Json>& keys, const std::function<std::vector<Json>()>& measure);

  using Rows = std::function<void(std::vector<Json>&)>;
  /// Returns several rows that are timed in turns, so that they can be compared. The rows of the file, or new
  /// ones, are given to `measure`, which adds the rounds of this process (timed_row.hpp), and to new rows
  /// what is measured only once; then to `derive`, which computes the fields that follow from `seconds`,
  /// `low`, `high` and the rounds of all processes. The rows are written together, as by `rows`.
  std::vector<Json> rows_in_turns(const std::vector<Json>& keys, const Rows& measure, const Rows& derive);

  /// Prints a line of the table. With --json, prints nothing.
  void print(const std::string& line);

  /// Reports that a bound, a promise or a bit pattern is wrong. The exit code will be 1.
  void fail(const std::string& why);

  /// Reports input that cannot be used. The experiment continues with the other inputs; the exit code will be
  /// 2, or 1 if a check fails too.
  void pass_over(const std::string& why);

  /// Records in the header an option that all rows depend on, besides seed and mode: a file that was measured
  /// with another value is not continued. Call it before the first row.
  void depend_on(const std::string& option, const Json& value) { options_[option] = value; }

  /// Records a part that cannot be measured on this machine, and why: in the header, on standard error and
  /// below the table. Call it before the first row.
  void leave_out(const std::string& part, const std::string& why);

 private:
  struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  int run_processes(int argc, const char* const* argv) const;
  bool is_last_process() const { return std::max(process_, 1) == processes_; }
  std::string nothing_to_measure() const;
  void begin();
  void continue_or_replace(Json& header);
  bool continues(Json& header);
  void open();
  bool has_key(const std::string& line, const Json& key) const;
  std::vector<std::string> lines_of(const std::vector<Json>& keys) const;
  void replace(const std::vector<std::string>& old, const std::vector<std::string>& lines);
  std::vector<Json> completed(const std::vector<Json>& keys, std::size_t processes, const Rows& complete);
  std::string line_of(const Json& key, const Json& row) const;
  std::string problem(const Json& row) const;
  void warn(const std::string& message) const;
  void write(const std::vector<std::string>& old, const std::vector<std::string>& lines);
  void put(const std::string& text);
  int refuse(const std::string& message) const;

  std::string name_, question_;
  std::vector<std::string> kinds_;
  const Schema& schema_;
  std::unique_ptr<CLI::App> app_;
  bool quick_ = false, full_ = false, json_ = false;
  std::uint64_t seed_ = 1;
  std::string filter_, folder_, operation_;
  std::vector<std::string> other_operations_;
  int processes_ = 1;
  int process_ = 0;  ///< number of this process, from 1; 0 if there is only one, or if it starts the others
  Json options_ = Json::object();
  std::vector<std::string> left_out_;

  bool begun_ = false, failed_ = false, passed_over_ = false;
  std::size_t done_ = 0, expected_ = 0;
  std::set<std::string> lines_;  ///< rows in the file, without line ends
  int last_turns_ = 0;           ///< the largest number of turns in the file
  std::string path_;
  std::unique_ptr<std::FILE, FileCloser> file_;
  Progress progress_;
};

/// "2^20" for a power of two, else the number itself.
std::string power_or_number(std::size_t n);

}  // namespace samesum::harness
