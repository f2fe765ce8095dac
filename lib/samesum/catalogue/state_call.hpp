/// Calls for the states of a partial.
#pragma once

#include "samesum/catalogue/backend.hpp"

namespace samesum {

/// The call that writes the state of a subtree of `all`, a call on one vector, to `out`.
inline Call state_call(const Call& all, PartialInput::Subtree subtree, void* out) {
  const auto part = [&](const void* x) {
    return x ? static_cast<const std::byte*>(x) + subtree.first * all.input->bytes : nullptr;
  };
  Call call = all;
  call.x = part(all.x);
  call.y = part(all.y);
  call.size = subtree.count;
  call.layout = Layout::vector(subtree.count);
  call.out = out;
  call.as_state = true;
  return call;
}

}  // namespace samesum
