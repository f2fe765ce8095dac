#include "harness/speed_row.hpp"

namespace samesum::harness {

Json speed_key(const Cell& cell, const std::string& method, std::uint64_t seed) {
  Json key = {{"kind", "speed"},
              {"method", method},
              {"input_format", cell.input->name},
              {"data", cell.data},
              {"seed", seed},
              {"n", cell.n},
              {"threads", cell.threads},
              {"caches", cell.cold ? "cold" : "hot"},
              {"place", cell.place()}};
  if (cell.in_graph) key["launch"] = "graph";
  return key;
}

SpeedRow speed_row_of(const Cell& cell, const Json& row) {
  const Json grid = row.value("grid", Json(nullptr));
  return {cell, row["method"], row["seconds"], rounds_of(row),
          grid.is_null() ? std::nullopt : std::optional{grid.get<int>()}};
}

void derive_speed(Json& row, std::size_t bytes) {
  row["gb_per_s"] = static_cast<double>(bytes) / row["seconds"].get<double>() / 1e9;
}

void derive_bars(std::vector<Json>& rows, const Cell& cell, std::vector<SpeedRow> others) {
  for (const Json& row : rows)
    if (row["verified"] != Json(false)) others.push_back(speed_row_of(cell, row));
  for (Json& row : rows) {
    row["bars"] = Json::array();
    for (const Verdict& v : verdicts(speed_row_of(cell, row), others))
      row["bars"].push_back(
          {{"against", v.against}, {"factor", v.factor}, {"reached", v.reached}, {"holds", v.holds()}});
  }
}

void BarCount::add(const Json& row) {
  for (const Json& bar : row["bars"]) ++(bar["holds"] ? held : missed);
}

}  // namespace samesum::harness
