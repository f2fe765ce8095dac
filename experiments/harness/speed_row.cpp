#include "harness/speed_row.hpp"

namespace samesum::harness {

Json speed_key(const Cell& cell, const std::string& method, std::uint64_t seed) {
  return {{"kind", "speed"},
          {"method", method},
          {"input_format", cell.input->name},
          {"data", cell.data},
          {"seed", seed},
          {"n", cell.n},
          {"threads", cell.threads},
          {"caches", cell.cold ? "cold" : "hot"},
          {"place", cell.place()}};
}

Json timing(std::size_t bytes, const Speed& speed) {
  return {{"seconds", speed.seconds},
          {"low", speed.low},
          {"high", speed.high},
          {"gb_per_s", static_cast<double>(bytes) / speed.seconds / 1e9},
          {"verified", speed.verified ? Json(*speed.verified) : Json(nullptr)}};
}

Json speed_values(const Cell& cell, const Speed& speed, const std::vector<Verdict>& verdicts) {
  Json values = timing(cell.bytes(), speed), bars = Json::array();
  for (const Verdict& v : verdicts)
    bars.push_back(
        {{"against", v.against}, {"factor", v.factor}, {"reached", v.reached}, {"holds", v.holds()}});
  values["bars"] = bars;
  return values;
}

std::string what_is_wrong(const std::string& method) {
  return method.ends_with("@peer") ? "wrong results" : "wrong bits";
}

void BarCount::add(const Json& row) {
  for (const Json& bar : row["bars"]) ++(bar["holds"] ? held : missed);
}

}  // namespace samesum::harness
