#include <chrono>
#include <filesystem>

#include "harness/peers.hpp"
#include "harness/progress.hpp"
#include "harness/speed_row.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"
#include "samesum/bound/bound.hpp"
#include "tool/commands.hpp"
#include "tool/costs.hpp"

namespace samesum::harness {
namespace {

constexpr std::uint64_t seed = 1;

/// Whether a method is measured in a cell. Loops, and methods that round each element first, are too slow for
/// long arrays; their cost there follows from shorter arrays, because memory does not limit them.
bool is_measured(const Method& v, const Cell& cell) {
  const bool rounds_first = v.accumulator != "exact" && !holds(*v.format, *cell.input);
  const bool slow = v.order == "serial" || rounds_first;
  return v.backend != "reference" && !v.is_slow && (!slow || cell.n <= two_to(20));
}

std::vector<const Method*> methods_of(const Cell& cell, const std::string& globs) {
  std::vector<const Method*> all = methods_matching(globs, *cell.input, "--methods", cell.operation);
  std::erase_if(all,
                [&](const Method* v) { return is_peer(*v) || !is_measured(*v, cell) || !fits(*v, cell); });
  return all;
}

/// The cells of one format, which share one array.
std::vector<Cell> cells_of(const std::string& operation, const FormatInfo& input, bool gpu, bool quick) {
  std::vector<Cell> cells;
  for (const int e : gpu ? std::vector{12, 16, 20, 24, 28} : std::vector{0, 6, 12, 16, 20, 24})
    if (!quick || e <= 20)
      cells.push_back({.input = &input, .n = two_to(e), .threads = gpu ? 0 : 1, .operation = operation});
  return cells;
}

std::vector<std::vector<Cell>> all_cells(const std::string& operation, bool quick) {
  std::vector<std::vector<Cell>> all;
  for (const bool gpu : {false, true})
    for (const FormatInfo& input : formats)
      if (!gpu || absent().empty()) all.push_back(cells_of(operation, input, gpu, quick));
  return all;
}

/// The path of the output file. Creates the folder of the default file. Another folder must exist.
std::string place_for(const std::string& out) {
  const std::string path = out.empty() ? calibration_file() : out;
  if (path.empty()) throw UsageError{"--out: neither XDG_CACHE_HOME nor HOME is set; name a file"};
  if (out.empty()) {
    std::error_code ignored;  // check_writable reports it
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), ignored);
  }
  check_writable(path);
  return path;
}

}  // namespace

Report calibrate_command(const CalibrateOptions& options) {
  check_operation(options.operation, operations_to_choose_for(), "with one result");
  // Reports a wrong name before anything is written.
  check_before_reading(nullptr, [&](const FormatInfo& f) {
    methods_matching(options.methods, f, "--methods", options.operation);
  });
  const std::string path = place_for(options.out);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::vector<Cell>> all = all_cells(options.operation, options.quick);
  std::size_t expected = 0, done = 0, costs = 0;
  for (const std::vector<Cell>& cells : all) expected += cells.size();
  const Progress progress;
  Report report{"", {}};
  std::string text = json_line(
      study_json("speed_vs_length", "How fast is each method on this machine?", !options.quick, seed, ""));
  const std::string kept = costs_of_other_operations(path, options.operation);
  int turns = largest_turns(kept);
  for (const std::vector<Cell>& cells : all) {
    Bench bench{cells.back(), seed, cells.back().n};
    for (const Cell& cell : cells) {
      ++turns;
      progress.show(done++, expected, std::string{cell.input->name} + ", n = " + power_or_number(cell.n));
      for (const Speed& s : bench.measure(cell, methods_of(cell, options.methods), options.quick ? 3 : 5)) {
        if (s.verified == false)
          report.failures.push_back(s.method + ": wrong bits, n = " + power_or_number(cell.n));
        Json row = row_without_rounds(speed_key(cell, s.method, seed), turns);
        add_process(row, s);
        derive_times(row);
        derive_speed(row, cell.bytes());
        row["bars"] = Json::array();
        text += json_line(row);
        if (s.method != cell.ceiling()) ++costs;
      }
    }
  }
  write_file(path, text + kept);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  report.text = printable(path) + ": " + std::to_string(costs) + " costs, measured in " +
                duration(taken.count()) + '\n';
  return report;
}

}  // namespace samesum::harness
