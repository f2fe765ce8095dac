/// How long methods take, those of one cell in turns.
#pragma once

#include <cstdint>

#include "harness/dataset.hpp"
#include "harness/place.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::harness {

constexpr std::size_t two_to(int e) { return std::size_t{1} << e; }

/// Arrays of so many bytes lie in L2, and in DRAM.
inline constexpr std::size_t l2_bytes = two_to(20), dram_bytes = two_to(28);

/// What is measured side by side: one operation on one shape of one format. The array has outer × n × inner
/// elements in C's order, and its middle axis is reduced.
struct Cell {
  const FormatInfo* input;
  std::size_t n;
  int threads = 1;  ///< 0 on a GPU
  std::string data = "normal";
  bool cold =
      false;  ///< on a GPU: each run reads data that are in no cache; else the same data again and again
  std::string operation = "sum";
  std::size_t outer = 1, inner = 1;

  bool on_gpu() const { return threads == 0; }
  Layout layout() const { return inner == 1 ? Layout::rows(outer, n) : Layout::axis(outer, n, inner); }
  std::size_t elements() const { return outer * n * inner; }
  std::size_t input_bytes() const { return elements() * input->bytes; }
  int inputs() const { return methods(operation).front().inputs; }
  /// Whether the results are as many as the elements.
  bool per_element() const { return methods(operation).front().per_element; }
  /// All inputs together; results per element count too.
  std::size_t bytes() const { return input_bytes() * static_cast<std::size_t>(inputs() + per_element()); }
  /// What memory allows: "read", "copy".
  std::string ceiling() const { return per_element() ? "copy" : "read"; }
  /// Where the data lie: "latency" (up to 64 elements), "L2", "DRAM", "other", "GPU".
  std::string place() const;

  bool operator==(const Cell&) const = default;
};

/// Whether the method computes what the cell is about, where it is about it.
bool fits(const Method& method, const Cell& cell);

/// Peers that do it too: on a CPU those with one thread.
std::vector<const Method*> peers_of(const Cell& cell);

/// So many elements, made once and repeated: what a longer array consists of.
inline constexpr std::size_t log2_speed_block = 20;
std::vector<std::byte> speed_block(const FormatInfo& format, const Dataset& data, std::uint64_t seed);

/// An array of one format, filled once, of which cells of any length can be measured.
class Bench {
 public:
  /// On the side of the cell, with its format and its data; `most` elements. Throws std::runtime_error where
  /// there is no GPU or not enough memory.
  Bench(const Cell& cell, std::uint64_t seed, std::size_t most);

  /// One result for each method, and then the ceiling's. The bits of the first and the last result of ours
  /// are compared with the reference, on a GPU with the CPU; of vectors of more than 2^20 elements, on a GPU
  /// of sums of more than 2^24, those of the first elements.
  std::vector<Speed> measure(const Cell& cell, const std::vector<const Method*>& methods, int repeats);

  /// What the method writes.
  std::vector<std::byte> results(const Cell& cell, const Method& method);

 private:
  std::shared_ptr<std::byte> filled(std::size_t bytes, std::uint64_t seed) const;
  Call call_of(const Cell& cell);
  bool has_right_bits(const Cell& cell, const Method& method, const Call& call) const;
  Turn ceiling(const Cell& cell, const Call& call) const;

  const FormatInfo& format_;
  const Dataset& data_;
  std::uint64_t seed_;
  std::unique_ptr<Place> place_;
  std::size_t bytes_;  ///< of x
  std::shared_ptr<std::byte> x_, y_, out_;
};

}  // namespace samesum::harness
