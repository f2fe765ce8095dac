#include "harness/provenance.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "harness/build.hpp"
#include "harness/place.hpp"

namespace samesum::harness {
namespace {

/// The text without blanks, separators and quotes at its ends.
std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t:=\"");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\"") - first + 1);
}

/// The value in the first line of a file that begins with the key; with an empty key, the first line.
std::string look_up(const char* file, const std::string& key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return trimmed(line.substr(key.size()));
  return "";
}

std::string or_else(std::string text, const char* other) { return text.empty() ? other : text; }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// The number at the beginning of the text, rounded to an integer; null if there is none.
Json integer_or_null(const std::string& text) {
  try {
    return text.starts_with("0x") ? std::stol(text, nullptr, 16) : std::lround(std::stod(text));
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

/// The first line of the output of a command; empty if there is none.
std::string first_line_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out{popen(command.c_str(), "r"), &pclose};
  std::array<char, 512> line{};
  if (!out || !std::fgets(line.data(), line.size(), out.get())) return "";
  return line.data();
}

/// Clocks of the CPU, of which a virtual machine tells the first at most.
Json clocks() {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
  const Json most = integer_or_null(look_up((folder + "cpuinfo_max_freq").c_str(), ""));  // in kHz
  return {{"cpu_mhz", integer_or_null(look_up("/proc/cpuinfo", "cpu MHz"))},
          {"cpu_max_mhz", most.is_null() ? most : Json(most.get<long>() / 1000)},
          {"cpu_governor", text_or_null(look_up((folder + "scaling_governor").c_str(), ""))}};
}

}  // namespace

Json processor(std::istream& cpuinfo) {
  std::map<std::string, std::string> first;
  std::set<std::string> sockets, cores;
  std::string socket;
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string key = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon));
    first.emplace(key, value);
    if (key == "physical id") sockets.insert(socket = value);
    if (key == "core id") cores.insert(socket + ' ' + value);
  }
  // The second name is that of Arm processors.
  const auto either = [&](const char* name, const char* other) {
    return first.contains(name) ? first[name] : first[other];
  };
  const auto count = [](std::size_t n) { return n == 0 ? Json(nullptr) : Json(n); };
  return {{"vendor", text_or_null(either("vendor_id", "CPU implementer"))},
          {"family", integer_or_null(either("cpu family", "CPU architecture"))},
          {"model", integer_or_null(either("model", "CPU part"))},
          {"stepping", integer_or_null(either("stepping", "CPU revision"))},
          {"sockets", count(sockets.size())},
          {"cores", count(cores.size())}};
}

void add_gpu(Json& provenance, const std::string& line) {
  std::istringstream in{line};
  std::string field;
  std::getline(in, field, ',');
  field = trimmed(field);
  provenance["gpu_driver"] = integer_or_null(field).is_null() ? Json(nullptr) : Json(field);
  for (const char* name :
       {"gpu_sm_mhz", "gpu_sm_max_mhz", "gpu_memory_mhz", "gpu_memory_max_mhz", "gpu_power_limit_w"}) {
    field.clear();
    std::getline(in, field, ',');
    provenance["clocks"][name] = integer_or_null(trimmed(field));
  }
}

Json libraries(const std::string& versions) {
  Json all = Json::object();
  std::istringstream in{versions};
  for (std::string each; std::getline(in, each, ',');) {
    each = trimmed(each);
    const std::size_t blank = each.rfind(' ');
    if (blank != std::string::npos) all[each.substr(0, blank)] = each.substr(blank + 1);
  }
  return all;
}

Json machine() {
  utsname system{};
  uname(&system);
  return {{"cpu", or_else(look_up("/proc/cpuinfo", "model name"), system.machine)},
          {"hardware_threads", std::thread::hardware_concurrency()},
          {"gpu", text_or_null(gpu_description())},
          {"os", or_else(look_up("/etc/os-release", "PRETTY_NAME"), system.sysname)},
          {"kernel", std::string{system.sysname} + " " + system.release}};
}

Json provenance() {
  Json all = machine();
  std::ifstream cpuinfo{"/proc/cpuinfo"};
  all["processor"] = processor(cpuinfo);
  all["clocks"] = clocks();
  if (const std::string address = gpu_address(); !address.empty())
    add_gpu(all, first_line_of("nvidia-smi --format=csv,noheader,nounits --id=" + address +
                               " --query-gpu=" + gpu_query + " 2>/dev/null"));
  all["libraries"] = libraries(std::string{build().libraries} + ", " + gpu_libraries());
  all["compiler"] = compiler();
  all["flags"] = build().flags;
  all["library_version"] = build().version;
  all["commit"] = build().commit;
  all["date"] = now();
  return all;
}

Json without_what_varies(Json header) {
  if (const auto provenance = header.find("provenance");
      provenance != header.end() && provenance->is_object())
    for (const char* name : {"date", "clocks"}) provenance->erase(name);
  return header;
}

}  // namespace samesum::harness
