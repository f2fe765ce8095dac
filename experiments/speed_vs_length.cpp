/// How fast is each sum, for arrays of every length, beside what other libraries need and what memory allows?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "harness/commands.hpp"
#include "harness/peers.hpp"
#include "harness/speed.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

/// What is measured side by side: one array, one length, one number of threads.
struct Cell {
  const FormatInfo* input;
  std::string data;
  std::size_t n;
  int threads;  ///< 0 on a GPU
  bool cold = false;
  std::string place;

  bool operator==(const Cell&) const = default;
};

struct Row {
  Cell cell;
  std::string method;
  double seconds;
};
using Rows = std::vector<Row>;

// --- the bars --------------------------------------------------------------------------------------

constexpr std::size_t any = SIZE_MAX;

/// What a method is held to: `factor` times the speed of the fastest method that `against` names, or at most
/// `factor` microseconds.
struct Bar {
  std::string methods;  ///< a glob
  std::vector<std::string> inputs;
  std::vector<std::string> data, places;
  std::size_t shortest, longest;
  double factor;
  std::string against;       ///< a glob; empty for microseconds. The other one sums normal data.
  int threads = 1;           ///< of the method; the other one has as many, but for `itself`
  std::string ceiling = {};  ///< a method whose speed is enough, whatever the factor asks for
};

const std::string itself = "itself";  ///< on normal data, with one thread

const std::vector<std::string> all{"fp16", "bf16", "fp32", "fp64"}, narrow{"fp16", "bf16", "fp32"},
    halves{"fp16", "bf16"}, fp32_alone{"fp32"}, fp64_alone{"fp64"};
const std::vector<std::string> normal{"normal"}, binades{"60 binades"},
    awkward{"60 binades", "arbitrary bits"};
const std::vector<std::string> l2{"L2"}, dram{"DRAM"}, caches_and_dram{"L2", "DRAM"}, few{"latency"},
    gpu{"GPU"};

constexpr std::size_t two_to(int e) { return std::size_t{1} << e; }

const std::vector<Bar> bars{
    // On a CPU.
    {"tree/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 2.0, "std_reduce/*"},
    {"pairwise/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 2.0, "std_reduce/*"},
    {"tree/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 0.6, "eigen/*"},
    {"pairwise/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 0.6, "eigen/*"},
    {"tree/kahan/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.5, "std_reduce/*"},
    {"tree/neumaier/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.5, "std_reduce/*"},
    {"exact/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.0, "std_reduce/*"},
    {"tree/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.2, "eigen/*"},
    {"pairwise/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.2, "eigen/*"},
    {"tree/kahan/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.95, "eigen/*"},
    {"tree/neumaier/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.95, "eigen/*"},
    {"exact/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.9, "eigen/*"},
    {"tree/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.7, itself, 2, "read"},
    {"exact/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.7, itself, 2, "read"},
    {"tree/plain/fp32@cpu", halves, normal, dram, 0, any, 0.8, "read"},
    {"exact/*@cpu", {"fp32", "fp64"}, binades, caches_and_dram, 0, any, 0.5, itself},
    {"tree/plain/fp64@cpu", fp64_alone, normal, dram, 0, any, 1.0, "eigen/*"},
    {"exact/fp64@cpu", fp64_alone, normal, dram, 0, any, 0.5, "tree/plain/fp64@cpu"},
    {"*@cpu", all, normal, few, 1, 64, 0.75, ""},
    // On a GPU.
    {"pairwise/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(22), any, 0.99, "cub/*", 0},
    {"tree/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(22), any, 0.97, "cub/*", 0},
    {"pairwise/plain/*@cuda", halves, normal, gpu, two_to(22), two_to(26), 1.05, "cub/*", 0},
    {"tree/plain/*@cuda", halves, normal, gpu, two_to(22), two_to(26), 1.03, "cub/*", 0},
    {"pairwise/plain/*@cuda", halves, normal, gpu, two_to(27), any, 1.00, "cub/*", 0},
    {"tree/plain/*@cuda", halves, normal, gpu, two_to(27), any, 0.98, "cub/*", 0},
    {"tree/plain/fp64@cuda", fp64_alone, normal, gpu, two_to(22), any, 0.97, "cub/*", 0},
    {"pairwise/plain/*@cuda", all, normal, gpu, two_to(14), two_to(20), 1.30, "cub/run_to_run/*", 0},
    {"tree/plain/*@cuda", all, normal, gpu, two_to(14), two_to(20), 1.27, "cub/run_to_run/*", 0},
    {"*/plain/*@cuda", all, normal, gpu, 0, two_to(13), 0.95, "cub/*", 0},
    {"*/kahan/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"*/neumaier/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"*/double_word/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"exact/*@cuda", narrow, normal, gpu, two_to(28), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"exact/*@cuda", narrow, normal, gpu, two_to(24), two_to(24), 0.90, "tree/plain/fp32@cuda", 0},
    {"exact/*@cuda", narrow, normal, gpu, 0, two_to(16), 5.0, "", 0},
    {"exact/*@cuda", {"fp32", "fp64"}, normal, gpu, 0, any, 1.30, "cub/gpu_to_gpu/*", 0},
    {"exact/*@cuda", fp64_alone, normal, gpu, two_to(26), any, 0.90, "tree/plain/fp64@cuda", 0},
    {"exact/fp32@cuda", fp32_alone, awkward, gpu, two_to(24), any, 0.80, itself, 0},
    {"exact/bf16@cuda", {"bf16"}, awkward, gpu, two_to(24), any, 0.60, itself, 0},
    {"exact/fp16@cuda", {"fp16"}, awkward, gpu, two_to(24), any, 0.95, itself, 0},
};

/// How a row did against one bar.
struct Verdict {
  std::string against;
  double factor, reached;  ///< a ratio of speeds, or microseconds
  bool holds() const { return against == "us" ? reached <= factor : reached >= factor; }
};

/// The fastest of the methods that a glob names.
const Row* best(const Rows& rows, const Cell& cell, const std::string& glob) {
  const Row* found = nullptr;
  for (const Row& r : rows)
    if (r.cell == cell && matches(glob, r.method) && (!found || r.seconds < found->seconds)) found = &r;
  return found;
}

std::optional<Verdict> judge(const Row& row, const Bar& bar, const Rows& rows) {
  const Cell& cell = row.cell;
  if (!matches(bar.methods, row.method) || std::ranges::count(bar.inputs, cell.input->name) == 0 ||
      std::ranges::count(bar.data, cell.data) == 0 || std::ranges::count(bar.places, cell.place) == 0 ||
      cell.n < bar.shortest || cell.n > bar.longest || cell.threads != bar.threads)
    return std::nullopt;
  if (bar.against.empty()) return Verdict{"us", bar.factor, row.seconds * 1e6};
  Cell other = cell;
  other.data = "normal";
  if (bar.against == itself) other.threads = std::min(cell.threads, 1);
  const Row* opponent = best(rows, other, bar.against == itself ? row.method : bar.against);
  if (!opponent) return std::nullopt;
  double factor = bar.factor;
  if (const Row* ceiling = best(rows, cell, bar.ceiling))
    factor = std::min(factor, 0.95 * opponent->seconds / ceiling->seconds);  // as near as runs differ
  const std::string alone = other.threads < cell.threads ? ", one thread"
                            : other.data != cell.data    ? ", normal"
                                                         : "";
  return Verdict{opponent->method + alone, factor, opponent->seconds / row.seconds};
}

// --- what is measured ------------------------------------------------------------------------------

constexpr std::size_t l2_bytes = std::size_t{1} << 20, dram_bytes = std::size_t{1} << 28;

std::string place_of(std::size_t bytes, std::size_t n) {
  return n <= 64 ? "latency" : bytes == l2_bytes ? "L2" : bytes >= dram_bytes ? "DRAM" : "cache";
}

struct Choice {
  bool full;
  std::string filter, data;  ///< globs; empty for what is usual
  int longest;               ///< log2 of n
};

std::vector<const Dataset*> chosen_data(const Choice& choice) {
  if (!choice.data.empty()) return datasets_matching(choice.data);
  return datasets_matching(choice.full ? "normal,60 binades,arbitrary bits" : "normal,60 binades");
}

std::vector<Cell> cpu_cells(const Choice& choice) {
  std::vector<Cell> cells;
  for (const FormatInfo& input : formats) {
    std::vector<std::size_t> lengths{1, 64, two_to(12), l2_bytes / input.bytes, dram_bytes / input.bytes};
    for (int e = 2; choice.full && e <= 28; e += 2) lengths.push_back(two_to(e));
    std::ranges::sort(lengths);
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    for (const Dataset* data : chosen_data(choice))
      for (const std::size_t n : lengths) {
        const std::string place = place_of(n * input.bytes, n);
        const bool everywhere = data->name == "normal" || !choice.data.empty();
        if (n > two_to(choice.longest) || (!everywhere && place != "L2" && place != "DRAM")) continue;
        cells.push_back({&input, data->name, n, 1, false, place});
        if (place == "DRAM" && input.name == "fp32" && data->name == "normal")
          cells.push_back({&input, data->name, n, 2, false, place});
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
            cells.push_back({&input, data->name, two_to(e), 0, cold, "GPU"});
      }
  return cells;
}

/// Unless told otherwise: plain sums in the input's format and in fp32, all accumulators in fp32, exact ones,
/// and peers. Sums that are not exact do not look at what they add: they are measured on normal data.
bool is_default(const Variant& v, const Cell& cell) {
  const bool own = v.format == cell.input;
  if (is_peer(v)) return cell.data == "normal" && (own || v.format->name == "fp32");
  if (v.slow || v.backend == "reference" || v.promise == Promise::none) return false;
  if (v.accumulator == "exact") return own;
  if (cell.data != "normal" || (v.order == "serial" && cell.n * cell.input->bytes > l2_bytes)) return false;
  return v.accumulator == "plain" ? own || (cell.input->bytes == 2 && v.format->name == "fp32")
                                  : own && cell.input->name == "fp32";
}

bool runs(const Variant& v, const Cell& cell) {
  return cell.threads == 0 ? v.launch[cell.input->index] != nullptr : v.run[cell.input->index] != nullptr;
}

std::vector<const Variant*> methods_of(const Cell& cell, const std::string& filter) {
  std::vector<const Variant*> chosen;
  const auto add = [&](const Variant& v) {
    if (runs(v, cell) && (!filter.empty() || is_default(v, cell))) chosen.push_back(&v);
  };
  if (filter.empty()) {
    for (const Variant& v : variants()) add(v);
    for (const Variant& v : peers()) add(v);
  } else {
    for (const Variant* v : variants_matching(filter, *cell.input, "--filter")) add(*v);
  }
  return chosen;
}

struct Task {
  Cell cell;
  std::vector<const Variant*> methods;
};

/// Cells that have a method.
std::vector<Task> tasks(const Choice& choice) {
  std::vector<Cell> cells = cpu_cells(choice);
  if (absent().empty()) std::ranges::move(gpu_cells(choice), std::back_inserter(cells));
  std::vector<Task> all;
  for (const Cell& cell : cells)
    if (const auto methods = methods_of(cell, choice.filter); !methods.empty())
      all.push_back({cell, methods});
  if (all.empty())
    throw UsageError{"--filter, --data and --longest leave nothing that could be measured here"};
  return all;
}

// --- the study -------------------------------------------------------------------------------------

Json key_of(const Cell& cell, const std::string& method, std::uint64_t seed) {
  return {{"kind", "speed"},
          {"method", method},
          {"input_format", cell.input->name},
          {"data", cell.data},
          {"seed", seed},
          {"n", cell.n},
          {"threads", cell.threads},
          {"caches", cell.cold ? "cold" : "hot"},
          {"place", cell.place}};
}

void print_head(Study& study, const Cell& cell) {
  const std::string threads = std::to_string(cell.threads) + (cell.threads == 1 ? " thread" : " threads");
  const std::string where = cell.threads == 0
                                ? std::string{"GPU, "} + (cell.cold ? "cold" : "hot") + " caches"
                            : cell.place == "latency" ? threads
                                                      : cell.place + ", " + threads;
  study.print("");
  study.print(left(std::string{cell.input->name} + ", " + cell.data + ", n = " + power_or_number(cell.n) +
                       ": " + where,
                   29) +
              "    time    +-  GB/s");
}

/// Of "eigen/fp32@peer, one thread" what tells it apart in a line: "eigen, one thread".
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
  if (row["verified"] == Json(false)) text += "  WRONG BITS";
  study.print(text);
  for (const Json& bar : row["bars"]) {
    const bool us = bar["against"] == "us";
    study.print(std::string{"  "} + (bar["holds"] ? "pass " : "MISS ") + compact(bar["reached"], 5) +
                (us ? " us <= " : " >= ") + compact(bar["factor"], 4) +
                (us ? "" : " x " + short_name(bar["against"])));
  }
}

/// Benches are made when they are first needed, and kept as long as cells have the same data.
class Benches {
 public:
  Benches(const std::vector<Task>& tasks, std::uint64_t seed) : tasks_{tasks}, seed_{seed} {}

  Bench& of(const Cell& cell) {
    if (!bench_ || !same(cell, cell_)) {
      bench_.reset();  // its memory may be needed
      std::size_t most = 0;
      for (const Task& task : tasks_)
        if (same(task.cell, cell)) most = std::max(most, task.cell.n);
      const Dataset& data = *datasets_matching(cell.data).front();
      bench_ = (cell.threads == 0 ? gpu_bench : cpu_bench)(*cell.input, data, seed_, most);
      cell_ = cell;
    }
    return *bench_;
  }

 private:
  static bool same(const Cell& a, const Cell& b) {
    return a.input == b.input && a.data == b.data && (a.threads == 0) == (b.threads == 0);
  }
  const std::vector<Task>& tasks_;
  std::uint64_t seed_;
  std::unique_ptr<Bench> bench_;
  Cell cell_;
};

struct Count {
  int held = 0, missed = 0;
};

void measure(Study& study, const Task& task, Benches& benches, Rows& rows, Count& count) {
  const Cell& cell = task.cell;
  const std::vector<const Variant*>& methods = task.methods;
  std::vector<std::string> names;
  for (const Variant* v : methods) names.push_back(v->name);
  names.push_back("read");
  // All methods of a cell are measured together, in turns, once the first of them is asked for.
  std::optional<std::vector<Speed>> measured;
  print_head(study, cell);
  const auto speeds = [&]() -> const std::vector<Speed>& {
    const int repeats = cell.place == "DRAM" && !study.full() ? 7 : 11;
    if (!measured)
      measured = benches.of(cell).measure(methods, cell.n, {repeats, std::max(cell.threads, 1), cell.cold});
    return *measured;
  };
  for (const std::string& name : names) {
    const Json row = study.row(key_of(cell, name, study.seed()), [&]() -> Json {
      // The bars need all rows of the cell.
      for (const Speed& s : speeds())
        if (!best(rows, cell, s.method)) rows.push_back({cell, s.method, s.seconds});
      const Speed& s = *std::ranges::find(speeds(), name, &Speed::method);
      Json held = Json::array();
      for (const Bar& bar : bars)
        if (const auto v = judge({cell, name, s.seconds}, bar, rows))
          held.push_back({{"against", v->against},
                          {"factor", v->factor},
                          {"reached", v->reached},
                          {"holds", v->holds()}});
      const double bytes = static_cast<double>(cell.n * cell.input->bytes);
      return {{"seconds", s.seconds},
              {"low", s.low},
              {"high", s.high},
              {"gb_per_s", bytes / s.seconds / 1e9},
              {"verified", s.verified ? Json(*s.verified) : Json(nullptr)},
              {"bars", held}};
    });
    if (!best(rows, cell, name)) rows.push_back({cell, name, row["seconds"]});
    for (const Json& bar : row["bars"]) ++(bar["holds"] ? count.held : count.missed);
    if (row["verified"] == Json(false))
      study.fail(name + " of " + std::string{cell.input->name} + ", n = " + power_or_number(cell.n) +
                 ": wrong bits");
    print(study, row);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Study study{"speed_vs_length", "How fast is each sum, for arrays of every length?",
              "  speed_vs_length\n"
              "  speed_vs_length --filter 'exact/*,eigen/*@peer' --longest 20\n"
              "  speed_vs_length --full --out build/study\n\n"
              "Times are medians; +- is half of what lies between the 10th and 90th percentile.\n"
              "Below a method: what it is held to, and whether it holds that (a missed bar is\n"
              "no failure). Arrays in L2 have 1 MiB, those in DRAM 256 MiB.\n\nData:" +
                  datasets_in_words()};
  std::string data;
  int longest = 32;
  study.app().add_option("--data", data, "Which (default normal, 60 binades for exact)")->type_name("GLOB,…");
  study.app()
      .add_option("--longest", longest, "No array of more than 2^E elements")
      ->type_name("E")
      ->check(CLI::Range(0, 40));
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<Task> all = tasks({s.full(), s.filter(), data, longest});
    for (const Task& task : all) s.expect(task.methods.size() + 1);
    if (const std::string gpu = gpu_description(); !gpu.empty()) s.print(gpu);
    Benches benches{all, s.seed()};
    Rows rows;
    Count count;
    for (const Task& task : all) measure(s, task, benches, rows, count);
    s.print("\n" + std::to_string(count.held) + " bars hold, " + std::to_string(count.missed) +
            " are missed");
  });
}
