/// Measures the time of methods. The methods of one cell take turns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "harness/dataset.hpp"
#include "harness/place.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::harness {

constexpr std::size_t two_to(int e) { return std::size_t{1} << e; }

/// Sizes of arrays that lie in L2, and in DRAM.
inline constexpr std::size_t l2_bytes = two_to(20), dram_bytes = two_to(28);

/// The exponent of the grid that fixed_point is given: no sum of 2^28 normal numbers overflows a word.
inline constexpr int grid_for_normal_data = -30;

/// One operation on an array of one shape and one format: the methods of a cell are measured together. The
/// array has outer × n × inner elements in C order, and its middle axis is reduced.
struct Cell {
  const FormatInfo* input;
  std::size_t n;
  int threads = 1;  ///< 0 on a GPU
  std::string data = "normal";
  /// On a GPU: each run reads data that no cache holds. Otherwise all runs read the same data.
  bool cold = false;
  std::string operation = "sum";
  std::size_t outer = 1, inner = 1;
  // For operations by key: rows of `inner` elements have keys below `bins` from a set of keys.
  std::string keys = {};
  std::size_t bins = 0;
  /// Exponent of the grid that methods with fixed_point are given. They are measured with one that they find,
  /// too.
  std::optional<int> grid = {};
  /// On a GPU: the calls of a round are replayed from a CUDA graph, so that their time excludes the launches.
  bool in_graph = false;

  bool on_gpu() const { return threads == 0; }
  bool by_key() const { return bins > 0; }
  Layout layout() const { return inner == 1 ? Layout::rows(outer, n) : Layout::axis(outer, n, inner); }
  std::size_t elements() const { return outer * n * inner; }
  std::size_t input_bytes() const { return elements() * input->bytes; }
  std::size_t key_bytes() const { return by_key() ? n * sizeof(std::uint32_t) : 0; }
  int inputs() const { return methods(operation).front().inputs; }
  /// Whether there is one result per element.
  bool has_result_per_element() const { return methods(operation).front().has_result_per_element; }
  /// Bytes of all inputs and keys; plus those of the results, if there is one per element.
  std::size_t bytes() const {
    return input_bytes() * static_cast<std::size_t>(inputs() + has_result_per_element()) + key_bytes();
  }
  /// The ceiling that memory sets: "read" or "copy".
  std::string ceiling() const { return has_result_per_element() ? "copy" : "read"; }
  /// The set that its elements are made from.
  const Dataset& dataset() const { return *datasets_matching(data).front(); }
  /// Where the data lie: "latency" (up to 64 elements), "L2", "DRAM", "other", "GPU".
  std::string place() const;

  bool operator==(const Cell&) const = default;
};

/// The most bytes of a cell on a GPU that is also measured in a CUDA graph: what 3 TB/s move in 20 us.
/// Launches take a large part of the time of such calls.
inline constexpr std::size_t most_bytes_in_graph = 60'000'000;

/// Number of calls that a graph records: as many as short calls are timed at once without one.
inline constexpr int calls_in_graph = 20;

/// Adds behind each cell on a GPU the same with the calls in a CUDA graph, if the data are short and the
/// caches hot.
void add_cells_in_graphs(std::vector<Cell>& cells);

/// The axis "data" beside normal data: data sets on which integers, and sums of doubles in a range of
/// exponents, may take longer. An array of more than 2^20 elements repeats a block of 2^20.
const std::vector<std::string>& awkward_data();

/// Appends the cell with each of the awkward data that its format holds. The cell itself is for normal data.
void append_awkward_data(std::vector<Cell>& cells, const Cell& normal);

/// Whether the time of the method may depend on the values of its elements: it is exact, or adds on a grid.
bool may_depend_on_data(const Method& method);

/// Whether both cells have the same work, whatever the grid that is given.
bool same_but_for_grid(const Cell& a, const Cell& b);

/// Whether the method computes the operation of the cell, for its format and layout, on its processor.
bool fits(const Method& method, const Cell& cell);

/// Why a peer does not compute the cell as a whole, as the cell prescribes; empty if it does.
std::string refusal(const Method& peer, const Cell& cell);

/// Peers that compute the operation of the cell from its format on its processor: those that take the cell,
/// and those that do not, and why.
struct PeersOfCell {
  std::vector<const Method*> methods;
  struct Declined {
    const Method* method;
    std::string reason;
  };
  std::vector<Declined> declined;
};
/// The peers for batches.
PeersOfCell peers_of(const Cell& cell);

/// Moves the peers that decline the cell out of `methods`.
std::vector<PeersOfCell::Declined> declined_of(const Cell& cell, std::vector<const Method*>& methods);

/// Elements that are repeated in longer arrays: 2^20, or `most` if that is less. They are generated once, and
/// kept for other calls.
inline constexpr std::size_t log2_speed_block = 20;
std::span<const std::byte> speed_block(const FormatInfo& format, const Dataset& data, std::uint64_t seed,
                                       std::size_t most = SIZE_MAX);

/// An array of one format, filled once, for measuring cells of any length.
class Bench {
 public:
  /// Fills an array of `most` elements with the format and the data of the cell, on its processor. Throws
  /// std::runtime_error if there is no GPU or not enough memory.
  Bench(const Cell& cell, std::uint64_t seed, std::size_t most);

  /// Measures each method, and last the ceiling. For methods of samesum, compares the bits of the first and
  /// the last result with the reference implementation, on a GPU with the CPU; by key, those of all results.
  /// For a long vector, compares only the results of its first elements: 2^18 on a CPU, 2^22 on a GPU, by
  /// key as many as there are results, if those are more. For peers, compares all results with
  /// those in wider arithmetic, on a GPU those of as many elements of a vector, or of rows with 2^24
  /// elements, and those of the first few elements: verify.hpp states the tolerance.
  std::vector<Speed> measure(const Cell& cell, const std::vector<const Method*>& methods, Repeats repeats);

  /// The bytes that the method writes.
  std::vector<std::byte> results(const Cell& cell, const Method& method);

 private:
  std::shared_ptr<std::byte> filled(std::size_t bytes, std::uint64_t seed) const;
  void allocate(const Cell& cell, const std::vector<const Method*>& methods);
  Call call_of(const Cell& cell, const Method& m) const;
  BoundCall bound(const Cell& cell, const Call& call) const;
  void fill_keys(const Cell& cell);
  bool has_right_bits(const Cell& cell, const Call& call);
  const std::vector<std::byte>& column_on_host(const Cell& cell, const void* x, std::size_t at,
                                               std::size_t m);
  const void* on_host(const Cell& cell, const void* data, std::size_t bytes);
  bool has_right_bits_by_key(const Cell& cell, const Call& call) const;
  std::optional<bool> has_right_results(const Cell& cell, const Call& call);
  std::optional<bool> has_right_results_of_any_length(const Cell& cell, const Method& peer);
  Turn ceiling(const Cell& cell) const;

  const FormatInfo& format_;
  const Dataset& data_;
  std::uint64_t seed_;
  std::unique_ptr<Place> place_;
  std::size_t bytes_;  ///< size of x
  std::shared_ptr<std::byte> x_, y_, keys_, out_;
  // What the verification of the methods of a cell has read:
  std::map<std::pair<const void*, std::size_t>, std::vector<std::byte>> columns_;
  std::map<const void*, std::unique_ptr<std::byte[]>> copies_;  ///< of data on a GPU
};

}  // namespace samesum::harness
