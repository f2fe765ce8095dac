#include "harness/axes.hpp"

#include <algorithm>

namespace samesum::harness {

std::vector<std::string> all_data() {
  std::vector<std::string> all{"normal"};
  all.insert(all.end(), awkward_data().begin(), awkward_data().end());
  return all;
}

std::vector<Cell> cells_of(std::span<const Axes> products, bool full) {
  std::vector<Cell> cells;
  const auto add = [&](const Cell& cell) {
    if (cell.dataset().fits(*cell.input) && std::ranges::find(cells, cell) == cells.end())
      cells.push_back(cell);
  };
  for (const Axes& axes : products) {
    if (axes.mode == Mode::full && !full) continue;
    for (const std::string& operation : axes.operations)
      for (const std::string& format : axes.formats)
        for (const auto& [outer, n, inner] : axes.shapes)
          for (const std::string& data : axes.data)
            add({.input = find_format(format),
                 .n = n,
                 .threads = axes.threads,
                 .data = data,
                 .operation = operation,
                 .outer = outer,
                 .inner = inner});
  }
  return cells;
}

}  // namespace samesum::harness
