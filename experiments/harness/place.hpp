/// A place is a processor with its memory and its clock, where methods run and are timed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samesum/catalogue/backend.hpp"

namespace samesum::harness {

/// Times of repeated runs.
struct Speed {
  std::string method;
  double seconds;  ///< median of the rounds
  /// The bits are correct; for a peer, the results are; empty if they were not checked.
  std::optional<bool> verified;
  std::vector<double> rounds;    ///< seconds per round, in the order of the rounds
  std::optional<int> grid = {};  ///< exponent of the grid that the method was given
};

/// Runs a call on elements that begin `offset` bytes after the first one.
using BoundCall = std::function<void(std::size_t offset)>;

/// Something to time.
struct Turn {
  std::string name;
  std::optional<bool> verified;
  BoundCall run;
  std::optional<int> grid = {};  ///< exponent of the grid that the method is given
  int calls = 1;                 ///< number of calls that one run makes: several if it replays a CUDA graph
};

/// Number of rounds, and the seed of the order of each.
struct Repeats {
  int rounds;
  std::uint64_t seed;

  Repeats(int number, std::uint64_t seed_of_orders = 1) : rounds{number}, seed{seed_of_orders} {}
};

struct Rounds {
  Repeats repeats = 11;
  std::size_t bytes = 0;  ///< read by one run
  int threads = 1;        ///< of the CPU
  /// Number of ranges that runs read in rotation, `stride` bytes apart. With one range, all runs read the
  /// same data. If all ranges together are larger than the caches, all data come from memory.
  std::size_t places = 1, stride = 0;
};

/// Returns a call on the elements that begin `offset` bytes after those of another one.
inline Call moved(Call call, std::size_t offset) {
  for (Values* input : {&call.x, &call.y})
    if (input->data) input->data = static_cast<const std::byte*>(input->data) + offset;
  return call;
}

/// A CPU or a GPU. All functions throw std::runtime_error if the machine reports an error.
class Place {
 public:
  virtual ~Place() = default;

  /// Allocates memory, aligned to a page.
  virtual std::shared_ptr<std::byte> memory(std::size_t bytes) const = 0;
  /// Copies `count` pieces of `bytes` bytes, which are `stride` bytes apart in `from` and contiguous in `to`,
  /// from host memory to this memory or back.
  virtual void copy(void* to, const void* from, std::size_t bytes, std::size_t count = 1,
                    std::size_t stride = 0) const = 0;
  /// Waits for all launched work. `what` names the work in an error message.
  virtual void finish(const std::string& what) const = 0;

  /// Binds a call, as users make it, to data in this memory. On a GPU the returned function only launches it.
  virtual BoundCall bind(const Call& call) const = 0;
  /// Records `calls` runs at offset 0 in a CUDA graph, and returns a function that replays it. Throws if that
  /// is impossible, because the run allocates memory or waits for the GPU, or on a CPU.
  virtual BoundCall recorded(const BoundCall& run, int calls) const = 0;
  /// Reads all bytes and does nothing else: the ceiling of methods that read.
  virtual void read_all(const void* x, std::size_t bytes, int threads) const = 0;
  /// Copies all bytes: the ceiling of methods that write as much as they read.
  virtual void copy_all(const void* x, void* out, std::size_t bytes, int threads) const = 0;

  /// Times the turns in rounds: one run of each turn after the other, so that a change of the machine's clock
  /// affects all alike. Each round has another random order, so that no turn always follows the same one.
  std::vector<Speed> in_turns(const std::vector<Turn>& turns, const Rounds& rounds) const;

 protected:
  /// Seconds that `runs` takes, measured with the clock of the place.
  virtual double time(const std::function<void()>& runs) const = 0;
  /// Number of warm-up rounds.
  virtual int warm_up() const = 0;
  /// Number of runs that are timed together, because the clock takes time too.
  virtual int runs_at_once(const Turn& turn, const Rounds& rounds) const = 0;
  /// Brings the caches into the state for a timed run.
  virtual void prepare(const Turn& turn, const Rounds& rounds) const = 0;
};

std::unique_ptr<Place> cpu_place();
/// Throws std::runtime_error if there is no GPU.
std::unique_ptr<Place> gpu_place();

/// Description of the current GPU: "NVIDIA H200, driver for CUDA 13.0, CUDA 13.0, CCCL 3.1.0"; empty if there
/// is none.
std::string gpu_description();
/// Versions of the libraries of the GPU: "CUDA 13.0, CCCL 3.1.0, cuBLAS 13.0.2"; empty if there is no GPU.
std::string gpu_libraries();
/// Address of the current GPU on its bus, by which nvidia-smi knows it; empty if there is none.
std::string gpu_address();

}  // namespace samesum::harness
