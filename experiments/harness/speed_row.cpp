#include "harness/speed_row.hpp"

namespace samesum::harness {

std::string place_of(std::size_t bytes, std::size_t n) {
  return n <= 64 ? "latency" : bytes == l2_bytes ? "L2" : bytes >= dram_bytes ? "DRAM" : "other";
}

Json speed_key(const Cell& cell, const std::string& method, std::uint64_t seed) {
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

Json timing(std::size_t bytes, const Speed& speed) {
  return {{"seconds", speed.seconds},
          {"low", speed.low},
          {"high", speed.high},
          {"gb_per_s", static_cast<double>(bytes) / speed.seconds / 1e9},
          {"verified", speed.verified ? Json(*speed.verified) : Json(nullptr)}};
}

Json bars_json(const std::vector<Verdict>& verdicts) {
  Json bars = Json::array();
  for (const Verdict& v : verdicts)
    bars.push_back(
        {{"against", v.against}, {"factor", v.factor}, {"reached", v.reached}, {"holds", v.holds()}});
  return bars;
}

Json speed_values(const Cell& cell, const Speed& speed, const std::vector<Verdict>& verdicts) {
  Json values = timing(cell.n * cell.input->bytes, speed);
  values["bars"] = bars_json(verdicts);
  return values;
}

}  // namespace samesum::harness
