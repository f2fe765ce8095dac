/// Elements with their exact sums, which take longer than the methods that are compared with them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/truth.hpp"
#include "support.hpp"

namespace samesum::testing_support {

/// Elements and their exact sum.
struct KnownSum {
  std::string name;
  Array x;
  harness::Truth truth{x.values()};
};

/// Returns what `make` returns for a format and a length; it is made once for all methods.
template <std::vector<KnownSum> (*make)(const FormatInfo&, std::size_t)>
const std::vector<KnownSum>& known_sums(const FormatInfo& format, std::size_t n) {
  static std::map<std::pair<std::size_t, std::size_t>, std::vector<KnownSum>> made;
  std::vector<KnownSum>& all = made[{format.index, n}];
  if (all.empty()) all = make(format, n);
  return all;
}

}  // namespace samesum::testing_support
