#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace samesum {

/// Levenshtein's distance.
inline std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({substituted, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

/// The three names of the table that are nearest to this one.
template <class Table> std::string nearest(const std::string& name, const Table& table) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& entry : table) ranked.emplace_back(distance(name, entry.name), entry.name);
  std::ranges::partial_sort(ranked, ranked.begin() + 3);
  return ranked[0].second + ", " + ranked[1].second + ", " + ranked[2].second;
}

}  // namespace samesum
