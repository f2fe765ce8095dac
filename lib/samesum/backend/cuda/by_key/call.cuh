/// The host side of all reductions by key: the elements of a call, the parts of its workspace, its launches,
/// and the sort of its rows. The calls of by_key.cu derive from it.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "samesum/backend/cuda/by_key/plain.cuh"
#include "samesum/backend/cuda/device/call.hpp"

namespace samesum::gpu {
namespace {

constexpr std::uint64_t blocks_of(std::uint64_t items, std::uint64_t per_block) {
  return (items + per_block - 1) / per_block;
}

/// Shared memory of a block that needs no cudaFuncSetAttribute.
constexpr std::size_t shared_by_default = std::size_t{48} << 10;

/// One call by key: its arguments, its workspace, and the first error of an enqueued operation.
class CallByKey {
 protected:
  explicit CallByKey(Launch& work) : work_{work}, memory_{reinterpret_cast<std::uintptr_t>(work.workspace)} {
    const Layout& l = work.call.layout;
    keyed_ = {work.call.keys.format,
              work.call.keys.data,
              work.call.x.data,
              l.n * l.inner,
              l.inner,
              bins(work.call),
              add<KeyEvents>(1),
              nullptr,
              {}};
    clear_up_to_here();
  }

  /// Appends a part of `count` items to the workspace. For a size query, the pointer must not be used.
  template <class T> T* add(std::uint64_t count) {
    const std::uintptr_t at = memory_ + header_bytes + bytes_;
    bytes_ = (bytes_ + count * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(at);
  }
  /// begin() clears the parts that have been appended so far.
  void clear_up_to_here() { cleared_ = bytes_; }
  /// Accepts the workspace, all parts of which have been appended. Returns false for a size query or after an
  /// error.
  bool accept() { return error_ == cudaSuccess && accept_workspace(work_, header_bytes + bytes_, error_); }
  /// Accepts the workspace, too, and clears the first parts.
  bool begin() {
    if (!accept()) return false;
    clear(keyed_.events, cleared_);
    return error_ == cudaSuccess;
  }
  void clear(void* from, std::size_t bytes) {
    if (error_ == cudaSuccess && bytes > 0) error_ = cudaMemsetAsync(from, 0, bytes, work_.stream);
  }
  void keep(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }

  template <class... Parameter, class... Argument>
  void enqueue_with(std::size_t shared, void (*kernel)(Parameter...), std::uint64_t blocks, int threads,
                    Argument... argument) {
    if (error_ != cudaSuccess || blocks == 0) return;
    error_ = launch_with(shared, kernel, blocks, threads, work_.stream, argument...);
  }
  template <class... Parameter, class... Argument>
  void enqueue(void (*kernel)(Parameter...), std::uint64_t blocks, int threads, Argument... argument) {
    enqueue_with(0, kernel, blocks, threads, argument...);
  }
  /// Enqueues a kernel that writes the results, one per thread. One thread more reports a bad key of a call
  /// without results.
  template <class... Parameter, class... Argument>
  void enqueue_finish(void (*kernel)(Parameter...), int threads, Argument... argument) {
    enqueue(kernel, blocks_of(keyed_.results() + 1, static_cast<std::uint64_t>(threads)), threads,
            argument...);
  }

  int attribute(cudaDeviceAttr which, int value) {
    keep(look_up(which, value));
    return value;
  }
  std::uint64_t multiprocessors() {
    return static_cast<std::uint64_t>(attribute(cudaDevAttrMultiProcessorCount, 1));
  }
  /// Number of blocks for so many items: at most `most_resident` per multiprocessor.
  std::uint64_t blocks_for(std::uint64_t items, std::uint64_t per_block, std::uint64_t most_resident) {
    return std::min(blocks_of(items, per_block), most_resident * multiprocessors());
  }
  KeyResults destination(const Totals& totals = {}, const unsigned long long* counts = nullptr) const {
    return {totals, counts, work_.call.out.data, work_.call.options.combine, work_.status};
  }

  /// Whether the rows can be sorted by key: both numbers have 31 bits.
  bool can_sort() const { return work_.call.layout.n >> 31 == 0 && keyed_.bins >> 31 == 0; }
  /// The parts of the workspace for a sort.
  struct Sorting {
    std::uint32_t *bins, *places, *sorted_bins, *sorted_places;
    std::byte* temporary;
    std::size_t bytes;
  };
  Sorting add_sorting() {
    const std::uint64_t rows = work_.call.layout.n;
    Sorting s{add<std::uint32_t>(rows),
              add<std::uint32_t>(rows),
              add<std::uint32_t>(rows),
              add<std::uint32_t>(rows),
              nullptr,
              0};
    keep(sort_pairs(s));
    s.temporary = add<std::byte>(s.bytes);
    return s;
  }
  /// Sorts the rows by key.
  SortedRows sort(Sorting s) {
    const std::uint64_t rows = work_.call.layout.n;
    enqueue(number_rows, blocks_of(rows, 256), 256, keyed_, rows, s.bins, s.places);
    if (rows > 0 && error_ == cudaSuccess) error_ = sort_pairs(s);
    return {s.sorted_bins, s.sorted_places, rows};
  }

  Launch& work_;
  KeyedElements keyed_;
  cudaError_t error_ = cudaSuccess;
  std::size_t cleared_ = 0;  ///< bytes of the first parts

 private:
  /// Sorts; without temporary memory, only sets `bytes`.
  cudaError_t sort_pairs(Sorting& s) {
    return cub::DeviceRadixSort::SortPairs(s.temporary, s.bytes, s.bins, s.sorted_bins, s.places,
                                           s.sorted_places, static_cast<int>(work_.call.layout.n), 0,
                                           std::bit_width(keyed_.bins), work_.stream);
  }

  std::uintptr_t memory_;
  std::size_t bytes_ = 0;
};

}  // namespace
}  // namespace samesum::gpu
