#include "ladder/profile.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace samesum::ladder {
namespace {

const std::string branch_metric = "smsp__sass_average_branch_targets_threads_uniform.pct",
                  cache_metric = "l1tex__t_sector_hit_rate.pct";

/// Fields of a CSV line, each of which is quoted.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> all;
  for (std::size_t at = line.find('"'); at != line.npos; at = line.find('"', at)) {
    const std::size_t end = std::min(line.find('"', at + 1), line.size());
    all.push_back(line.substr(at + 1, end - at - 1));
    at = std::min(end + 1, line.size());
  }
  return all;
}

/// Converts percent to a share; empty for "nan", "n/a" and "".
std::optional<double> share(const std::string& text) {
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(x >= 0 && x <= 100)) return std::nullopt;
  return x / 100;
}

}  // namespace

bool has_profiler() { return std::system("command -v ncu >/dev/null 2>&1") == 0; }

std::vector<Profile> profiles_in(const std::string& csv) {
  std::vector<Profile> all;
  std::vector<std::string> names;
  std::string marked;  // ID of the last launch of the mark, which has one line per metric
  std::istringstream in{csv};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('"')) continue;  // other output of the profiler and of the program
    const std::vector<std::string> row = fields(line);
    if (names.empty()) {
      names = row;
      continue;
    }
    const auto field = [&](const char* name) {
      const auto at = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
      return at < row.size() ? row[at] : std::string{};
    };
    if (field("Kernel Name").find("begin_of_kernel") != std::string::npos) {
      if (field("ID") != marked) all.emplace_back();
      marked = field("ID");
    } else if (!all.empty()) {
      const std::string metric = field("Metric Name");
      if (metric != branch_metric && metric != cache_metric) continue;
      auto& value = metric == branch_metric ? all.back().branch_efficiency : all.back().l1_hit_rate;
      if (!value) value = share(field("Metric Value"));          // of the first launch, if there are several
      if (metric == branch_metric && value == 0) value.reset();  // the kernel has no branch
    }
  }
  return all;
}

std::vector<Profile> profile(const std::string& command) {
  const std::string whole = "ncu --csv --clock-control none --metrics " + branch_metric + ',' + cache_metric +
                            ' ' + command + " 2>&1";
  struct Close {
    void operator()(std::FILE* f) const { pclose(f); }
  };
  std::unique_ptr<std::FILE, Close> pipe{popen(whole.c_str(), "r")};
  if (!pipe) throw std::runtime_error{"ncu cannot be started"};
  std::string text;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, pipe.get())) > 0;) text.append(part, n);
  const int status = pclose(pipe.release());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::size_t at = text.find("==ERROR==");
    throw std::runtime_error{
        "ncu failed: " + (at == text.npos ? "no reason given" : text.substr(at, text.find('\n', at) - at))};
  }
  return profiles_in(text);
}

}  // namespace samesum::ladder
