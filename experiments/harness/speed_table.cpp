#include "harness/speed_table.hpp"

#include <algorithm>

#include "harness/peers.hpp"
#include "harness/text.hpp"

namespace samesum::harness {
namespace {

/// The methods of a cell in the order of Bench::measure, with the grids that they are given.
std::vector<std::pair<std::string, std::optional<int>>> timed_methods(const SpeedTask& task) {
  std::vector<std::pair<std::string, std::optional<int>>> all;
  for (const Method* m : task.methods) {
    all.push_back({m->name, std::nullopt});
    if (task.cell.grid && m->accumulator == "fixed_point") all.push_back({m->name, task.cell.grid});
  }
  all.push_back({task.cell.ceiling(), std::nullopt});
  return all;
}

std::string head_of(const Cell& cell) {
  const std::string where = cell.in_graph       ? "GPU, in a graph"
                            : cell.threads == 0 ? "GPU"
                            : cell.threads == 1 ? "1 thread"
                                                : std::to_string(cell.threads) + " threads";
  const std::string what = cell.by_key() ? "" : cell.operation + ", ";
  const std::string name = what + shape_in_words(cell) + " " + std::string{cell.input->name} + ": " + where;
  constexpr std::size_t width = 42;
  return left(name, width) + (name.size() > width ? "\n" + left("", width) : "") +
         "    time     +-  GB/s  of " + cell.ceiling();
}

void print_row(Study& study, const Json& row, const Json& ceiling) {
  const double seconds = row["seconds"], spread = row["high"].get<double>() - row["low"].get<double>();
  const Json grid = row.value("grid", Json(nullptr));
  const std::string given = grid.is_null() ? "" : " 2^" + grid.dump();
  std::string text = "  " + left(row["method"].get<std::string>() + given, 40) + right(duration(seconds), 8) +
                     right(compact(50 * spread / seconds, 4, 2), 6) + '%' +
                     right(compact(row["gb_per_s"], 5, 4), 6) +
                     right(compact(100 * ceiling["seconds"].get<double>() / seconds, 5), 8) + '%';
  if (row["verified"] == Json(false)) text += " WRONG";
  study.print(text);
  if (const Json times = row.value("times_normal", Json(nullptr)); !times.is_null())
    study.print("    " + compact(times, 4) + " times its time on normal data");
  for (const Json& bar : row["bars"])
    study.print(std::string{"    "} + (bar["holds"] ? "pass " : "MISS ") + compact(bar["reached"], 5) +
                " >= " + compact(bar["factor"], 4) + " x " + bar["against"].get<std::string>());
}

/// Computes the ratios to the time of the ceiling, the last row, and of the fastest peer in the same rounds.
void derive_ratios(std::vector<Json>& rows) {
  const Json* fastest = nullptr;
  for (const Json& row : rows)
    if (row["method"].get<std::string>().ends_with("@peer") && row["verified"] != Json(false) &&
        (!fastest || row["seconds"] < (*fastest)["seconds"]))
      fastest = &row;
  const auto times = [](const Json& row, const Json& other) {
    return ratio_of_rounds(rounds_of(row), rounds_of(other)).median;
  };
  for (Json& row : rows) {
    row["times_ceiling"] = times(row, rows.back());
    row["peer"] = fastest ? (*fastest)["method"] : Json(nullptr);
    row["times_peer"] = fastest ? Json(times(row, *fastest)) : Json(nullptr);
  }
}

/// The time of a method relative to that on normal data, with the same grid; null if that was not measured.
Json times_normal(const SpeedRow& row, const std::vector<SpeedRow>& measured) {
  Cell normal = row.cell;
  normal.data = "normal";
  for (const SpeedRow& other : measured)
    if (other.method == row.method && other.grid == row.grid && same_but_for_grid(other.cell, normal))
      return row.seconds / other.seconds;
  return nullptr;
}

/// Measures all methods of a cell in turns, in one more process.
void measure_in_turns(std::vector<Json>& rows, const SpeedTask& task, const Study& study) {
  const std::vector<Speed> speeds = Bench{task.cell, study.seed(), task.cell.elements()}.measure(
      task.cell, task.methods, study.repeats(11));
  for (std::size_t i = 0; i < rows.size(); ++i) add_process(rows[i], speeds.at(i));
}

/// Computes the fields of a cell that follow from its rounds. `measured` are the rows of earlier cells.
void derive(std::vector<Json>& rows, const Cell& cell, const std::vector<SpeedRow>& measured) {
  for (Json& row : rows) derive_speed(row, cell.bytes());
  derive_bars(rows, cell, measured);
  derive_ratios(rows);
  if (cell.data == "normal") return;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i)
    rows[i]["times_normal"] = times_normal(speed_row_of(cell, rows[i]), measured);
}

}  // namespace

void append_peers(SpeedTask& task) {
  PeersOfCell peers = peers_of(task.cell);
  std::ranges::move(peers.methods, std::back_inserter(task.methods));
  task.declined = std::move(peers.declined);
}

std::size_t rows_of(const SpeedTask& task) { return timed_methods(task).size() + task.declined.size(); }

Json reduction_key(const Cell& cell, const std::string& method, std::optional<int> grid, std::uint64_t seed) {
  Json key = {{"kind", "reduction"},         {"method", method},
              {"operation", cell.operation}, {"input_format", cell.input->name},
              {"outer", cell.outer},         {"n", cell.n},
              {"inner", cell.inner},         {"seed", seed},
              {"threads", cell.threads}};
  if (cell.by_key()) {
    key["keys"] = cell.keys;
    key["bins"] = cell.bins;
    key["grid"] = grid ? Json(*grid) : Json(nullptr);
  } else if (grid) {
    key["grid"] = *grid;
  }
  if (cell.data != "normal") key["data"] = cell.data;
  if (cell.in_graph) key["launch"] = "graph";
  return key;
}

std::string shape_in_words(const Cell& cell) {
  if (cell.by_key())
    return power_or_number(cell.n) + (cell.inner > 1 ? " x " + std::to_string(cell.inner) : "") + ", " +
           power_or_number(cell.bins) + " " + cell.keys + " keys" +
           (cell.data != "normal" ? ", " + cell.data : "") + ",";
  const std::string rows = std::to_string(cell.outer) + " x " + std::to_string(cell.n);
  return (cell.inner > 1   ? rows + " x " + std::to_string(cell.inner)
          : cell.outer > 1 ? rows
                           : power_or_number(cell.n)) +
         (cell.data != "normal" ? ", " + cell.data + "," : "");
}

void decline(Study& study, const Cell& cell, const std::vector<PeersOfCell::Declined>& declined) {
  for (const auto& [peer, reason] : declined) {
    Json key = reduction_key(cell, peer->name, {}, study.seed());
    key["kind"] = "declined";
    key.erase("grid");
    study.row(key, [&why = reason] { return Json{{"reason", why}}; });
    study.print("  " + left(peer->name, 40) + "  declined: " + reason);
  }
}

void check_results(Study& study, const Cell& cell, const Json& row) {
  if (row["verified"] != Json(false)) return;
  const std::string method = row["method"];
  if (method.ends_with("@peer"))
    study.print("    wrong results of the peer: nothing is compared with it");
  else
    study.fail(method + " of " + shape_in_words(cell) + " " + std::string{cell.input->name} + ": wrong bits");
}

void measure_speeds(Study& study, const std::vector<SpeedTask>& tasks) {
  BarCount count;
  std::vector<SpeedRow> measured;
  for (const SpeedTask& task : tasks) {
    std::vector<Json> keys;
    for (const auto& [method, grid] : timed_methods(task))
      keys.push_back(reduction_key(task.cell, method, grid, study.seed()));
    const std::vector<Json> rows = study.rows_in_turns(
        keys, [&](std::vector<Json>& all) { measure_in_turns(all, task, study); },
        [&](std::vector<Json>& all) { derive(all, task.cell, measured); });
    study.print(head_of(task.cell));
    for (const Json& row : rows) {
      if (row["verified"] != Json(false)) measured.push_back(speed_row_of(task.cell, row));
      print_row(study, row, rows.back());
      count.add(row);
      check_results(study, task.cell, row);
    }
    decline(study, task.cell, task.declined);
    study.print("");
  }
  study.print(count.text());
}

}  // namespace samesum::harness
