#include "harness/results.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "harness/digest.hpp"
#include "harness/peers.hpp"
#include "harness/text.hpp"

namespace samesum::harness {
namespace {

namespace fs = std::filesystem;

/// A temporary file. The destructor closes it, and removes it unless it was renamed.
class TemporaryFile {
 public:
  /// Has the permissions of the file that it will replace, if there is one.
  explicit TemporaryFile(const fs::path& target)
      : path_{target.string() + "." + std::to_string(getpid()) + ".part"} {
    struct stat replaced;
    const bool is_new = stat(target.c_str(), &replaced) != 0;
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_new ? 0666 : 0600);
    if (!is_new && descriptor_ >= 0) static_cast<void>(fchmod(descriptor_, replaced.st_mode & 0777));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (descriptor_ >= 0 && !path_.empty()) unlink(path_.c_str());
  }

  int descriptor() const { return descriptor_; }
  bool rename_to(const fs::path& target) {
    if (std::rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::string path_;
  int descriptor_;
};

bool write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

[[noreturn]] void refuse(const std::string& path, int error) {
  throw OutputError{path + ": cannot be written: " + std::strerror(error)};
}

/// The path after following symbolic links.
fs::path resolve(const std::string& path) {
  std::error_code ignored;
  fs::path target = path;
  constexpr int most = 40;  // links that lead to each other have no target
  for (int links = 0; fs::is_symlink(target, ignored) && links < most; ++links)
    target = target.parent_path() / fs::read_symlink(target, ignored);
  return target;
}

/// Whether the path is a device or a pipe, which must be written in place: only files can be replaced.
bool is_special(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

void write_special(const std::string& path, const std::string& text) {
  std::ofstream out{path, std::ios::binary};
  out << text << std::flush;
  if (!out) refuse(path, errno);
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string{c};
  return quoted + '"';
}

}  // namespace

std::vector<std::string> Comparison::failures() const {
  std::vector<std::string> all;
  for (const Measurement& m : measurements)
    if (const auto broken = failure(m); broken && !is_peer(*m.method)) all.push_back(*broken);
  return all;
}

Json study_json(const std::string& experiment, const std::string& question, bool full, std::uint64_t seed,
                const std::string& filter) {
  return {{"kind", "study"},      {"schema", schema_version},        {"experiment", experiment},
          {"question", question}, {"mode", full ? "full" : "quick"}, {"seed", seed},
          {"filter", filter},     {"provenance", provenance()}};
}

Json number_or_null(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

std::string hexadecimal_digest(std::uint64_t digest) { return bit_string({&format_info<fp64>(), digest}); }

Json result_json(const Measurement& m, const FormatInfo& input, const Truth& truth) {
  return {{"method", m.method->name},
          {"input_format", input.name},
          {"n", truth.size()},
          {"value", number_or_null(m.value.to_double())},
          {"bits", bit_string(m.value)},
          {"truth", number_or_null(m.truth.to_double())},
          {"truth_bits", bit_string(m.truth)},
          {"error_ulps", number_or_null(m.error.ulps)},
          {"relative_error", number_or_null(m.error.relative)},
          {"absolute_error", number_or_null(m.error.absolute)},
          {"bound", number_or_null(m.bound)},
          {"within_bound", m.within_bound},
          {"condition", number_or_null(truth.condition())},
          {"promise", name_of(m.method->promise)}};
}

std::optional<std::string> accusation(const Method& v, const Json& result) {
  if (is_peer(v)) return std::nullopt;
  if (!result["within_bound"]) return "the error " + result["absolute_error"].dump() + " exceeds its bound";
  if (is_correctly_rounded(v) && result["bits"] != result["truth_bits"]) return "is not correctly rounded";
  return std::nullopt;
}

std::vector<Json> rows(const Comparison& c) {
  std::vector<Json> rows;
  for (const Measurement& m : c.measurements) {
    Json row = result_json(m, *c.inputs.x.format, *c.truth);
    row["repeats"] = m.repeats;
    if (const std::string which = compared_result(*m.method); !which.empty()) row["result"] = which;
    row["distinct_bits"] = m.distinct_bits;
    row["seconds"] = m.seconds;
    row["gb_per_s"] = number_or_null(m.gigabytes_per_second);
    rows.push_back(row);
  }
  return rows;
}

Json data_json(const std::vector<std::string>& files, const Inputs& inputs, const Truth& truth) {
  std::uint64_t hash = digest_of_nothing;
  Truth elements;
  const auto take_in = [&](Values v) {
    hash = digest({static_cast<const std::byte*>(v.data), v.size * v.format->bytes}, hash);
    elements.add(v);
  };
  take_in(inputs.x);
  if (inputs.y) take_in(*inputs.y);
  return {{"name", listed(files)},
          {"files", files},
          {"format", inputs.x.format->name},
          {"digest", hexadecimal_digest(hash)},
          {"n", truth.size()},
          {"nans", elements.nans()},
          {"infinities", elements.infinities()},
          {"magnitudes", number_or_null(truth.magnitudes_rounded_up())},
          {"condition", number_or_null(truth.condition())}};
}

Json comparison_json(const Comparison& c) {
  const Json recommendation = {{"method", c.recommendation.method->name},
                               {"reason", c.recommendation.reason}};
  const Json transfer = !c.transfer ? Json(nullptr)
                                    : Json{{"seconds", c.transfer->seconds},
                                           {"gb_per_s", number_or_null(c.transfer->gigabytes_per_second)}};
  return {{"kind", "comparison"},
          {"schema", schema_version},
          {"provenance", provenance()},
          {"operation", c.operation},
          {"data", data_json(c.files, c.inputs, *c.truth)},
          {"threads", c.options.threads},
          {"repeats", c.options.repeats},
          {"transfer", transfer},
          {"methods", rows(c)},
          {"failures", c.failures()},
          {"recommendation", recommendation}};
}

std::string json_line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string csv(const std::vector<Json>& rows) {
  std::string text;
  const auto line = [&](const Json& row, auto field) {
    const char* separator = "";
    for (const auto& [key, value] : row.items()) text += std::exchange(separator, ",") + field(key, value);
    text += '\n';
  };
  if (!rows.empty()) line(rows.front(), [](const std::string& key, const Json&) { return key; });
  for (const Json& row : rows)
    line(row, [](const std::string&, const Json& value) { return csv_field(value); });
  return text;
}

void check_writable(const std::string& path) {
  const fs::path target = resolve(path);
  std::error_code ignored;
  if (fs::is_symlink(target, ignored)) refuse(path, ELOOP);
  if (fs::is_directory(target, ignored)) refuse(path, EISDIR);
  if (fs::exists(target, ignored) && access(target.c_str(), W_OK) != 0) refuse(path, errno);
  if (is_special(target)) return;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(path, errno);
}

void write_file(const std::string& path, const std::string& text) {
  check_writable(path);
  const fs::path target = resolve(path);
  if (is_special(target)) return write_special(path, text);
  TemporaryFile file{target};
  const bool written =
      file.descriptor() >= 0 && write_all(file.descriptor(), text) && fsync(file.descriptor()) == 0;
  if (!written || !file.rename_to(target)) refuse(path, errno);
}

}  // namespace samesum::harness
