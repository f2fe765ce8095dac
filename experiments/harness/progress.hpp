/// Progress display of a terminal.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace samesum::harness {

/// Shows "[3/40] tree/kahan/fp32@cpu" on standard error if that is a terminal. The destructor removes it.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(std::size_t done, std::size_t all, const std::string& name) const {
    if (watched_) std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", done + 1, all, name.c_str());
  }
  /// Removes the line, so that another one can be printed.
  void clear() const {
    if (watched_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool watched_ = isatty(STDERR_FILENO) == 1;
};

}  // namespace samesum::harness
