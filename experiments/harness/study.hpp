/// What all experiments have in common: the command line, the file of results, which can be continued, the
/// progress and the exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/progress.hpp"
#include "harness/results.hpp"
#include "harness/schema.hpp"

namespace CLI {
class App;
}

namespace samesum::harness {

class Study {
 public:
  /// The name is that of the program, of its file of results and in their header. The method says in a
  /// paragraph or two how the question is answered, with sources; the kinds are those of the rows, which the
  /// schema describes; each example is a line.
  Study(const std::string& name, const std::string& question, const std::string& method,
        const std::vector<std::string>& kinds, const std::string& examples,
        const Schema& schema = harness::schema());
  ~Study();
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  /// Whole numbers that an option takes.
  struct Range {
    int least, most;
  };
  static constexpr Range any{std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};

  /// Options that one experiment alone has; --help calls their values by that type, and leaves out a flag
  /// without a description.
  void add_option(const std::string& name, const std::string& type, std::string& value,
                  const std::string& help);
  void add_option(const std::string& name, const std::string& type, int& value, const std::string& help,
                  Range range);
  void add_option(const std::string& name, const std::string& type, std::optional<int>& value,
                  const std::string& help, Range range);
  void add_flag(const std::string& name, bool& value, const std::string& help);

  /// What stands behind the options: at least one name of a file.
  void add_files(std::vector<std::string>& names, const std::string& help);

  /// Reads the arguments, runs the experiment and gives the exit code: 0, 1 if it called `fail`, 2 for wrong
  /// usage and for what cannot be written.
  int run(int argc, const char* const* argv, const std::function<void(Study&)>& experiment);

  bool full() const { return full_; }
  std::uint64_t seed() const { return seed_; }
  const std::string& filter() const { return filter_; }

  /// So many rows are to come; where there are none at all, that is wrong usage.
  void expect(std::size_t rows) { expected_ += rows; }

  /// The row that begins with these fields: from the file if it is there, else measured now, and written at
  /// once, so that nothing is lost but the row under way when the program is stopped. What is measured may
  /// name the key's fields again, with the same values; the whole fits the schema of its kind.
  Json row(const Json& key, const std::function<Json()>& measure);

  /// Rows that are measured in turns, and so can be compared: they are written at once, and those of a file
  /// that has not all of them are dropped and measured again. One value a key, in their order.
  std::vector<Json> rows(const std::vector<Json>& keys, const std::function<std::vector<Json>()>& measure);

  /// A line of the table, for readers; nothing where rows are printed for programs.
  void print(const std::string& line);

  /// A bound, a promise or a bit was broken.
  void fail(const std::string& why);

  /// Input is not what it should be: the others go on, and the exit code will be 2.
  void pass_over(const std::string& why);

  /// What all rows depend on beside the seed and the mode: rows of another value are not continued. To be
  /// called before the first row.
  void depend_on(const std::string& option, const Json& value) { options_[option] = value; }

  /// A part that cannot be measured here: said on standard error, in the header and below the table. To be
  /// called before the first row.
  void leave_out(const std::string& part, const std::string& why);

 private:
  struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string nothing_to_measure() const;
  void begin();
  void continue_or_replace(Json& header);
  bool continues(Json& header);
  void open();
  std::vector<std::string> lines_of(const std::vector<Json>& keys) const;
  void drop(const std::vector<std::string>& lines);
  std::string problem(const Json& row) const;
  void warn(const std::string& message) const;
  void write(const std::string& line);
  void put(const std::string& text);
  int refuse(const std::string& message) const;

  std::string name_, question_;
  std::vector<std::string> kinds_;
  const Schema& schema_;
  std::unique_ptr<CLI::App> app_;
  bool quick_ = false, full_ = false, json_ = false;
  std::uint64_t seed_ = 1;
  std::string filter_, folder_;
  Json options_ = Json::object();
  std::vector<std::string> left_out_;

  bool begun_ = false, failed_ = false, passed_over_ = false;
  std::size_t done_ = 0, expected_ = 0;
  std::set<std::string> lines_;  ///< of rows that are in the file, without their ends
  std::string path_;
  std::unique_ptr<std::FILE, FileCloser> file_;
  Progress progress_;
};

/// "2^20", or the number itself.
std::string power_or_number(std::size_t n);

}  // namespace samesum::harness
