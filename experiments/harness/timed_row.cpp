#include "harness/timed_row.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace samesum::harness {
namespace {

double with_five_digits(double x) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4e", x);
  return std::strtod(text.data(), nullptr);
}

}  // namespace

Json row_without_rounds(Json key, int turns) {
  for (const char* derived : {"seconds", "low", "high"}) key[derived] = nullptr;
  key["turns"] = turns;
  key["rounds"] = Json::array();
  return key;
}

int largest_turns(const std::string& lines) {
  int largest = 0;
  std::istringstream in{lines};
  for (std::string line; std::getline(in, line);)
    largest = std::max(largest, Json::parse(line).value("turns", 0));
  return largest;
}

std::size_t processes_of(const Json& row) { return row.value("rounds", Json::array()).size(); }

Processes rounds_of(const Json& row, const char* field) { return row.at(field).get<Processes>(); }

void add_rounds(Json& row, const std::vector<double>& seconds, const char* field) {
  std::vector<double> rounded;
  for (const double s : seconds) rounded.push_back(with_five_digits(s));
  row[field].push_back(rounded);
}

void add_check(Json& row, std::optional<bool> verified) {
  Json& all = row["verified"];  // null in a new row
  if (verified) all = all != Json(false) && *verified;
}

void add_process(Json& row, const Speed& speed) {
  add_rounds(row, speed.rounds);
  add_check(row, speed.verified);
}

void derive_times(Json& row) {
  const Interval time = median_interval(rounds_of(row));
  row["seconds"] = time.median;
  row["low"] = time.low;
  row["high"] = time.high;
}

}  // namespace samesum::harness
