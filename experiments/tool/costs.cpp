#include "tool/costs.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/input.hpp"
#include "harness/results.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::harness {
namespace {

namespace fs = std::filesystem;

/// The header in the first line; null if it is not the header of speed_vs_length.
Json header_of(std::istream& in) {
  std::string line;
  std::getline(in, line);
  const Json header = Json::parse(line, nullptr, false);
  const bool fits = header.is_object() && header.value("kind", Json()) == "study" &&
                    header.value("experiment", Json()) == "speed_vs_length" &&
                    header.value("schema", Json()) == schema_version &&
                    header.value("provenance", Json()).is_object();
  return fits ? header : Json(nullptr);
}

std::string machine_of(const Json& provenance) {
  const Json cpu = provenance.value("cpu", Json()), gpu = provenance.value("gpu", Json());
  return (cpu.is_string() ? cpu.get<std::string>() : "unknown") +
         (gpu.is_string() ? ", " + gpu.get<std::string>() : "");
}

/// The method with this name, or nullptr. Files of earlier versions leave out "sum/". Costs keep a view of
/// the name, so it must be that of the catalogue, which outlives every table.
const Method* known_method(const std::string& name) {
  const auto found = std::ranges::find_if(
      methods(), [&](const Method& m) { return m.name == name || m.name == "sum/" + name; });
  return found == methods().end() ? nullptr : &*found;
}

/// Throws an exception of nlohmann::json if a field is missing or has another type.
void add_cost(const Json& row, std::vector<Cost>& costs) {
  if (row.at("kind") != "speed") throw std::runtime_error{"not a row of kind speed"};
  const FormatInfo* input = find_format(row.at("input_format").get<std::string>());
  const Method* method = known_method(row.at("method"));
  const double seconds = row.at("seconds");
  const std::size_t n = row.at("n").is_number_unsigned() ? row.at("n").get<std::size_t>() : 0;
  const bool usual =
      row.at("data") == "normal" && row.at("threads").get<int>() <= 1 && row.at("caches") == "hot";
  const bool wrong = row.value("verified", Json()) == false;
  if (!input || n == 0 || !(seconds > 0) || wrong) throw std::runtime_error{"not a correct sum"};
  if (usual && method) costs.push_back({method->name, input->name, n, seconds});
}

}  // namespace

std::string calibration_file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path name = fs::path{"samesum"} / "speed_vs_length.jsonl";
  if (cache && *cache) return fs::path{cache} / name;
  return home && *home ? fs::path{home} / ".cache" / name : fs::path{};
}

CostTable read_costs(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in) throw InputError(path, "cannot be read; `samesum calibrate --out` writes a file of costs");
  const Json header = header_of(in);
  if (header.is_null())
    throw InputError(path, "has no results of speed_vs_length of schema " + std::to_string(schema_version) +
                               "; `samesum calibrate --out` writes a file of costs");
  CostTable table{.file = path, .machine = machine_of(header["provenance"]), .costs = {}, .passed_over = ""};
  for (std::string line; std::getline(in, line);) try {
      add_cost(Json::parse(line), table.costs);
    } catch (const std::exception&) {
      ++table.corrupt;
    }
  if (table.costs.empty())
    throw InputError(path, "has no costs of methods of this build; `samesum calibrate --out` measures them");
  return table;
}

std::string costs_of_other_operations(const std::string& path, const std::string& operation) {
  std::ifstream in{path, std::ios::binary};
  const Json header = header_of(in);
  if (header.is_null() || machine_of(header["provenance"]) != machine_of(machine())) return "";
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object() || !row.value("method", Json()).is_string()) continue;
    const Method* method = known_method(row["method"]);
    if (method && method->operation != operation) kept += line + '\n';
  }
  return kept;
}

CostTable shipped_table() {
  const auto [machine, costs] = shipped_costs();
  return {
      .file = "", .machine = std::string{machine}, .costs = {costs.begin(), costs.end()}, .passed_over = ""};
}

CostTable default_costs() {
  const std::string path = calibration_file();
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return shipped_table();
  CostTable table = shipped_table();
  try {
    CostTable own = read_costs(path);
    if (own.machine == machine_of(machine())) return own;
    table.passed_over = path + " was measured on another machine, " + own.machine;
  } catch (const std::exception& e) {
    table.passed_over = e.what();
  }
  return table;
}

}  // namespace samesum::harness
