/// Joins the entries of all formats, which a backend has in one file per format.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

#include "samesum/catalogue/backend.hpp"

namespace samesum {

/// Returns the entries that of_format.operator()<index>() makes for each format index, then the others.
template <class OfFormat> std::vector<Entry> joined(OfFormat of_format, std::vector<Entry> others) {
  std::vector<Entry> all;
  const auto append = [&all](std::vector<Entry> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  };
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (append(of_format.template operator()<index>()), ...);
  }
  (std::make_index_sequence<Formats::size>{});
  append(std::move(others));
  return all;
}

/// Returns both.
inline std::vector<Entry> joined(std::vector<Entry> all, std::vector<Entry> others) {
  std::move(others.begin(), others.end(), std::back_inserter(all));
  return all;
}

}  // namespace samesum
