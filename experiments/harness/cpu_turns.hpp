/// Timing on a CPU: a run of each method in turn, so that a machine that changes its clock treats all alike.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "harness/speed.hpp"

namespace samesum::harness {

/// Memory that begins with a page.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_{bytes}, first_{new (page) std::byte[bytes]} {}
  /// The block again and again.
  Pages(std::size_t bytes, const std::vector<std::byte>& block);

  std::byte* data() const { return first_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::align_val_t page{4096};
  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, page); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> first_;
};

struct Turn {
  std::string name;
  std::optional<bool> verified;
  std::function<void()> run;
};

/// One result a method. `bytes` is what a run reads: what fits into caches is read once more before it is
/// timed.
std::vector<Speed> in_turns(const std::vector<Turn>& methods, int repeats, int threads, std::size_t bytes);

/// Reads all and does nothing: the ceiling of all that reads.
void read_all(const void* x, std::size_t bytes, int threads);

/// Copies all: the ceiling of what writes as much as it reads.
void copy_all(const std::byte* x, std::byte* out, std::size_t bytes, int threads);

}  // namespace samesum::harness
