/// How fast is each sum, for arrays of every length, compared with other libraries and memory?
#include <algorithm>
#include <optional>

#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/speed_table.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

// --- what is measured ------------------------------------------------------------------------------

struct Choice {
  bool full;
  std::string filter, data;  ///< globs; empty: the defaults
  int longest;               ///< log2 of n
};

/// Data sets that can be repeated without changing the speed of a sum.
const std::string usual = "normal,60 binades,arbitrary bits";

std::vector<const Dataset*> chosen_data(const Choice& choice) {
  if (choice.data.empty()) return datasets_matching(choice.full ? usual : "normal,60 binades");
  std::vector<const Dataset*> chosen = datasets_matching(choice.data);
  const std::vector<const Dataset*> allowed = datasets_matching(usual);
  std::erase_if(chosen, [&](const Dataset* d) { return std::ranges::count(allowed, d) == 0; });
  if (chosen.empty())
    throw UsageError{"--data: speeds are not measured on '" + choice.data + "'; choose from " + usual};
  return chosen;
}

std::vector<Cell> cpu_cells(const Choice& choice) {
  std::vector<Cell> cells;
  for (const FormatInfo& input : formats) {
    std::vector<std::size_t> lengths{1, 64, two_to(12), l2_bytes / input.bytes, dram_bytes / input.bytes};
    for (int e = 2; choice.full && e <= 26; e += 2) lengths.push_back(two_to(e));
    std::ranges::sort(lengths);
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    for (const Dataset* data : chosen_data(choice))
      for (const std::size_t n : lengths) {
        const Cell cell{.input = &input, .n = n, .data = data->name};
        const bool everywhere = data->name == "normal" || !choice.data.empty(),
                   in_dram = cell.place() == "DRAM";
        if (n > two_to(choice.longest) || (!everywhere && cell.place() != "L2" && !in_dram)) continue;
        cells.push_back(cell);
        if (!in_dram || input.name != "fp32" || data->name != "normal") continue;
        cells.push_back(cell);
        cells.back().threads = 2;
      }
  }
  return cells;
}

std::vector<Cell> gpu_cells(const Choice& choice) {
  std::vector<Cell> cells;
  for (const FormatInfo& input : formats)
    for (const Dataset* data : chosen_data(choice))
      for (const bool cold : {false, true}) {
        if (cold && !choice.full) continue;
        for (int e = choice.full ? 10 : 12; e <= std::min(choice.longest, choice.full ? 32 : 28);
             e += choice.full ? 2 : 4)
          if (data->name == "normal" || !choice.data.empty() || e == 24 || e == 28)
            cells.push_back({&input, two_to(e), 0, data->name, cold});
      }
  return cells;
}

/// Whether a method is measured by default: plain sums in the format of the input and in fp32, all
/// accumulators in fp32, exact sums, and peers. The speed of other sums than exact ones does not depend on
/// the data, so they are measured on normal data only; the slowest in DRAM only with --full.
bool is_default(const Method& v, const Cell& cell, bool full) {
  const bool own = v.format == cell.input;
  if (!full && cell.place() == "DRAM" && compensates_in_turn(v)) return false;
  if (is_peer(v)) return cell.data == "normal" && (own || v.format->name == "fp32");
  if (v.is_slow || v.backend == "reference" || v.promise == Promise::none) return false;
  if (v.accumulator == "exact") return own;
  if (cell.data != "normal" || (is_sequential(v) && cell.n * cell.input->bytes > l2_bytes)) return false;
  return v.accumulator == "plain" ? own || (cell.input->bytes == 2 && v.format->name == "fp32")
                                  : own && cell.input->name == "fp32";
}

std::vector<const Method*> methods_of(const Cell& cell, const Choice& choice) {
  std::vector<const Method*> chosen;
  const auto add = [&](const Method& m) {
    if (fits(m, cell) && (!choice.filter.empty() || is_default(m, cell, choice.full))) chosen.push_back(&m);
  };
  if (choice.filter.empty()) {
    for (const Method& m : methods("sum")) add(m);
    for (const Method& m : peers()) add(m);
  } else {
    for (const Method* m : methods_matching(choice.filter, *cell.input, "--filter")) add(*m);
  }
  return chosen;
}

/// The cells for which a method is chosen.
std::vector<SpeedTask> tasks(const Choice& choice) {
  std::vector<Cell> cells = cpu_cells(choice);
  if (absent().empty()) std::ranges::move(gpu_cells(choice), std::back_inserter(cells));
  add_cells_in_graphs(cells);
  std::vector<SpeedTask> all;
  for (const Cell& cell : cells) {
    SpeedTask task{cell, methods_of(cell, choice)};
    task.declined = declined_of(cell, task.methods);
    if (!task.methods.empty()) all.push_back(task);
  }
  if (all.empty())
    throw UsageError{"--filter, --data and --longest leave nothing to measure on this machine"};
  return all;
}

// --- the study -------------------------------------------------------------------------------------

void print_head(Study& study, const Cell& cell) {
  const std::string threads = std::to_string(cell.threads) + (cell.threads == 1 ? " thread" : " threads");
  const std::string where = cell.threads == 0           ? std::string{"GPU, "} + (cell.in_graph ? "graph"
                                                                                  : cell.cold   ? "cold caches"
                                                                                                : "hot caches")
                            : cell.place() == "latency" ? threads
                                                        : cell.place() + ", " + threads;
  study.print("");
  study.print(left(std::string{cell.input->name} + ", " + cell.data + ", n = " + power_or_number(cell.n) +
                       ": " + where,
                   29) +
              "    time    +-  GB/s");
}

/// Shortens the name of the other method of a target: "eigen/fp32@peer, one thread" becomes "eigen, one
/// thread".
std::string short_name(std::string against) {
  for (const FormatInfo& f : formats)
    if (const std::string tail = "/" + std::string{f.name} + "@peer"; against.find(tail) != against.npos)
      against.erase(against.find(tail), tail.size());
  return against;
}

void print(Study& study, const Json& row) {
  const double seconds = row["seconds"], spread = row["high"].get<double>() - row["low"].get<double>();
  std::string text = left(row["method"], 29) + right(duration(seconds), 8) +
                     right(compact(50 * spread / seconds, 3, 2), 5) + '%' +
                     right(compact(row["gb_per_s"], 5, 4), 6);
  if (row["verified"] == Json(false)) text += "  WRONG";
  study.print(text);
  for (const Json& bar : row["bars"]) {
    const bool us = bar["against"] == "us";
    study.print(std::string{"  "} + (bar["holds"] ? "pass " : "MISS ") + compact(bar["reached"], 5) +
                (us ? " us <= " : " >= ") + compact(bar["factor"], 4) +
                (us ? "" : " x " + short_name(bar["against"])));
  }
}

/// Makes a bench when it is first needed, and keeps it while cells have the same data.
class Benches {
 public:
  Benches(const std::vector<SpeedTask>& tasks, std::uint64_t seed) : tasks_{tasks}, seed_{seed} {}

  Bench& of(const Cell& cell) {
    if (!bench_ || !same(cell, cell_)) {
      bench_.reset();  // frees memory for the next one
      std::size_t most = 0;
      for (const SpeedTask& task : tasks_)
        if (same(task.cell, cell)) most = std::max(most, task.cell.n);
      bench_.emplace(cell, seed_, most);
      cell_ = cell;
    }
    return *bench_;
  }

 private:
  static bool same(const Cell& a, const Cell& b) {
    return a.input == b.input && a.data == b.data && a.on_gpu() == b.on_gpu();
  }
  const std::vector<SpeedTask>& tasks_;
  std::uint64_t seed_;
  std::optional<Bench> bench_;
  Cell cell_;
};

/// Measures all methods of a cell in turns. `rows` are those of earlier cells.
void measure(Study& study, const SpeedTask& task, Benches& benches, std::vector<SpeedRow>& rows,
             BarCount& count) {
  const Cell& cell = task.cell;
  std::vector<Json> keys;
  for (const Method* v : task.methods) keys.push_back(speed_key(cell, v->name, study.seed()));
  keys.push_back(speed_key(cell, cell.ceiling(), study.seed()));
  print_head(study, cell);
  const auto measure_all = [&](std::vector<Json>& all) {
    const std::vector<Speed> speeds = benches.of(cell).measure(cell, task.methods, study.repeats(11));
    for (std::size_t i = 0; i < all.size(); ++i) add_process(all[i], speeds.at(i));
  };
  const auto derive = [&](std::vector<Json>& all) {
    for (Json& row : all) derive_speed(row, cell.bytes());
    derive_bars(all, cell, rows);
  };
  for (const Json& row : study.rows_in_turns(keys, measure_all, derive)) {
    if (row["verified"] != Json(false)) rows.push_back(speed_row_of(cell, row));
    count.add(row);
    print(study, row);
    check_results(study, cell, row);
  }
  decline(study, cell, task.declined);
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "speed_vs_length",
      "How fast is each sum, for arrays of every length?",
      "All methods of a cell sum the same data in turns, after warming up, so that a change of the "
      "machine's clock affects all alike; their bits are checked before they are timed, and the results of "
      "peers, within 4u (sqrt(n) max|s_k| + sum|x|), where s_k are the partial sums. A time is the "
      "median of 5 rounds (--full: 11), which have random orders; +- in the table is half of high - low. "
      "The method read reads all elements and adds nothing: it shows what memory allows, "
      "as McCalpin's STREAM 1995 does for copies. On a GPU kernels are timed with events, short calls also "
      "as a replayed CUDA graph of 20 calls, which leaves out the launches (graph). Hot caches: the "
      "same array is summed repeatedly. Cold caches: each run reads data that no cache holds. Arrays in L2 "
      "have 1 MiB, those in DRAM 256 MiB. Without --full, compensated sums whose additions wait for each "
      "other are not measured there.\n\n"
      "The lines below a method are its targets: speeds that it should reach, as multiples of the speed of "
      "another method or in microseconds. A missed target is not a failure.",
      {"speed", "declined"},
      "  speed_vs_length\n"
      "  speed_vs_length --filter 'exact/*,eigen/*@peer' --longest 20\n"
      "  speed_vs_length --full --out build/study"};
  std::string data;
  int longest = 32;
  study.add_option("--data", "GLOB,…", data, "normal, 60 binades or arbitrary bits");
  study.add_option("--longest", "E", longest, "Arrays of at most 2^E elements", {0, 40});
  study.add_processes();
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<SpeedTask> all = tasks({s.full(), s.filter(), data, longest});
    for (const SpeedTask& task : all) s.expect(rows_of(task));
    if (const std::string gpu = gpu_description(); !gpu.empty()) s.print(gpu);
    Benches benches{all, s.seed()};
    std::vector<SpeedRow> rows;
    BarCount count;
    for (const SpeedTask& task : all) measure(s, task, benches, rows, count);
    s.print('\n' + count.text());
  });
}
