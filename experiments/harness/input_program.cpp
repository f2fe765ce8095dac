#include "harness/input_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "harness/text.hpp"

extern char** environ;

namespace samesum::harness {

namespace {

/// The last line of a file that is not empty.
std::string last_line(int file) {
  std::string text(std::size_t{1} << 16, '\0');
  const off_t size = lseek(file, 0, SEEK_END);
  const off_t start = std::max<off_t>(size - static_cast<off_t>(text.size()), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(pread(file, text.data(), text.size(), start), 0)));
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// Descriptors of the program: no input, and the ends of two pipes.
class Actions {
 public:
  Actions(int output, int errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

ProgramBytes::ProgramBytes(std::vector<std::string> command, std::string name) : name_{std::move(name)} {
  const auto refuse = [&](int error) {
    throw InputError{name_, command[0] + " cannot be started: " + std::generic_category().message(error)};
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) refuse(errno);
  output_ = ends[0];
  errors_ = memfd_create("errors", MFD_CLOEXEC);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&program_, arguments[0], Actions{ends[1], errors_}.get(), nullptr,
                                 arguments.data(), environ);
  close(ends[1]);
  if (error == 0) return;
  close(output_);
  close(errors_);
  refuse(error);
}

ProgramBytes::~ProgramBytes() {
  close(output_);
  if (program_ > 0) {
    kill(program_, SIGKILL);
    waitpid(program_, nullptr, 0);
  }
  close(errors_);
}

std::size_t ProgramBytes::read(std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size() && program_ > 0) {
    const ssize_t n = ::read(output_, to.data() + done, to.size() - done);
    if (n > 0)
      done += static_cast<std::size_t>(n);
    else if (n == 0)
      finish();
    else if (errno != EINTR)
      throw InputError{name_, "cannot be read: " + std::generic_category().message(errno)};
  }
  return done;
}

void ProgramBytes::finish() {
  int status = 0;
  waitpid(std::exchange(program_, 0), &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string error = last_line(errors_);
  throw InputError{name_, error.empty() ? "the program that reads it was ended" : printable(error)};
}

}  // namespace samesum::harness
