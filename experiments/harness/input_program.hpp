/// Programs whose standard output is read.
#pragma once

#include <sys/types.h>

#include "harness/input_parts.hpp"

namespace samesum::harness {

/// What a program writes to its standard output. Its standard input is empty.
class ProgramBytes : public Bytes {
 public:
  /// Starts the program, which is looked for in PATH. Throws InputError, with this name, if it does not
  /// start.
  ProgramBytes(std::vector<std::string> command, std::string name);
  ProgramBytes(const ProgramBytes&) = delete;
  ProgramBytes& operator=(const ProgramBytes&) = delete;
  /// Ends the program if it still runs.
  ~ProgramBytes() override;

  /// At the end, throws InputError with the last line of its standard error if the program failed.
  std::size_t read(std::span<std::byte> to) override;
  std::optional<std::uint64_t> left() override { return {}; }

 private:
  void finish();

  std::string name_;
  int output_ = -1, errors_ = -1;  ///< descriptors: a pipe, and a file in memory, which never makes it wait
  pid_t program_ = 0;              ///< 0 when it has ended
};

}  // namespace samesum::harness
