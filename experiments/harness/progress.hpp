/// How far the work is, for those who watch it.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace samesum::harness {

/// "[3/40] tree/kahan/fp32@cpu" on standard error, where that is a terminal; gone when the work is done.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(std::size_t done, std::size_t all, const std::string& name) const {
    if (watched_) std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", done + 1, all, name.c_str());
  }
  /// Makes room for a line of another kind.
  void clear() const {
    if (watched_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool watched_ = isatty(STDERR_FILENO) == 1;
};

}  // namespace samesum::harness
