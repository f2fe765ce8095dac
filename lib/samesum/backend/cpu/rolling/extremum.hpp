/// The state of rolling minima and maxima.
#pragma once

#include <vector>

#include "samesum/backend/cpu/rolling/task.hpp"

namespace samesum::cpu {
namespace {

/// Extrema (van Herk 1992; Gil and Werman 1993): chunks have the length of a window, so that each window is
/// the end of a chunk and the beginning of the next one.
template <class F> class RollingExtremum {
  using Key = KeyOf<fp64>;

 public:
  using Format = F;
  static constexpr bool has_minus_zero = false;
  explicit RollingExtremum(const RollingTask& task)
      // A chunk that is longer than all moves never ends.
      : smallest_{task.kind == RollingKind::min},
        chunk_(std::min(task.windows.size, 2 * task.windows.n + 1)),
        ends_(chunk_.size() + 1) {}

  /// Every other element is better than this, or equal.
  static double replacement(bool smallest) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return smallest ? infinity : -infinity;
  }
  void move(const Moves& m, F* out) {
    for (std::size_t i = 0; i < m.n;) {
      const std::size_t count = std::min(m.n - i, chunk_.size() - at_);
      for (std::size_t k = i; k < i + count; ++k) {
        const std::uint64_t key = Key::of(m.entering[k], smallest_);
        chunk_[at_++] = key;
        best_ = std::max(best_, key);
        if (out) out[k] = number(std::max(best_, ends_[at_]));
      }
      i += count;
      if (at_ == chunk_.size()) begin_chunk();
    }
  }

 private:
  void begin_chunk() {
    best_ = at_ = 0;
    for (std::size_t k = chunk_.size(); k-- > 0;) ends_[k] = std::max(ends_[k + 1], chunk_[k]);
  }
  F number(std::uint64_t key) const {
    return key == Key::nan ? from_bits<F>(samesum::Format<F>::canonical_nan)
                           : convert<F>(Key::number(key, smallest_));
  }

  bool smallest_;
  std::vector<std::uint64_t> chunk_;  ///< keys of the elements of this chunk
  /// For each element of the last chunk the largest key from it on; the last one, of no element, is 0.
  std::vector<std::uint64_t> ends_;
  std::uint64_t best_ = 0;  ///< the largest key of this chunk
  std::size_t at_ = 0;
};

}  // namespace
}  // namespace samesum::cpu
