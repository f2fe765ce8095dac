/// The list of backends.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "samesum/base/name.hpp"

namespace samesum {

class Backend;

/// Returns the backend with that name. Each backend specialises this function in its folder.
template <Name name> const Backend& backend();

/// A list of backends by their names.
template <Name... name> struct BackendList {
  static constexpr std::array<std::string_view, sizeof...(name)> names{name.view()...};
  static std::array<const Backend*, sizeof...(name)> all() { return {&backend<name>()...}; }
};

/// The backends where methods can run. To add one, add a folder and its name here.
using Backends = BackendList<"reference", "cpu", "cuda">;
/// Names of the backends.
inline constexpr auto backends = Backends::names;

}  // namespace samesum
