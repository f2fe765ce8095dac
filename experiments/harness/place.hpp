/// Where methods run and are timed: memory, a clock, and what the memory allows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samesum/catalogue/backend.hpp"

namespace samesum::harness {

/// What repeated runs took.
struct Speed {
  std::string method;
  double seconds, low, high;     ///< median, and the 10th and 90th percentile
  std::optional<bool> verified;  ///< the bits are those that they should be; where that was looked at
  std::vector<double> rounds;    ///< seconds, in the order of the rounds
};

/// Something to time: it works on its first elements, or on those that begin `offset` bytes later.
struct Turn {
  std::string name;
  std::optional<bool> verified;
  std::function<void(std::size_t offset)> run;
};

struct Rounds {
  int repeats = 11;
  std::size_t bytes = 0;  ///< that a run reads
  int threads = 1;        ///< of the CPU
  /// One place is read again and again. Several, `stride` bytes apart, follow each other: if they are larger
  /// than the caches together, all data come from memory.
  std::size_t places = 1, stride = 0;
};

/// A CPU or a GPU. Functions throw std::runtime_error where the machine refuses.
class Place {
 public:
  virtual ~Place() = default;

  /// Memory that begins with a page.
  virtual std::shared_ptr<std::byte> memory(std::size_t bytes) const = 0;
  /// Copies `count` pieces of so many bytes, which are `stride` bytes apart in `from` and adjacent in `to`,
  /// between this memory and the host's, either way.
  virtual void copy(void* to, const void* from, std::size_t bytes, std::size_t count = 1,
                    std::size_t stride = 0) const = 0;
  /// Waits for what was started; an error names it.
  virtual void finish(const std::string& what) const = 0;

  /// The call as users make it, on data that are there. On a GPU it is only started.
  virtual std::function<void(std::size_t offset)> bind(const Method& method, const Call& call) const = 0;
  /// Reads all bytes and does nothing: the ceiling of all that reads.
  virtual void read_all(const void* x, std::size_t bytes, int threads) const = 0;
  /// Copies all bytes: the ceiling of what writes as much as it reads.
  virtual void copy_all(const void* x, void* out, std::size_t bytes, int threads) const = 0;

  /// Times a run of each turn after the other, so that a machine that changes its clock treats all alike.
  std::vector<Speed> in_turns(const std::vector<Turn>& turns, const Rounds& rounds) const;

 protected:
  /// Seconds that the runs take, by the clock of the place.
  virtual double time(const std::function<void()>& runs) const = 0;
  /// Number of rounds that do not count.
  virtual int warm_up() const = 0;
  /// Number of runs that are timed together, since the clock takes time too.
  virtual int runs_at_once(const Turn& turn, const Rounds& rounds) const = 0;
  /// Brings the caches into the state that a timed run shall find.
  virtual void prepare(const Turn& turn, const Rounds& rounds) const = 0;
};

std::unique_ptr<Place> cpu_place();
/// Throws std::runtime_error where there is no GPU.
std::unique_ptr<Place> gpu_place();

/// The current GPU: "NVIDIA H200, driver 13.0, CUDA 13.0, CCCL 3.1.0"; empty where there is none.
std::string gpu_description();

Speed summary(const std::string& method, std::optional<bool> verified, std::vector<double> seconds);

}  // namespace samesum::harness
