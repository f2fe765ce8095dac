/// Calls for the states of a partial.
#pragma once

#include "samesum/catalogue/backend.hpp"

namespace samesum {

/// The part of `all`, a call on one vector, that reduces a subtree. Its results, a state, go to `out`.
inline Call part_of(const Call& all, PartialInput::Subtree subtree, void* out) {
  const auto part = [&](const Values& v) {
    return v.is_given()
               ? Values{*v.format, static_cast<const std::byte*>(v.data) + subtree.first * v.format->bytes,
                        subtree.count}
               : v;
  };
  Call call = all;
  call.x = part(all.x);
  call.y = part(all.y);
  call.layout = Layout::vector(subtree.count);
  call.out.data = out;
  return call;
}

}  // namespace samesum
