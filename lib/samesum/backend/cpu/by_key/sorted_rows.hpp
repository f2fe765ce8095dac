/// Rows of elements sorted by key, so that the sums of a key stay in registers while its rows are added.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum::cpu {

/// The rows of a call in the order of their keys; those of a key keep their order.
class SortedRows {
 public:
  /// Sorts the rows if that is faster than adding them to a table in their order: not for short rows, and not
  /// if one key has so many rows that other threads would wait for the one that adds them.
  /// @returns nullopt in these cases, and if a key is bad.
  static std::optional<SortedRows> of(const Call& call, int threads) {
    const std::size_t n = call.keys.size, inner = call.layout.inner;
    if (inner < RowsOfKey::least || bins(call) == 0 || n >= std::size_t{1} << 31) return std::nullopt;
    if (first_bad_key(call.keys, bins(call)) != no_bad_key) return std::nullopt;
    SortedRows sorted{call, threads};
    return sorted.is_even() ? std::optional{std::move(sorted)} : std::nullopt;
  }

  /// Calls visit(key, rows, room) for each key, on all threads, with room for a row of numbers of a type.
  template <class Number, class Visit> void for_each_key(Visit visit) const {
    const std::size_t bins = end_.size() - 1, inner = call_.layout.inner;
    const std::size_t tasks = std::min(bins, threads_ == 1 ? 1 : 16 * static_cast<std::size_t>(threads_));
    for_each_task(threads_, tasks, [&](std::size_t task) {
      std::vector<Number> room(inner);
      for (std::size_t key = task * bins / tasks; key < (task + 1) * bins / tasks; ++key) {
        const std::size_t begin = key == 0 ? 0 : end_[key - 1];
        visit(key, RowsOfKey{call_.x.data, index_.data() + begin, end_[key] - begin, inner}, room.data());
      }
    });
  }

 private:
  SortedRows(const Call& call, int threads)
      : call_{call}, threads_{threads}, end_(bins(call) + 1), index_(call.keys.size + RowsOfKey::ahead) {
    with_key_format(call.keys.format, [&]<class K>() {
      const K* const key = static_cast<const K*>(call.keys.data);
      for (std::size_t k = 0; k < call.keys.size; ++k) ++end_[static_cast<std::size_t>(key[k]) + 1];
      for (std::size_t b = 0; b < bins(call); ++b) end_[b + 1] += end_[b];
      for (std::size_t k = 0; k < call.keys.size; ++k)
        index_[end_[static_cast<std::size_t>(key[k])]++] = static_cast<std::uint32_t>(k);
    });
  }

  bool is_even() const {
    if (threads_ == 1) return true;
    std::size_t begin = 0, most = 0;
    for (std::size_t b = 0; b + 1 < end_.size(); begin = end_[b++]) most = std::max(most, end_[b] - begin);
    return most <= call_.keys.size / static_cast<std::size_t>(threads_);
  }

  const Call& call_;
  int threads_;
  std::vector<std::size_t> end_;      ///< behind the last row of each key, and the number of rows
  std::vector<std::uint32_t> index_;  ///< rows
};

}  // namespace samesum::cpu
