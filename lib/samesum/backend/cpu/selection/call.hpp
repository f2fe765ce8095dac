/// A call of which only some elements take part, for the files of this room.
#pragma once

#include <atomic>

#include "samesum/backend/cpu/selection/elements.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum::cpu {

/// Each runs a valid call on the elements that take part, and returns whether a sum overflowed its grid. The
/// method may be that of any backend that reads host memory.
bool reduce_selected(const Call& call);
bool scan_selected(const Call& call);
bool reduce_selected_by_key(const Call& call);

/// A call and the elements that take part in it.
class SelectiveCall {
 public:
  explicit SelectiveCall(const Call& call);
  bool overflowed() const { return overflowed_; }

 protected:
  const Method& method() const { return *call_.method; }
  const Layout& layout() const { return call_.layout; }

  /// The elements of result number r.
  Stretch elements_of(std::size_t r) const {
    const std::size_t o = r / layout().inner, i = r % layout().inner;
    return {layout().first(o) + i, layout().length(o), layout().stride};
  }
  /// The place of result number r.
  Results result(std::size_t r, std::size_t count = 1) const {
    const std::size_t numbers = static_cast<std::size_t>(method().results);
    return {call_.out.format, static_cast<std::byte*>(call_.out.data) + r * method().result_bytes(),
            count * numbers};
  }

  /// Runs a call on packed elements.
  void run_packed(Call packed, int threads);

  Call call_;  ///< the call on all elements, normalised
  SelectableElements elements_;
  std::atomic<bool> overflowed_ = false;
};

}  // namespace samesum::cpu
