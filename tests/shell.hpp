/// Support for the tests of programs: temporary files, and commands run by a shell.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace samesum::testing_support {

inline std::string read(const std::filesystem::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

inline void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream{path, std::ios::binary} << text;
}

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// Returns a folder in memory, if there is one, for tests that write thousands of small files: waiting for a
/// disk to store them takes longer than the tests.
inline std::filesystem::path folder_in_memory() {
  return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
}

/// A temporary folder, deleted with its contents by the destructor.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "samesum_test_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator{path_})
      all.push_back(entry.path().filename());
    return all;
  }

 private:
  std::filesystem::path path_;
};

struct Outcome {
  int code;
  std::string out, err;
};

/// Runs commands in a temporary folder.
class Shell {
 public:
  Shell() { std::filesystem::create_directory(work()); }

  std::filesystem::path work() const { return folder_ / "work"; }

  Outcome run(const std::string& command) const {
    const std::string redirected = "cd '" + work().string() + "' && { " + command + "\n} >../out 2>../err";
    const int status = std::system(redirected.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(folder_ / "out"), read(folder_ / "err")};
  }

 private:
  Folder folder_;
};

}  // namespace samesum::testing_support
